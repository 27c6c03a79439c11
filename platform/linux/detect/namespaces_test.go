// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/platform/linux"
)

// What the probe says must be what happens to a real program, and no process
// is left behind.
func TestCloneUser(t *testing.T) {
	t.Parallel()
	got := cloneUser()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	if err := cmd.Run(); (err == nil) != (got == nil) {
		t.Errorf("the probe says %v, a program %v", got, err)
	}
}

func TestUserNamespace(t *testing.T) {
	t.Parallel()
	root := linux.DefaultRoot()
	if _, err := os.Stat(root.Proc + "/self/ns/user"); err == nil && UserNamespace(root) == 0 {
		t.Error("this process is in no user namespace")
	}
	if n := UserNamespace(linux.RootAt(t.TempDir())); n != 0 {
		t.Errorf("nothing has the number %d", n)
	}
}

func BenchmarkCloneUser(b *testing.B) {
	for b.Loop() {
		_ = cloneUser() // a kernel that refuses is as good
	}
}
