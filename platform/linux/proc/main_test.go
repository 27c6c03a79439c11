// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// A spawner of role Starter or Startd needs a process of its own, so the test
// binary starts itself again: as the process that holds the spawner
// (scenarioEnv), or as a job that does something no shell can (jobEnv).
const (
	scenarioEnv = "EXECPOINT_PROC_SCENARIO"
	jobEnv      = "EXECPOINT_PROC_JOB"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(jobEnv); job != "" {
		runJob(job)
		return
	}
	if name := os.Getenv(scenarioEnv); name != "" {
		out, err := scenarios()[name](os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	for _, version := range []int{1, 2} {
		if tree, err := testTree(version); err == nil {
			tree.RemoveBase()
		}
	}
	os.Exit(code)
}

// scenario runs one in a process of its own and decodes what it says.
func scenario[T any](t testing.TB, name string, args ...string) T {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), scenarioEnv+"="+name)
	if spaces.MatchString(t.Name()) {
		withUsers(cmd)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("scenario %s: %v\n%s", name, err, stderr.String())
	}
	var out T
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("scenario %s said %q: %v", name, stdout.String(), err)
	}
	return out
}

// runJob is what a job does that was started from this binary.
func runJob(what string) {
	name, arg, _ := strings.Cut(what, ":")
	again := func(job string, clean bool, attr *syscall.SysProcAttr) {
		env := []string{jobEnv + "=" + job}
		if !clean {
			for _, e := range os.Environ() {
				if !strings.HasPrefix(e, jobEnv+"=") {
					env = append(env, e)
				}
			}
		}
		exe, err := os.Executable()
		if err != nil {
			os.Exit(9)
		}
		if _, err := syscall.ForkExec(exe, []string{"job"}, &syscall.ProcAttr{
			Env: env, Files: []uintptr{0, 1, 2}, Sys: attr,
		}); err != nil {
			os.Exit(9)
		}
	}
	switch name {
	case "hold": // writes that it is there and waits for ever, deaf to signals
		runtime.LockOSThread()
		ignoreAll()
		announce(arg)
		forever()
	case "daemon": // forks twice, each in a new session with a clean environment
		again("middle:"+arg, true, &syscall.SysProcAttr{Setsid: true})
		waitFor(arg)
	case "middle":
		again("hold:"+arg, true, &syscall.SysProcAttr{Setsid: true})
	case "marked": // as daemon, but keeps its environment
		again("markedmiddle:"+arg, false, &syscall.SysProcAttr{Setsid: true})
		waitFor(arg)
		if strings.HasSuffix(arg, ".stay") {
			forever()
		}
	case "markedmiddle":
		again("hold:"+arg, false, &syscall.SysProcAttr{Setsid: true})
	case "stay":
		announce(arg)
		forever()
	default:
		os.Exit(8)
	}
	os.Exit(0)
}

func ignoreAll() {
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		signalIgnore(sig)
	}
}

// announce writes our pid to path, all at once.
func announce(path string) {
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		os.Exit(7)
	}
	if err := os.Rename(path+".new", path); err != nil {
		os.Exit(7)
	}
}

// waitFor waits until somebody has announced itself at path and returns its
// pid.
func waitFor(path string) int {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if text, err := os.ReadFile(path); err == nil {
			pid, _ := strconv.Atoi(string(text))
			return pid
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
	return 0
}

// self starts this binary as a job.
func self(job string) host.SpawnSpec {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return host.SpawnSpec{Path: exe, Args: []string{"job"}, Env: []string{jobEnv + "=" + job}, Bond: host.Bound}
}

func shell(script string) host.SpawnSpec {
	return host.SpawnSpec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Bond: host.Bound}
}

// running reports whether pid is a process that has not ended.
func running(pid int) bool {
	s, err := newTable("/proc").stat(pid)
	return err == nil && !s.Dead()
}

func tempFile(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }

func pidfdOpen(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

// pidfdEnds waits until the process behind fd has ended and closes fd.
func pidfdEnds(fd int, patience time.Duration) bool {
	defer unix.Close(fd)
	for deadline := time.Now().Add(patience); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds()))
		if n > 0 {
			return true
		}
		if err != unix.EINTR {
			return false
		}
	}
}

// forever waits until killed. An empty select would be a deadlock to the
// runtime.
func forever() {
	for {
		_ = unix.Pause()
	}
}

func pause() { _ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil) }
