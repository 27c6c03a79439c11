// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

func TestHasUser(t *testing.T) {
	t.Parallel()
	const status = "Name:\tsleep\nUid:\t0\t1001\t77\t55\nGid:\t99\t99\t99\t99\n"
	for uid, want := range map[uint32]bool{0: true, 1001: true, 77: true, 55: false, 99: false, 7: false} {
		if got := hasUser([]byte(status), uid); got != want {
			t.Errorf("%d: %v", uid, got)
		}
	}
	if hasUser([]byte("Uid:\t5"), 5) || hasUser([]byte("Name:\tx\nUid:"), 0) {
		t.Error("a text without the line has users")
	}
}

// All processes of an account go, whoever started them; nobody else's do.
func TestKillUser(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Role: Guest})
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []uint32{0, uint32(os.Getuid())} {
		if _, err := s.KillUser(uid); !errs.Is(err, errs.Denied) {
			t.Errorf("%d: %v", uid, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root has processes of others
	}
	const uid, other = 61301, 61302
	start := func(uid uint32) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; while sleep 1000; do :; done & wait")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Setsid: true}
		if err := bound.Start(cmd); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	one, two, bystander := start(uid), start(uid), start(other)
	ended := make(chan string, 2)
	for _, cmd := range []*exec.Cmd{one, two} {
		go func() { ended <- cmd.Wait().Error() }()
	}
	n, err := s.KillUser(uid)
	if err != nil || n < 2 {
		t.Errorf("%d killed, %v", n, err)
	}
	for range 2 {
		if why := <-ended; !strings.Contains(why, "killed") {
			t.Error(why)
		}
	}
	if !running(bystander.Process.Pid) {
		t.Error("a process of another user is gone")
	}
	if n, err := s.KillUser(other); err != nil || n < 1 {
		t.Errorf("%d killed, %v", n, err)
	}
	_ = bystander.Wait()
}
