// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// The thread is alone before anything is mounted; mounts stand below the root and in
// their order.
func TestPlanOf(t *testing.T) {
	t.Parallel()
	tmp := host.Mount{Source: "/x/scratch/tmp", Target: "/tmp"}
	shm := host.Mount{Target: "/dev/shm", Mode: 0o1777}
	for _, c := range []struct {
		name  string
		space host.Space
		want  string // the steps, "" for none
	}{
		{"what the parent sees", host.Space{}, ""},
		{"one directory", host.Space{Mounts: []host.Mount{tmp}},
			"make namespaces of mounts; keep mounts from the machine; bind /x/scratch/tmp on /tmp"},
		{"memory", host.Space{Mounts: []host.Mount{shm, {Target: "/m/", Mode: 0o700, Size: 4096}}},
			"make namespaces of mounts; keep mounts from the machine; mount a file system in memory (mode=1777) on /dev/shm; " +
				"mount a file system in memory (mode=0700,size=4096) on /m"},
		{"in their order, read-only at once", host.Space{Mounts: []host.Mount{{Source: "/a", Target: "/b", ReadOnly: true}, tmp}},
			"make namespaces of mounts; keep mounts from the machine; bind /a on /b; make /b read-only; bind /x/scratch/tmp on /tmp"},
		{"below a root", host.Space{Root: "/image", Mounts: []host.Mount{{Source: "/a", Target: "/../b"}}},
			"make namespaces of mounts; keep mounts from the machine; bind /a on /image/b"},
		{"a root alone needs no step", host.Space{Root: "/image"}, ""},
		{"numbers need a /proc of their own", host.Space{PIDs: true}, "make namespaces of mounts, processes; keep mounts from the machine"},
		{"no network needs no mounts", host.Space{NoNetwork: true}, "make namespaces of the network; bring up lo"},
		{"everything", host.Space{Mounts: []host.Mount{tmp}, PIDs: true, NoNetwork: true},
			"make namespaces of mounts, processes, the network; keep mounts from the machine; bind /x/scratch/tmp on /tmp; bring up lo"},
	} {
		steps, err := PlanOf(c.space)
		var words []string
		for _, s := range steps {
			words = append(words, s.String())
		}
		if got := strings.Join(words, "; "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v\nwant %q", c.name, got, err, c.want)
		}
	}
	for _, s := range []host.Space{
		{Root: "root"}, {Mounts: []host.Mount{{Source: "/a", Target: "b"}}}, {Mounts: []host.Mount{{Source: "a", Target: "/b"}}},
		{Mounts: []host.Mount{{Target: ""}}},
	} {
		if steps, err := PlanOf(s); !errs.Is(err, errs.Invalid) || steps != nil {
			t.Errorf("%+v: %v, %v", s, steps, err)
		}
	}
}
