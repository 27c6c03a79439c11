// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package asstarter

import (
	"os"

	"github.com/execpoint/execpoint/lib/starter"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

func newHost() (starter.Host, error) {
	s, err := proc.New(proc.Options{Role: proc.Starter})
	if err != nil {
		return starter.Host{}, err
	}
	passwd, _ := os.ReadFile("/etc/passwd") // without it HOME is the job's own affair
	return starter.Host{
		Spawner: s, Census: s, Errno: proc.Errno, Signal: proc.SignalNumber, Home: proc.Home(passwd, os.Geteuid()),
		Groups: func(base string) error { return s.OpenGroups("/sys/fs/cgroup", base) },
	}, nil
}
