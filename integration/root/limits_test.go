// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"os"
	"strings"
	"testing"
)

// divides tries, as the job's user, to make a group below the job's own and to raise
// the limit of that.
const divides = `g=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
[ -d $g ] || g=/sys/fs/cgroup/memory
f=memory.limit_in_bytes
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then g=/sys/fs/cgroup$(dirname $(sed -n 's/^0:://p' /proc/self/cgroup)); f=memory.max; fi
echo limit $(cat $g/$f)
(echo 999999999 > $g/$f) 2>/dev/null && echo raised
mkdir $g/own && echo divided
echo $$ > $g/own/cgroup.procs && echo moved
(echo 999999999 > $g/$f) 2>/dev/null && echo raised
grep NoNewPrivs /proc/self/status
`

// A job has the memory of its slot, may divide it, cannot raise it, and leaves no group.
//
// row: S0-074, S0-078
func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.round("")
	out := w.submit("plain", divides, "request_memory = 200").done()
	if strings.Contains(out, "limit \n") {
		t.Skip("needs the memory controller")
	}
	if want := "limit 268435456\ndivided\nmoved\nNoNewPrivs:\t0\n"; out != want { // 200 MB are rounded up to 256
		t.Errorf("the job says\n%s\nwant\n%s", out, want)
	}
	w.round("CGROUP_MEMORY_LIMIT_POLICY = Custom\nCGROUP_HARD_MEMORY_LIMIT_EXPR = TARGET.Wants * 2\nDISABLE_SETUID = true\n")
	out = w.submit("custom", divides, "+Wants = 50").done()
	if want := "limit 104857600\ndivided\nmoved\nNoNewPrivs:\t1\n"; out != want {
		t.Errorf("the job says\n%s\nwant\n%s", out, want)
	}
	w.idle()
	for _, dir := range []string{"/sys/fs/cgroup/memory/htcondor", "/sys/fs/cgroup/htcondor"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), strings.ReplaceAll(w.ep.Dir, "/", "_")) {
				t.Errorf("%s/%s is left", dir, e.Name())
			}
		}
	}
}
