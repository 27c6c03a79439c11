// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import "testing"

// What processes share is memory of theirs, the page cache is not.
func TestResidentMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		version int
		stat    string
		want    int64 // -1 is an error
	}{
		{"version 2", 2, "anon 4096\nfile 90000\nkernel 7\nshmem 8192\nfile_mapped 5\n", 12288},
		{"version 1", 1, "cache 90000\nrss 1\nshmem 2\ntotal_cache 90000\ntotal_rss 4096\ntotal_shmem 8192\n", 12288},
		{"version 1, an old kernel", 1, "total_cache 90000\ntotal_rss 4096\n", 4096},
		{"no such line", 2, "file 90000\n", -1},
		{"no number", 2, "anon 1\nshmem x\n", -1},
	} {
		dir := fakeRoot(t, map[string]string{"g/memory.stat": c.stat, "g/memory.events": "oom_kill 0\n", "g/memory.max_usage_in_bytes": "1\n", "g/memory.oom_control": "oom_kill 0\n", "g/cpu.stat": "usage_usec 1\nuser_usec 1\nsystem_usec 0\n"}) + "/g"
		u, err := (&Group{version: c.version, parts: []part{{hierarchy: hierarchy{controllers: []string{"memory"}}, dir: dir}}}).Usage()
		if c.want < 0 && err == nil || c.want >= 0 && (err != nil || u.RSS != c.want) {
			t.Errorf("%s: %d, %v; want %d", c.name, u.RSS, err, c.want)
		}
	}
}
