// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Usage is what a group's counters say. The group counts what has ended too.
type Usage struct {
	CPU      bool          // the processor times are known
	Total    time.Duration // all processor time
	User     time.Duration // version 2 only, as is Sys
	Sys      time.Duration
	Memory   bool  // the memory figures are known
	RSS      int64 // memory of processes now and what they share, each page once, bytes
	Peak     int64 // the most memory charged so far, page cache included, bytes; 0 if the kernel does not keep it
	OOMKills int64 // processes killed for memory
	Over     Over  // why that was, where OOMKills is not 0
	Block    bool  // what was read and written is known
	IO       IO
}

// Over is what is known of a group in which processes were killed for memory.
type Over struct {
	Limit int64 // in bytes; 0 for none
	// Hits is how often the group could not be given memory because of its own limit.
	// 0 means that the whole machine, or a group above, was short of it.
	Hits int64
	// Below says that groups which the job made below its own came to limits that it
	// gave them, and the job as a whole to none.
	Below bool
}

// Usage reads the counters. A controller that is not there leaves its part
// unknown; a file that cannot be read is an error, and the rest still counts.
func (g *Group) Usage() (Usage, error) {
	if g.version == 2 {
		return g.usage2()
	}
	return g.usage1()
}

// noLimit is more than any machine has: version 1 shows the largest number of pages
// where there is no limit.
const noLimit = 1 << 60

// nearly is the part of a limit within which a peak is at the limit.
const nearly = 50

func atLimit(peak, limit int64) bool { return limit < noLimit && peak >= limit-limit/nearly }

// killsBelow adds up the processes that were killed for memory in the groups which the
// job made below dir: version 1 counts them there alone, although it is the limit of dir
// that they came to. full says that one of those groups came to a limit of its own.
func killsBelow(dir string) (kills int64, full bool, err error) {
	// Each group below adds a link. Mostly there is none, and many jobs are looked at.
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink == 2 {
			return 0, false, nil
		}
	}
	top := true
	err = walk(dir, func(fd int) error {
		if top {
			top = false
			return nil
		}
		text, err := readAt(fd, "memory.oom_control")
		if err != nil {
			return err
		}
		n, _, err := Field(text, "oom_kill")
		if err != nil {
			return err
		}
		kills += n
		var figures [2]int64
		for i, file := range [...]string{"memory.max_usage_in_bytes", "memory.limit_in_bytes"} {
			text, err := readAt(fd, file)
			if err != nil || len(text) == 0 {
				return err // it is gone
			}
			if figures[i], err = Number(text); err != nil {
				return err
			}
		}
		full = full || atLimit(figures[0], figures[1])
		return nil
	}, nil)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return kills, full, err
}

func (g *Group) usage1() (Usage, error) {
	var u Usage
	var all error
	if dir := g.Dir("cpuacct"); dir != "" {
		ns, err := readNumber(dir, "cpuacct.usage")
		u.CPU, u.Total, all = err == nil, time.Duration(ns), errors.Join(all, err)
	}
	if dir := g.Dir("memory"); dir != "" {
		rss, err := readMemory(dir, "total_rss", "total_shmem")
		peak, perr := readNumber(dir, "memory.max_usage_in_bytes")
		oom, oerr := readField(dir, "memory.oom_control", "oom_kill")
		below, full, berr := killsBelow(dir)
		oom += below
		u.Memory, u.RSS, u.Peak, u.OOMKills = err == nil, rss, peak, oom
		all = errors.Join(all, err, perr, oerr, berr)
		if oom > 0 {
			limit, lerr := readNumber(dir, "memory.limit_in_bytes")
			if limit < noLimit {
				u.Over.Limit = limit
			}
			// It counts each time that memory had to be taken back from the page cache as
			// well: only at the limit nothing was left to take.
			hits, herr := readNumber(dir, "memory.failcnt")
			if atLimit(peak, limit) {
				// Some kernels do not count what a limit of memory and swap together refuses.
				u.Over.Hits = max(hits, 1)
			}
			u.Over.Below = full && u.Over.Hits == 0
			all = errors.Join(all, lerr, herr)
		}
	}
	return u, all
}

func (g *Group) usage2() (Usage, error) {
	var u Usage
	dir := g.parts[0].dir
	text, all := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if all == nil {
		total, ok, err1 := Field(text, "usage_usec")
		user, _, err2 := Field(text, "user_usec")
		sys, _, err3 := Field(text, "system_usec")
		all = errors.Join(err1, err2, err3)
		u.CPU = ok && all == nil
		u.Total = time.Duration(total) * time.Microsecond
		u.User, u.Sys = time.Duration(user)*time.Microsecond, time.Duration(sys)*time.Microsecond
	}
	if exists(dir, "io.stat") {
		text, err := os.ReadFile(filepath.Join(dir, "io.stat"))
		if err == nil {
			u.IO, err = IOStat(text)
		}
		u.Block, all = err == nil, errors.Join(all, err)
	}
	if !exists(dir, "memory.stat") {
		return u, all
	}
	rss, err := readMemory(dir, "anon", "shmem")
	oom, oerr := readField(dir, "memory.events", "oom_kill")
	u.Memory, u.RSS, u.OOMKills = err == nil, rss, oom
	if oom > 0 {
		// "max" is no number, and no limit.
		if text, err := os.ReadFile(filepath.Join(dir, "memory.max")); err == nil && strings.TrimSpace(string(text)) != "max" {
			u.Over.Limit, err = Number(text)
			oerr = errors.Join(oerr, err)
		}
		// memory.events counts what happens in the groups that the job made, too.
		// HTCondor holds a job for each kill there.
		hits, herr := readField(dir, "memory.events", "oom")
		u.Over.Hits = hits
		if exists(dir, "memory.events.local") { // since 5.2
			own, err := readField(dir, "memory.events.local", "oom")
			u.Over.Hits, u.Over.Below = own, own == 0 && hits > 0
			herr = errors.Join(herr, err)
		}
		oerr = errors.Join(oerr, herr)
	}
	if exists(dir, "memory.peak") { // since 5.19
		var perr error
		u.Peak, perr = readNumber(dir, "memory.peak")
		err = errors.Join(err, perr)
	}
	return u, errors.Join(all, err, oerr)
}

// readMemory is what processes have, without the page cache. The kernel counts a page
// that several of them have once. What lies in a tmpfs or is shared by name is theirs as
// well, and ends at the same limit; HTCondor counts it on version 2 alone.
func readMemory(dir, own, shared string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, err
	}
	n, ok, err := Field(text, own)
	if err == nil && !ok {
		err = errors.New("memory.stat has no line " + own)
	}
	m, _, merr := Field(text, shared) // old kernels do not say
	return n + m, errors.Join(err, merr)
}

func readNumber(dir, file string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	return Number(text)
}

func readField(dir, file, key string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	n, ok, err := Field(text, key)
	if err == nil && !ok {
		err = errors.New(file + " has no line " + key)
	}
	return n, err
}
