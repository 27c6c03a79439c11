// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// Group is the control group of one job: one directory on version 2, one in
// each hierarchy on version 1. It is not safe for concurrent use.
type Group struct {
	version int
	name    string
	parts   []part
	lacks   []string // see Lacks
}

type part struct {
	hierarchy
	dir string
}

// Name is what Create was given.
func (g *Group) Name() string { return g.name }

// Version is 1 or 2.
func (g *Group) Version() int { return g.version }

// Dir returns the directory of the hierarchy with controller, "" if there is
// none. On version 2 there is one directory for everything.
func (g *Group) Dir(controller string) string {
	for _, p := range g.parts {
		if g.version == 2 || p.has(controller) {
			return p.dir
		}
	}
	return ""
}

// Procs lists the processes in the group and the groups below it.
func (g *Group) Procs() ([]int, error) {
	if g.version == 2 {
		return procsBelow(g.parts[0].dir, nil)
	}
	dir := g.Dir("freezer")
	if dir == "" {
		return nil, errs.E("cgroup.Procs", errs.Unsupported, g.name, errors.New("no freezer"))
	}
	return procsBelow(dir, nil)
}

// procsBelow adds the processes in the group at dir and those below it to pids.
func procsBelow(dir string, pids []int) ([]int, error) {
	err := walk(dir, func(fd int) error {
		text, err := readAt(fd, "cgroup.procs")
		if errors.Is(err, unix.EOPNOTSUPP) { // threaded: its processes stand in a group above
			return nil
		}
		if err != nil {
			return err
		}
		more, err := Pids(text)
		pids = append(pids, more...)
		return err
	}, nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return pids, err
}

// freezeWait bounds how long a group may take to stand still. A process in
// uninterruptible sleep may take for ever.
const freezeWait = 100 * time.Millisecond

// Freeze stops every process of the group and waits a moment until they stand
// still. It reports false if some did not in time; they will when they can.
func (g *Group) Freeze() (still bool, err error) {
	file, word := "cgroup.freeze", "1"
	if g.version == 1 {
		file, word = "freezer.state", "FROZEN"
	}
	dir := g.Dir("freezer")
	if dir == "" {
		return false, errs.E("cgroup.Freeze", errs.Unsupported, g.name, errors.New("no freezer"))
	}
	if err := writeFile(filepath.Join(dir, file), word); err != nil {
		return false, errs.E("cgroup.Freeze", errs.Broken, g.name, err)
	}
	for step, waited := 200*time.Microsecond, time.Duration(0); ; step *= 2 {
		if frozen, err := g.frozen(dir); frozen || err != nil {
			return frozen, err
		}
		if waited > freezeWait {
			return false, nil
		}
		time.Sleep(step) // the kernel has no event for version 1
		waited += step
	}
}

func (g *Group) frozen(dir string) (bool, error) {
	if g.version == 1 {
		text, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
		return strings.TrimSpace(string(text)) == "FROZEN", err
	}
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return false, err
	}
	n, _, err := Field(text, "frozen")
	return n == 1, err
}

// Thaw lets the group go on.
func (g *Group) Thaw() error {
	file, word := "cgroup.freeze", "0"
	if g.version == 1 {
		file, word = "freezer.state", "THAWED"
	}
	dir := g.Dir("freezer")
	if dir == "" {
		return nil
	}
	if g.version == 1 {
		thawBelow(dir)
	}
	err := writeFile(filepath.Join(dir, file), word)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errs.E("cgroup.Thaw", errs.Broken, g.name, err)
	}
	return nil
}

// thawBelow thaws the groups that the job has made below dir and may have frozen
// itself: on version 1 no signal reaches a process there.
func thawBelow(dir string) {
	_ = walk(dir, func(fd int) error {
		own, err := unix.Openat(fd, "freezer.state", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil // it is gone
		}
		defer unix.Close(own)
		_, _ = unix.Write(own, []byte("THAWED"))
		return nil
	}, nil)
}

// Kill sends SIGKILL to every process that is in the group or below it at this
// moment and returns how many there were. None can escape it by forking. They
// need a moment to go; call it until it returns 0. On version 1 the group is
// thawed afterwards, for a frozen process does not die.
func (g *Group) Kill() (int, error) {
	if g.version == 2 {
		dir := g.parts[0].dir
		pids, err := procsBelow(dir, nil)
		if len(pids) == 0 {
			return 0, err
		}
		werr := writeFile(filepath.Join(dir, "cgroup.kill"), "1")
		if werr == nil {
			return len(pids), err
		}
		if !errors.Is(werr, fs.ErrNotExist) { // kernels before 5.14 lack the file
			return 0, errs.E("cgroup.Kill", errs.Broken, g.name, werr)
		}
	}
	pids, err := g.Procs()
	if len(pids) == 0 {
		return 0, err
	}
	_, ferr := g.Freeze()
	// once frozen nobody leaves, so that no pid can have become another's
	pids, err = g.Procs()
	n := 0
	for _, pid := range pids {
		if kill(pid) == nil {
			n++
		}
	}
	if g.version == 2 {
		return n, errors.Join(err, ferr) // frozen processes die there
	}
	return n, errors.Join(err, ferr, g.Thaw())
}

// Remove takes the group away, with those that the job made below it. It
// fails with Conflict while processes are in it.
func (g *Group) Remove() error {
	var all error
	for _, p := range g.parts {
		if g.version == 2 {
			_ = rmdir(processes(p.dir)) // which is all there is mostly
		}
		if err := rmdir(p.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := removeTree(p.dir); err != nil {
			kind := errs.Broken
			if isBusy(err) {
				kind = errs.Conflict
			}
			all = errors.Join(all, errs.E("cgroup.Remove", kind, g.name, err))
		}
	}
	return all
}
