// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Figures of version 2 as a kernel of today has them, and of those that keep less.
func TestFinal(t *testing.T) {
	t.Parallel()
	stat := "anon 0\nfile 5000\nshmem 1000\n"
	pressure := "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n"
	stall := &Stall{1500 * time.Microsecond, 20 * time.Microsecond}
	peak := Usage{Memory: true, Peak: 9000}
	for _, c := range []struct {
		name  string
		files map[string]string
		used  Usage
		want  Final
	}{
		{"all", map[string]string{"g/memory.stat": stat, "g/pids.peak": "7\n", "g/memory.pressure": pressure, "g/cpu.pressure": pressure, "g/io.pressure": pressure}, peak,
			Final{Anonymous: 5000, Processes: 7, Memory: stall, CPU: stall, IO: stall}},
		{"an old kernel", map[string]string{"g/memory.stat": stat}, Usage{Memory: true}, Final{}},
		{"nothing stalled", map[string]string{"g/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"}, Usage{}, Final{CPU: &Stall{}}},
		{"nothing but cache", map[string]string{"g/memory.stat": "file 10000\nshmem 0\n"}, peak, Final{}},
	} {
		c.files["g/cgroup.procs"] = ""
		dir := fakeRoot(t, c.files) + "/g"
		got, err := (&Group{version: 2, parts: []part{{dir: dir}}}).Final(c.used)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, d)
		}
	}
	dir := fakeRoot(t, map[string]string{"g/memory.stat": "file x\n", "g/cpu.pressure": pressure}) + "/g"
	if got, err := (&Group{version: 2, parts: []part{{dir: dir}}}).Final(peak); err == nil || got.CPU == nil {
		t.Errorf("what can be read counts: %+v, %v", got, err)
	}
}
