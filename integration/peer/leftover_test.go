// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// left are the processes that belong to a run: its directory is in their
// environment, in their command line, or where they or their program are. The
// time of the start tells a process from a later one of the same id.
func left(dir string) map[int]string {
	found := map[int]string{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		started, ok := startTime(proc)
		if ok && belongs(proc, dir) {
			found[pid] = started
		}
	}
	return found
}

// belongs looks for a directory in what /proc tells of a process.
func belongs(proc, dir string) bool {
	for _, name := range []string{"environ", "cmdline"} {
		if b, err := os.ReadFile(filepath.Join(proc, name)); err == nil && bytes.Contains(b, []byte(dir)) {
			return true
		}
	}
	for _, name := range []string{"cwd", "exe"} {
		if to, err := os.Readlink(filepath.Join(proc, name)); err == nil && (to == dir || strings.HasPrefix(to, dir+"/")) {
			return true
		}
	}
	return false
}

// startTime is when a process started, in ticks since the boot. A dead one that
// waits for its parent is not there any more.
func startTime(proc string) (string, bool) {
	b, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return "", false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return "", false
	}
	return f[19], true
}

// endLeft kills what is left of a run, by process id and start time, until
// nothing is. It returns how many processes there were.
func endLeft(ctx context.Context, dir string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	killed := map[string]bool{}
	for {
		there := left(dir)
		if len(there) == 0 {
			return len(killed), nil
		}
		for pid, started := range there {
			if err := kill(pid, started); err != nil {
				return len(killed), err
			}
			killed[strconv.Itoa(pid)+" "+started] = true
		}
		select {
		case <-ctx.Done():
			return len(killed), fmt.Errorf("%d processes of %s are still there", len(there), dir)
		case <-tick.C:
		}
	}
}

// kill kills a process if it is the one that started then.
func kill(pid int, started string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pidfd_open %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if now, ok := startTime("/proc/" + strconv.Itoa(pid)); !ok || now != started {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill %d: %w", pid, err)
	}
	return nil
}

func TestEndLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := func(run func(cmd *exec.Cmd), args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sleep", append([]string{"600"}, args...)...)
		cmd.Env = []string{}
		run(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	mine := []*exec.Cmd{
		begin(func(cmd *exec.Cmd) { cmd.Env = []string{"HOME=" + dir + "/home"} }),
		begin(func(cmd *exec.Cmd) { cmd.Dir = dir }),
		begin(func(cmd *exec.Cmd) { cmd.Args[0] = dir + "/program" }),
	}
	other := begin(func(cmd *exec.Cmd) { cmd.Dir = filepath.Dir(dir) })
	done := make(chan error, len(mine))
	for _, cmd := range mine {
		go func() { done <- cmd.Wait() }()
	}
	n, err := endLeft(t.Context(), dir)
	if err != nil || n != len(mine) {
		t.Errorf("got %d, %v; want %d processes ended", n, err, len(mine))
	}
	for range mine {
		if err := <-done; err == nil || err.Error() != "signal: killed" {
			t.Errorf("a process of the directory: %v, want killed", err)
		}
	}
	if _, ok := startTime("/proc/" + strconv.Itoa(other.Process.Pid)); !ok {
		t.Error("a process of another directory was ended")
	}
	if err := kill(other.Process.Pid, "1"); err != nil {
		t.Error(err)
	}
	if _, ok := startTime("/proc/" + strconv.Itoa(other.Process.Pid)); !ok {
		t.Error("a process that started at another time was ended")
	}
	_ = other.Process.Kill()
	_ = other.Wait()
}
