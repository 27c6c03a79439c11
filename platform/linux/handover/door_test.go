// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package handover_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/platform/linux/handover"
)

// beDoor opens a door in a directory, starts a process of its own that knocks, and then
// lets in who comes: each is told that he is welcome. What it says is why the others were
// turned away.
func beDoor(path string) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		panic(err)
	}
	door, err := handover.Listen(dir, filepath.Base(path))
	if err != nil {
		panic(err)
	}
	// A child of a child that is gone, as a job would hide.
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	knock := exec.Command("/bin/sh", "-c", self+" & wait")
	knock.Env = []string{roleEnv + "=knock:" + path}
	if err := knock.Start(); err != nil {
		panic(err)
	}
	for {
		nc, pid, problem, err := door.Accept()
		if err != nil {
			os.Exit(0)
		}
		if problem != nil {
			_, _ = os.Stdout.WriteString(problem.Error() + "\n")
			continue
		}
		_, _ = nc.Write([]byte("welcome " + strconv.Itoa(pid)))
		nc.Close()
	}
}

// knockAt exits with 0 when it was turned away.
func knockAt(path string) {
	nc, err := net.Dial("unix", path)
	if err != nil {
		os.Exit(2)
	}
	if text, _ := io.ReadAll(nc); len(text) > 0 {
		os.Exit(3)
	}
	os.Exit(0)
}

// A process lets in who is of its own user, but for those it has started itself.
func TestDoor(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("long", 50)) // no path of a socket is so long
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(deep)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, _, err := handover.Dial(dir, "door"); !errs.Is(err, errs.NotFound) {
		t.Errorf("a door that is not there: %v", err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{roleEnv + "=door:door"}
	cmd.Dir, cmd.Stderr = deep, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	said := make([]byte, 4096)
	n, err := out.Read(said)
	if text := string(said[:n]); err != nil || !strings.Contains(text, "denied: it is one of the job's") {
		t.Errorf("it says %q, %v", text, err)
	}
	nc, pid, err := handover.Dial(dir, "door")
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.SetReadDeadline(time.Now().Add(30 * time.Second))
	if text, err := io.ReadAll(nc); string(text) != "welcome "+strconv.Itoa(os.Getpid()) || err != nil || pid != cmd.Process.Pid {
		t.Errorf("process %d says %q, %v", pid, text, err)
	}
	if info, err := os.Lstat(filepath.Join(deep, "door")); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A door that is shut lets nobody in, and says so to who waits at it.
func TestDoorIsShut(t *testing.T) {
	t.Parallel()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	door, err := handover.Listen(dir, "door")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handover.Listen(dir, "door"); err == nil {
		t.Error("there are two doors in one place")
	}
	waited := make(chan error)
	go func() {
		_, _, _, err := door.Accept()
		waited <- err
	}()
	if err := door.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waited; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, _, err := handover.Dial(dir, "door"); !errs.Is(err, errs.NotFound) {
		t.Error(err)
	}
}
