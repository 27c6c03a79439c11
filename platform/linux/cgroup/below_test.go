// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
)

// The kernel does not list the processes of a threaded group there. A job that makes
// one hides nothing by it, wherever the rest of its processes are.
func TestThreadedGroups(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		if tree.Version() == 1 {
			t.Skip("version 1 has no threaded groups")
		}
		g := made(t, tree, Limits{})
		pids := []int{born(t, g, "/bin/sleep", "600"), born(t, g, "/bin/sleep", "600")}
		// Groups are visited in the kernel's order: with several, one comes first.
		for _, name := range []string{"a", "b", "c", "d"} {
			threaded := filepath.Join(g.parts[0].dir, name, "threaded")
			if err := os.MkdirAll(threaded, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := writeFile(filepath.Join(threaded, "cgroup.type"), "threaded"); err != nil {
				t.Skipf("needs a kernel with threaded groups: %v", err)
			}
		}
		// The one is in a group with threads of its own, the other where it was.
		for _, w := range [][2]string{{"a/cgroup.procs", strconv.Itoa(pids[0])}, {"a/threaded/cgroup.threads", strconv.Itoa(pids[0])}} {
			if err := writeFile(filepath.Join(g.parts[0].dir, w[0]), w[1]); err != nil {
				t.Fatal(err)
			}
		}
		got, err := g.Procs()
		slices.Sort(got)
		if !slices.Equal(got, pids) || err != nil {
			t.Errorf("the group holds %v (%v), want %v", got, err, pids)
		}
		if n, err := g.Kill(); n != len(pids) || err != nil {
			t.Errorf("Kill: %d, %v", n, err)
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		for _, pid := range pids {
			reap(t, pid)
		}
	})
}

// A job that divides what it has is not over its own limit when a part of it is over
// its share. One that hides its processes in a group below is.
//
// row: S0-077
func TestMemoryOfPartsOfAJob(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		for _, tt := range []struct {
			name      string
			job, part int64 // limits, in MiB
			below     bool
		}{{"its share", 128, 32, true}, {"the job's", 32, 0, false}} {
			t.Run(tt.name, func(t *testing.T) {
				g := made(t, tree, Limits{})
				needs(t, g, "memory")
				hard, none := tt.job<<20, int64(0)
				if err := g.Apply(Limits{GroupLimits: host.GroupLimits{Memory: host.MemoryLimits{Hard: &hard, Swap: &none}}}); err != nil {
					t.Fatal(err)
				}
				part := filepath.Join(g.Dir("memory"), "part")
				if err := os.Mkdir(part, 0o755); err != nil {
					t.Fatal(err)
				}
				if tree.Version() == 2 {
					if err := writeFile(filepath.Join(g.Dir("memory"), "cgroup.subtree_control"), "+memory"); err != nil {
						t.Fatal(err)
					}
				}
				if tt.part != 0 {
					files := []string{"memory.max", "memory.swap.max"}
					if tree.Version() == 1 {
						files = []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}
					}
					for i, file := range files {
						value := strconv.FormatInt(tt.part<<20, 10)
						if file == "memory.swap.max" {
							value = "0"
						}
						if err := writeFile(filepath.Join(part, file), value); err != nil && i == 0 {
							t.Fatal(err)
						}
					}
				}
				pid := born(t, g, "/bin/sh", "-c", `while ! grep -q /part$ /proc/self/cgroup; do :; done; exec dd if=/dev/zero of=/dev/null bs=100M count=1 2>/dev/null`)
				if err := writeFile(filepath.Join(part, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
					t.Fatal(err)
				}
				if ws := reap(t, pid); ws.Signal() != syscall.SIGKILL {
					t.Errorf("it ended with %v, want to be killed", ws)
				}
				u, err := g.Usage()
				if err != nil || u.OOMKills != 1 || u.Over.Below != tt.below || (u.Over.Hits > 0) == tt.below {
					t.Errorf("usage %+v, %v; a kill below: want %t", u, err, tt.below)
				}
			})
		}
	})
}
