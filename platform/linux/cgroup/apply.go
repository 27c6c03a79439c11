// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// Apply writes limits. All are tried; the error joins those that failed, each of
// which is as it was. A limit whose file the group does not have is left out, and
// Lacks says so: that is so for every group of this machine, because the controller
// is not mounted, or not handed down to the base.
func (g *Group) Apply(l Limits) error {
	g.lacks = nil
	var all error
	var later []Write
	write := func(w Write) error {
		dir := g.Dir(w.Controller)
		if dir == "" || exists(dir, "") && !exists(dir, w.File) {
			g.lack(w.Promise)
			return nil
		}
		err := writeFile(filepath.Join(dir, w.File), w.Value)
		switch {
		case errors.Is(err, unix.EOPNOTSUPP): // as of memory.soft_limit_in_bytes of a real-time kernel
			g.lack(w.Promise)
			return nil
		case err != nil:
			return errs.E("cgroup.Apply", errs.Broken, filepath.Join(dir, w.File), err)
		}
		return nil
	}
	for _, w := range l.Plan(g.version) {
		err := write(w)
		if errors.Is(err, unix.EINVAL) && g.version == 1 && w.Controller == "memory" {
			// It would be beyond another limit, which may be on its way to higher.
			later = append(later, w)
			continue
		}
		all = errors.Join(all, err)
	}
	for _, w := range later {
		all = errors.Join(all, write(w))
	}
	if len(l.Closed) > 0 && g.version == 2 {
		switch err := attachDevices(g.parts[0].dir, l.Closed); {
		case errs.Is(err, errs.Unsupported):
			g.lack("devices that are not its own are open to it (" + err.Error() + ")")
		case err != nil:
			all = errors.Join(all, err)
		}
	}
	return all
}

func (g *Group) lack(promise string) {
	if promise != "" && !slices.Contains(g.lacks, promise) {
		g.lacks = append(g.lacks, promise)
	}
}

// Lacks says, in words for a log, what of the limits of the last Apply this machine
// does not have.
func (g *Group) Lacks() []string { return slices.Clone(g.lacks) }

// Has reports whether the group is under controller.
func (g *Group) Has(controller string) bool {
	if g.version == 1 {
		return g.Dir(controller) != ""
	}
	text, err := os.ReadFile(filepath.Join(g.parts[0].dir, "cgroup.controllers"))
	return err == nil && slices.Contains(strings.Fields(string(text)), controller)
}

// Bounds of what a job may make below its own group, on version 2: a glidein has a
// group for each of its slots, and who removes the groups walks through all.
const (
	mostBelow   = "1000"
	deepestOnes = "16"
)

// Give lets a user make groups below this one and move its processes there, as
// HTCondor does: a glidein divides what it has. The limits stay root's. On version 2
// a group with processes of its own can hand no controller down, so that the job's
// are in one below, which is not the user's: see processes.
func (g *Group) Give(uid, gid uint32) error {
	files := []string{""}
	if g.version == 2 {
		files = append(files, "cgroup.procs", "cgroup.subtree_control", "cgroup.threads")
	}
	for _, p := range g.parts {
		if g.version == 2 {
			for file, most := range map[string]string{"cgroup.max.descendants": mostBelow, "cgroup.max.depth": deepestOnes} {
				if err := writeFile(filepath.Join(p.dir, file), most); err != nil && !errors.Is(err, os.ErrNotExist) {
					return errs.E("cgroup.Give", errs.Broken, p.dir, err)
				}
			}
		} else if p.optional() {
			continue // what is not there for every job, no job can count on
		}
		for _, file := range files {
			err := os.Lchown(filepath.Join(p.dir, file), int(uid), int(gid))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return errs.E("cgroup.Give", errs.Broken, p.dir, err)
			}
		}
	}
	return nil
}

// inheritCPUs gives a group of the cpuset controller of version 1, which begins with
// no core and no memory node and then takes no process in, those of its parent.
func inheritCPUs(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(own)) != "" {
			continue
		}
		above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, file), strings.TrimSpace(string(above))); err != nil {
			return err
		}
	}
	return nil
}
