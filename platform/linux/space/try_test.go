// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package space

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// asUser has the calling test run as an ordinary user where it runs as root: in a child,
// whose result it takes over. It reports whether the caller is that user already.
func asUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	dir, err := os.MkdirTemp("", "space-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	program := filepath.Join(dir, "test")
	if err == nil {
		err = os.WriteFile(program, self, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	out, err := cmd.CombinedOutput()
	t.Logf("as %s:\n%s", u.Username, out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// allowed says whether an ordinary user may make namespaces here, by the system's own
// program; the test is left out where that is not there.
func allowed(t *testing.T) bool {
	t.Helper()
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	return exec.CommandContext(t.Context(), path, "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "true").Run() == nil
}

// What the try says is what the system's own program finds, and nothing is left of it.
func TestTryUsers(t *testing.T) {
	if !asUser(t) {
		return
	}
	want := allowed(t)
	for range 3 {
		if err := TryUsers(); (err == nil) != want {
			t.Errorf("%v, and unshare says %v", err, want)
		}
	}
	if Lent() || Able() == nil {
		t.Error("this process has rights of its own")
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}
