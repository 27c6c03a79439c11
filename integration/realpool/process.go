// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc: USER_HZ is 100 on every Linux that
// HTCondor runs on.
const tick = 10 * time.Millisecond

// Process is what /proc says of one.
type Process struct {
	PID, Parent int
	Name        string // the program's, cut after 15 bytes
	State       byte   // 'Z' for one that nobody waited for
	Started     uint64 // ticks since boot
	Own         time.Duration
	Children    time.Duration // processor time of those it waited for
}

// ReadProcess reads one.
func ReadProcess(pid int) (Process, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, err
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Process{}, fmt.Errorf("/proc/%d/stat: no name in %q", pid, b)
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return Process{}, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(f))
	}
	var n [20]uint64
	for i := 1; i < len(n); i++ {
		n[i], _ = strconv.ParseUint(f[i], 10, 64) // those that may be negative are not used
	}
	return Process{
		PID: pid, Parent: int(n[1]), Name: string(b[open+1 : end]), State: f[0][0], Started: n[19],
		Own: time.Duration(n[11]+n[12]) * tick, Children: time.Duration(n[13]+n[14]) * tick,
	}, nil
}

// Processes are those that belong to the pool: its directory is in their
// environment or command line. Tools that run just then are among them.
func (p *Pool) Processes() []Process {
	var all []Process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, _ := os.ReadFile(dir + "/environ")
		line, _ := os.ReadFile(dir + "/cmdline")
		if !bytes.Contains(env, []byte(p.Dir)) && !bytes.Contains(line, []byte(p.Dir)) {
			continue
		}
		if one, err := ReadProcess(pid); err == nil {
			all = append(all, one)
		}
	}
	return all
}

// Below are those of a list that descend from a process.
func Below(all []Process, pid int) []Process {
	var found []Process
	for _, one := range all {
		if one.Parent == pid {
			found = append(found, one)
			found = append(found, Below(all, one.PID)...)
		}
	}
	return found
}

// Everything are all processes of the machine.
func Everything() []Process {
	var all []Process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if one, err := ReadProcess(pid); err == nil {
			all = append(all, one)
		}
	}
	return all
}

// Descriptors are the open ones of a process, by what they lead to.
func Descriptors(pid int) ([]string, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range list {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			all = append(all, to)
		}
	}
	return all, nil
}

// Resident is the memory of a process that is there, in bytes.
func Resident(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm: %q", pid, b)
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// Spent is the processor time of the EP so far: the daemon, all that it waited
// for, the jobs among them, and its process daemon, if it has one.
func (e *EP) Spent() (time.Duration, error) {
	one, err := ReadProcess(e.PID())
	if err != nil {
		return 0, err
	}
	total := one.Own + one.Children
	for _, child := range Below(Everything(), one.PID) {
		if child.Name == "condor_procd" {
			total += child.Own + child.Children
		}
	}
	return total, nil
}
