// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux"
)

// namespaces finds out whether anybody may make a user namespace, which is
// what containers without privileges are made of.
type namespaces struct{ System }

func (namespaces) Name() string { return "namespaces" }

func (n namespaces) Scan(_ context.Context, inv *machine.Inventory) error {
	// What forbids them to ordinary users may still allow them to us.
	for _, name := range [...]string{"sys/kernel/unprivileged_userns_clone", "sys/user/max_user_namespaces"} {
		path := filepath.Join(n.Root.Proc, name)
		if text, err := readText(maxText, path); err == nil && bytes.Equal(bytes.TrimSpace(text), []byte("0")) {
			inv.UserNamespaces = machine.No
			inv.Learn(path, "UserNamespaces")
			return nil
		}
	}
	inv.UserNamespaces = machine.Yes
	if err := n.CloneUser(); err != nil {
		inv.UserNamespaces = machine.No
	}
	inv.Learn("clone(2)", "UserNamespaces")
	return nil
}

// cloneUser makes a process in a new user namespace. The process ends at once:
// there is no program for it to run, and the kernel looks for that only once
// the namespace is made.
func cloneUser() error {
	pid, err := syscall.ForkExec("/proc/self/fd/-1", []string{"-"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER},
	})
	switch {
	case errors.Is(err, syscall.ENOENT):
		return nil
	case err != nil:
		return err
	}
	// It cannot be, but nobody may be left behind.
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

// UserNamespace returns the number of the user namespace this process is in, 0
// if the kernel does not tell.
func UserNamespace(root linux.Root) uint64 {
	var st unix.Stat_t
	if unix.Stat(filepath.Join(root.Proc, "self/ns/user"), &st) != nil {
		return 0
	}
	return st.Ino
}
