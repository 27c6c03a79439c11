// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"os"
	"os/user"
	"runtime"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// newFacts says what Go itself knows of the machine; there is no detection for
// this system yet, so memory and the names of the system are left to the table
// of defaults.
func newFacts(tilde string) func(snap *config.Snapshot) (map[string]string, bool) {
	return func(*config.Snapshot) (map[string]string, bool) {
		cpus := strconv.Itoa(runtime.NumCPU())
		facts := map[string]string{
			"OPSYS": strings.ToUpper(runtime.GOOS), "DETECTED_CORES": cpus, "DETECTED_CPUS": cpus, "DETECTED_CPUS_LIMIT": cpus,
			"PID": strconv.Itoa(os.Getpid()), "PPID": strconv.Itoa(os.Getppid()),
		}
		if runtime.GOARCH == "amd64" {
			facts["ARCH"] = "X86_64"
		}
		if host, err := os.Hostname(); err == nil {
			facts["FULL_HOSTNAME"] = host
			facts["HOSTNAME"], _, _ = strings.Cut(host, ".")
		}
		if u, err := user.Current(); err == nil {
			facts["USERNAME"] = u.Username
		}
		if tilde != "" {
			facts["TILDE"] = tilde
		}
		return facts, false
	}
}
