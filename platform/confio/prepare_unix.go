// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package confio

import (
	"os/exec"
	"syscall"
)

// prepare lets a command that takes too long be ended with all it started, but for
// what has left its group. end does so once the command itself is gone: a group keeps
// its number as long as anything is in it.
func prepare(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return func() {
		if cmd.Process != nil {
			_ = cmd.Cancel()
		}
	}
}
