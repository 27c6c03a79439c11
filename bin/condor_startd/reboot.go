// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/execpoint/execpoint/lib/daemon"
)

// reboot runs STARTD_REBOOT_COMMAND by the shell, as who we are. Our own end,
// which the reboot brings, does not end it.
func reboot(ctx context.Context, command string) error {
	shell, option := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		shell, option = "cmd.exe", "/c"
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), shell, option, command)
	cmd.Env = daemon.Scrub(os.Environ())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.500s", err, bytes.TrimSpace(out))
	}
	return nil
}
