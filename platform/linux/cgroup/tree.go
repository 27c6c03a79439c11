// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// Options says where control groups are and where ours go.
type Options struct {
	Root string // the mount, /sys/fs/cgroup
	Base string // BASE_CGROUP, the parent of all jobs' groups, may have several levels; "" turns groups off
	Self []byte // text of /proc/self/cgroup
	// Version picks one when a machine has both: 0 takes 2 where it owns the
	// memory controller or stands alone, else 1.
	Version int
	// Delegated makes the base below our own group instead of below the root
	// of the hierarchy (version 2 without root's rights).
	Delegated bool
}

// hierarchy is one directory tree of the kernel's: all of version 2, or one of
// version 1 with the controllers that are bound to it.
type hierarchy struct {
	controllers []string // empty for version 2
	base        string   // directory of the base
	home        string   // directory of the group that this process came from
}

func (h hierarchy) has(controller string) bool { return slices.Contains(h.controllers, controller) }

// optional reports whether a group is made there only for who needs it.
func (h hierarchy) optional() bool {
	return len(h.controllers) > 0 && !slices.ContainsFunc(v1Controllers[:], h.has)
}

// Tree is a base below which groups can be made.
type Tree struct {
	version int
	parts   []hierarchy
	above   string // version 2: the directory below which the base is, which is not ours
	given   bool   // version 2: above was delegated to us
}

// Version is 1 or 2.
func (t *Tree) Version() int { return t.version }

// Open finds the hierarchies and makes the base in each. It fails with
// Unsupported where there are no control groups or they are turned off, and
// with Denied where they may not be written: the caller goes on without.
func Open(o Options) (*Tree, error) {
	const op = "cgroup.Open"
	if o.Base == "" {
		return nil, errs.E(op, errs.Unsupported, "", errors.New("BASE_CGROUP is empty"))
	}
	for _, part := range strings.Split(strings.Trim(o.Base, "/"), "/") {
		if !validName(part) {
			return nil, errs.E(op, errs.Invalid, o.Base, errors.New("BASE_CGROUP is no relative path"))
		}
	}
	t := find(o)
	if t == nil {
		return nil, errs.E(op, errs.Unsupported, o.Root, errors.New("no control groups are mounted there"))
	}
	for _, h := range t.parts {
		if h.optional() {
			continue // with the first group there
		}
		if err := makeBase(h.base); err != nil {
			kind := errs.Broken
			if errors.Is(err, fs.ErrPermission) || isReadOnly(err) {
				kind = errs.Denied
			}
			return nil, errs.E(op, kind, h.base, err)
		}
	}
	if t.version == 2 {
		t.passControllers("cpu", "memory", "pids", "io")
	}
	return t, nil
}

// daemonsName is the group of the Execution Point itself below one that was delegated.
const daemonsName = "condor_daemons"

// MakeWay moves this process, and with it all that it starts from then on, to a group
// below the one that was delegated: the kernel hands controllers down only from a group
// that has no processes itself. HTCondor's starter does not, and its jobs have no limits
// there. It does nothing where it is done, and on version 1.
func MakeWay(o Options) error {
	const op = "cgroup.MakeWay"
	t := find(o)
	if t == nil || t.version != 2 || !o.Delegated || t.parts[0].home != t.above {
		return nil
	}
	dir := filepath.Join(t.above, daemonsName)
	err := os.Mkdir(dir, 0o755)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = writeFile(filepath.Join(dir, "cgroup.procs"), "0")
	}
	if err != nil {
		return errs.E(op, errs.Denied, dir, err)
	}
	return nil
}

// find looks at the mounts by the files that the kernel puts there.
func find(o Options) *Tree {
	own := ParseMembership(o.Self)
	base := strings.Trim(o.Base, "/")
	v2 := func(mount string) *Tree {
		home := filepath.Join(mount, pathIn(own, ""))
		at := mount
		if o.Delegated {
			at = home
			if filepath.Base(home) == daemonsName { // MakeWay
				at = filepath.Dir(home)
			}
		}
		return &Tree{version: 2, above: at, given: o.Delegated, parts: []hierarchy{{base: filepath.Join(at, base), home: home}}}
	}
	if o.Version != 1 && exists(o.Root, "cgroup.controllers") {
		return v2(o.Root)
	}
	if o.Version == 2 {
		if exists(o.Root, "unified/cgroup.procs") {
			return v2(filepath.Join(o.Root, "unified"))
		}
		return nil
	}
	t := &Tree{version: 1}
	for _, name := range append(v1Controllers[:], v1Optional[:]...) {
		mount := filepath.Join(o.Root, name)
		if !exists(mount, "tasks") {
			continue
		}
		// cpu and cpuacct are mostly two names of one mount
		if real, err := filepath.EvalSymlinks(mount); err == nil {
			mount = real
		}
		at := filepath.Join(mount, base)
		if i := slices.IndexFunc(t.parts, func(h hierarchy) bool { return h.base == at }); i >= 0 {
			t.parts[i].controllers = append(t.parts[i].controllers, name)
			continue
		}
		t.parts = append(t.parts, hierarchy{
			controllers: []string{name}, base: at, home: filepath.Join(mount, pathIn(own, name)),
		})
	}
	// Without the freezer nothing can be caught safely, and then the process
	// tree serves better.
	if !slices.ContainsFunc(t.parts, func(h hierarchy) bool { return h.has("freezer") }) {
		return nil
	}
	return t
}

