// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lockfile

import (
	"bufio"
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

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// beHolder makes the test program hold the lock of the file that it names.
const beHolder = "EXECPOINT_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(beHolder); path != "" {
		os.Exit(hold(path))
	}
	os.Exit(m.Run())
}

// hold takes a lock, starts a process that outlives it and waits for its end.
func hold(path string) int {
	if _, err := Lock(path, host.Alone, me("holder")); err != nil {
		fmt.Println(err)
		return 1
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held", child.Process.Pid)
	select {}
}

func me(name string) host.Holder {
	return host.Holder{Program: "condor_startd", Name: name, Machine: "here", Proc: host.ProcID{PID: os.Getpid(), Start: 7}, Since: time.Now()}
}

// A lock that somebody holds is refused with who it is; it ends with the
// process that took it, however that ends, though what it started lives on.
func TestLockEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), beHolder+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	child, ok := strings.CutPrefix(strings.TrimSpace(line), "held ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	pid, err := strconv.Atoi(child)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	_, err = Lock(path, host.Alone, me("second"))
	var held *host.HeldError
	if !errs.Is(err, errs.Conflict) || !errors.As(err, &held) || held.By.Name != "holder" || held.By.Proc.PID != cmd.Process.Pid {
		t.Errorf("the second: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if unix.Kill(pid, 0) != nil {
		t.Fatal("what the holder started is gone as well, the test shows nothing")
	}
	l, err := Lock(path, host.Alone, me("third"))
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file stays: %v", err)
	}
}

// Those who share a lock do so with one another; the file goes with the last.
func TestSharedLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	var locks []host.Lock
	for range 2 {
		l, err := Lock(path, host.Together, me("run"))
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	for i, l := range locks {
		if _, err := Lock(path, host.Alone, me("startd")); !errs.Is(err, errs.Conflict) {
			t.Errorf("with %d holders: %v", 2-i, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); (err == nil) != (i == 0) {
			t.Errorf("after %d of 2 ended: %v", i+1, err)
		}
	}
	l, err := Lock(path, host.Alone, me("startd"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path, host.Together, me("run")); !errs.Is(err, errs.Conflict) {
		t.Errorf("beside one that is alone: %v", err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if err := l.Touch(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Minute || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A file by which another user could keep us out is not locked.
func TestFilesThatAreNotLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mk := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte("{}"), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := mk("good", 0o600)
	link, second := filepath.Join(dir, "link"), filepath.Join(dir, "second")
	pipe := filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink(good, link), os.Link(mk("first", 0o600), second), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	paths := map[string]errs.Kind{
		good: errs.Other, link: errs.Denied, second: errs.Denied, pipe: errs.Denied, mk("others", 0o644): errs.Denied,
		filepath.Join(dir, "nothing", "lock"): errs.NotFound,
	}
	if os.Geteuid() == 0 {
		foreign := mk("foreign", 0o600)
		if err := os.Chown(foreign, 61234, -1); err != nil {
			t.Fatal(err)
		}
		paths[foreign] = errs.Denied
	}
	for path, want := range paths {
		l, err := Lock(path, host.Alone, me("x"))
		if errs.KindOf(err) != want || (err == nil) != (want == errs.Other) {
			t.Errorf("%s: %v, want %v", filepath.Base(path), err, want)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	for _, path := range []string{link, second, pipe} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("what is not ours was removed: %v", err)
		}
	}
}
