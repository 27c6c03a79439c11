// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package asstarter

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter"
	"github.com/execpoint/execpoint/platform/linux/access"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// newHost also returns standard output, under another descriptor: a Go program
// dies when it writes to a closed pipe as its standard output, and is told of
// it as an error elsewhere.
func newHost() (starter.Host, *os.File, error) {
	s, err := proc.New(proc.Options{Role: proc.Starter})
	if err != nil {
		return starter.Host{}, nil, err
	}
	fd, err := unix.FcntlInt(uintptr(unix.Stdout), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return starter.Host{}, nil, err
	}
	passwd, _ := os.ReadFile("/etc/passwd") // without it HOME is the job's own affair
	var others host.Access                  // without the rights of root there is none
	if os.Geteuid() == 0 {
		others = new(access.Files)
	}
	return starter.Host{
		Access: others, Spawner: s, Census: s, Errno: proc.Errno, Signal: proc.SignalNumber, Home: proc.Home(passwd, os.Geteuid()),
		Groups: func(place host.GroupPlace) error { return s.OpenGroups("/sys/fs/cgroup", place) },
		Stop: func() <-chan struct{} {
			ctx, _ := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGQUIT)
			return ctx.Done()
		},
	}, os.NewFile(uintptr(fd), "stdout"), nil
}
