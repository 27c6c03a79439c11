// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bound_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/platform/linux/bound"
)

// beParent makes the test program one that starts a process and waits.
const beParent = "EXECPOINT_TEST_BE_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(beParent) != "" {
		cmd := exec.Command("sleep", "1000")
		if err := bound.Start(cmd); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
		_ = cmd.Wait()
	}
	os.Exit(m.Run())
}

// A process outlives the goroutine, and its thread, from which it was asked for.
func TestStartFromAThreadThatEnds(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var tid int
	started := make(chan error)
	ask := func() {
		runtime.LockOSThread() // and never unlocked
		tid = syscall.Gettid()
		started <- bound.Start(cmd)
	}
	over := make(chan bool)
	defer close(over)
	go func() {
		runtime.LockOSThread()
		if syscall.Gettid() != syscall.Getpid() {
			ask()
			return
		}
		go ask() // from another thread: the first one of a program never ends
		<-over
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	gone := func() bool {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
		return err != nil
	}
	for end := time.Now().Add(20 * time.Second); !gone(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the thread does not end, the test shows nothing")
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended with its thread: %v", err)
	}
}

// A program that is killed takes its processes along.
func TestProcessesOfAKilledProgram(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), beParent+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000); n != 1 || err != nil {
		t.Fatalf("process %d is still there: %v", pid, err)
	}
}
