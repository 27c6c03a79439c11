// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/host"
)

// A job that does nothing is looked at less and less often, within a minute; one
// that does something as often as the owner says.
func TestPauseBetweenPolls(t *testing.T) {
	t.Parallel()
	const every = 5 * time.Second
	waits := host.Usage{UserCPU: time.Second, SysCPU: time.Second, Procs: 2, RSSKiB: 1000}
	for _, tt := range []struct {
		name              string
		every, last, want time.Duration
		change            func(*host.Usage)
	}{
		{"nothing", every, every, 10 * time.Second, func(*host.Usage) {}},
		{"nothing again", every, 10 * time.Second, 20 * time.Second, func(*host.Usage) {}},
		{"nothing for long", every, 40 * time.Second, time.Minute, func(*host.Usage) {}},
		{"nothing for longer", every, time.Minute, time.Minute, func(*host.Usage) {}},
		{"nothing, of rare looks", time.Hour, time.Hour, time.Hour, func(*host.Usage) {}},
		{"processor time", every, time.Minute, every, func(u *host.Usage) { u.UserCPU += 10 * time.Millisecond }},
		{"time of the kernel", every, time.Minute, every, func(u *host.Usage) { u.SysCPU += 10 * time.Millisecond }},
		{"a process more", every, time.Minute, every, func(u *host.Usage) { u.Procs++ }},
		{"a process less", every, time.Minute, every, func(u *host.Usage) { u.Procs-- }},
		{"more memory", every, time.Minute, every, func(u *host.Usage) { u.RSSKiB += 4 }},
		{"only what it reads", every, every, 10 * time.Second, func(u *host.Usage) { u.BlockReads++ }},
	} {
		is := waits
		tt.change(&is)
		if got := nextPause(tt.every, tt.last, waits, is); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