// makeBase makes the directory and what is above it, and checks that groups
// can be made in it.
func makeBase(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return writable(dir)
}

// passControllers hands to the jobs' groups the controllers that the base has
// got from above, through each group that the base's name has made. What cannot be
// had is done without; what is above is not touched, unless it was delegated.
func (t *Tree) passControllers(controllers ...string) {
	base := t.parts[0].base
	rel, err := filepath.Rel(t.above, base)
	if err != nil {
		return
	}
	var dirs []string
	if t.given {
		dirs = append(dirs, t.above)
	}
	dir := t.above
	for part := range strings.SplitSeq(rel, "/") {
		dir = filepath.Join(dir, part)
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return
		}
		for _, c := range controllers {
			if slices.Contains(strings.Fields(string(have)), c) {
				_ = writeFile(filepath.Join(dir, "cgroup.subtree_control"), "+"+c)
			}
		}
	}
}

// Has reports whether the jobs' groups have a controller.
func (t *Tree) Has(controller string) bool {
	if t.version == 2 {
		have, err := os.ReadFile(filepath.Join(t.parts[0].base, "cgroup.subtree_control"))
		return err == nil && slices.Contains(strings.Fields(string(have)), controller)
	}
	return slices.ContainsFunc(t.parts, func(h hierarchy) bool { return h.has(controller) })
}

// Create makes the group called name. One that exists from before is removed
// first, so that its peaks are not taken for this job's. One that still holds
// processes is a Conflict: they may be somebody's.
func (t *Tree) Create(name string) (*Group, error) { return t.CreateFor(name, Limits{}) }

// CreateFor is Create under those controllers too that limits need. Others that an
// earlier job needed are left.
func (t *Tree) CreateFor(name string, limits Limits) (*Group, error) {
	const op = "cgroup.Create"
	if !validName(name) {
		return nil, errs.E(op, errs.Invalid, name, errors.New("not a name for a group"))
	}
	needs := limits.needs()
	if t.version == 2 && slices.Contains(needs, "cpuset") {
		t.passControllers("cpuset")
	}
	g := t.group(name)
	stale := func(p part) bool { return p.optional() && !slices.ContainsFunc(needs, p.has) }
	for i, p := range g.parts {
		err := t.create(p, stale(p))
		if err != nil {
			for _, made := range g.parts[:i] {
				_ = removeTree(made.dir)
			}
			kind := errs.Broken
			switch {
			case isBusy(err):
				kind, err = errs.Conflict, fmt.Errorf("processes are in it that somebody has to end: %w", err)
			case errors.Is(err, fs.ErrPermission):
				kind = errs.Denied
			}
			return nil, errs.E(op, kind, name, err)
		}
	}
	g.parts = slices.DeleteFunc(g.parts, stale)
	return g, nil
}

// create makes one directory of a group, or only sees that there is none.
func (t *Tree) create(p part, none bool) error {
	if none {
		return removeTree(p.dir)
	}
	if p.optional() {
		if err := os.MkdirAll(p.base, 0o755); err != nil {
			return err
		}
	}
	err := os.Mkdir(p.dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		if err = removeTree(p.dir); err == nil {
			err = os.Mkdir(p.dir, 0o755)
		}
	}
	switch {
	case err != nil:
	case t.version == 2:
		err = os.Mkdir(processes(p.dir), 0o755)
	case p.has("cpuset"):
		if err = inheritAll(mountOf(p.hierarchy), p.base); err == nil {
			err = inheritCPUs(p.dir)
		}
	}
	if err != nil {
		_ = removeTree(p.dir)
	}
	return err
}

// processes is the directory below a group of version 2 that the job's processes are
// in. The group itself has the limits and may be the user's: see Give.
func processes(dir string) string { return filepath.Join(dir, scope(filepath.Base(dir))) }

// RemoveBase takes the base away where it is empty; elsewhere it stays.
func (t *Tree) RemoveBase() {
	for _, h := range t.parts {
		_ = rmdir(h.base)
	}
}

// Lookup returns the group called name if it exists in any hierarchy.
func (t *Tree) Lookup(name string) (*Group, bool) {
	if !validName(name) {
		return nil, false
	}
	g := t.group(name)
	g.parts = slices.DeleteFunc(g.parts, func(p part) bool { return !exists(p.dir, "") })
	return g, len(g.parts) > 0
}

func (t *Tree) group(name string) *Group {
	g := &Group{version: t.version, name: name, parts: make([]part, 0, len(t.parts))}
	for _, h := range t.parts {
		g.parts = append(g.parts, part{hierarchy: h, dir: filepath.Join(h.base, name)})
	}
	return g
}

// inheritAll is inheritCPUs for each group from below mount to dir.
func inheritAll(mount, dir string) error {
	if len(dir) <= len(mount) {
		return nil
	}
	if err := inheritAll(mount, filepath.Dir(dir)); err != nil {
		return err
	}
	return inheritCPUs(dir)
}

func exists(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return err == nil
}

// removeTree removes a group and the groups that the job made below it. The
// kernel's files in it go with the directory and cannot be removed.
func removeTree(dir string) error {
	err := walk(dir, func(int) error { return nil }, func(above int, name string) error {
		if err := unix.Unlinkat(above, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
			return &fs.PathError{Op: "rmdir", Path: name, Err: err}
		}
		return nil
	})
	if err == nil {
		err = rmdir(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
