// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Final is what a group tells once, when its processes are gone and before it is
// removed: no look at a job that runs pays for it. What the kernel does not keep is
// nil or 0.
type Final struct {
	// Anonymous is the least that the group's peak was without the page cache: what
	// is charged to the group still, now that its processes are gone, is cache. Several
	// processes that each were small for a moment are seen in it, and in nothing else.
	// HTCondor takes the page cache off the peak of version 2 in the same way.
	Anonymous       int64 // bytes
	Processes       int64 // and threads, the most at a time
	Memory, CPU, IO *Stall
}

// Final reads these figures. A file that cannot be read is an error, and the rest
// still counts.
func (g *Group) Final(u Usage) (Final, error) {
	var f Final
	var all error
	if dir := g.Dir("memory"); dir != "" && u.Memory && u.Peak > 0 {
		cache, err := g.cache(dir)
		all = err
		if err == nil {
			f.Anonymous = max(0, u.Peak-cache)
		}
	}
	if dir := g.Dir("pids"); dir != "" && exists(dir, "pids.peak") { // since 6.1
		n, err := readNumber(dir, "pids.peak")
		f.Processes, all = max(0, n), errors.Join(all, err)
	}
	if g.version != 2 {
		return f, all // version 1 keeps no pressure
	}
	for _, p := range [...]struct {
		file string
		to   **Stall
	}{{"memory.pressure", &f.Memory}, {"cpu.pressure", &f.CPU}, {"io.pressure", &f.IO}} {
		text, err := os.ReadFile(filepath.Join(g.parts[0].dir, p.file))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) {
			continue // before 4.20, or it was told not to keep it
		}
		var s Stall
		ok := false
		if err == nil {
			s, ok, err = Pressure(text)
		}
		if all = errors.Join(all, err); ok {
			*p.to = &s
		}
	}
	return f, all
}

// cache is what of the memory charged to the group is page cache. Shared memory
// counts as such there, and is none.
func (g *Group) cache(dir string) (int64, error) {
	names := [2]string{"total_cache", "total_shmem"}
	if g.version == 2 {
		names = [2]string{"file", "shmem"}
	}
	text, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, err
	}
	cache, ok, err := Field(text, names[0])
	if err == nil && !ok {
		err = errors.New("memory.stat has no line " + names[0])
	}
	shared, _, serr := Field(text, names[1])
	return max(0, cache-shared), errors.Join(err, serr)
}
