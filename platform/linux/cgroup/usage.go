// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Usage is what a group's counters say. The group counts what has ended too.
type Usage struct {
	CPU      bool          // the processor times are known
	Total    time.Duration // all processor time
	User     time.Duration // version 2 only, as is Sys
	Sys      time.Duration
	Memory   bool  // the memory figures are known
	RSS      int64 // anonymous memory now, bytes
	Peak     int64 // the most memory charged so far, page cache included, bytes; 0 if the kernel does not keep it
	OOMKills int64 // processes killed for memory
	Block    bool  // what was read and written is known
	IO       IO
}

// Usage reads the counters. A controller that is not there leaves its part
// unknown; a file that cannot be read is an error, and the rest still counts.
func (g *Group) Usage() (Usage, error) {
	if g.version == 2 {
		return g.usage2()
	}
	return g.usage1()
}

func (g *Group) usage1() (Usage, error) {
	var u Usage
	var all error
	if dir := g.Dir("cpuacct"); dir != "" {
		ns, err := readNumber(dir, "cpuacct.usage")
		u.CPU, u.Total, all = err == nil, time.Duration(ns), errors.Join(all, err)
	}
	if dir := g.Dir("memory"); dir != "" {
		rss, err := readField(dir, "memory.stat", "total_rss")
		peak, perr := readNumber(dir, "memory.max_usage_in_bytes")
		oom, oerr := readField(dir, "memory.oom_control", "oom_kill")
		u.Memory, u.RSS, u.Peak, u.OOMKills = err == nil, rss, peak, oom
		all = errors.Join(all, err, perr, oerr)
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
	rss, err := readField(dir, "memory.stat", "anon")
	oom, oerr := readField(dir, "memory.events", "oom_kill")
	u.Memory, u.RSS, u.OOMKills = err == nil, rss, oom
	if exists(dir, "memory.peak") { // since 5.19
		var perr error
		u.Peak, perr = readNumber(dir, "memory.peak")
		err = errors.Join(err, perr)
	}
	return u, errors.Join(all, err, oerr)
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
