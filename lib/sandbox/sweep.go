// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Private says why a user other than the one who runs this process could have
// written in an open directory, as host.PrivateDirs does. nil stands for a
// system on which nobody can tell: there every directory counts as private.
type Private func(dir *os.Root) error

// Swept is what a sweep found.
type Swept struct {
	Removed []string // sandboxes of dead starters, removed
	Live    []string // sandboxes whose starters are running, left alone
	Kept    []string // sandboxes that were to stay
	Killed  int      // processes that dead starters had left running
	// Suspects are processes that may be of a dead starter's job, which nothing
	// proves: they were left alone.
	Suspects []string
}

// Sweeper clears away what dead starters have left.
type Sweeper struct {
	Census  host.Census
	Private Private
	// Mounter takes the file systems of scratch directories away that are seen
	// here; nil where there are none.
	Mounter host.Mounter
}

// Sweep clears below execute what dead starters have left: it kills the
// processes that their records prove to be theirs, and removes their
// sandboxes. Live starters and anything that is no sandbox are left alone. A
// sandbox that cannot be cleared is an error, and the others are still done.
// A record counts only in a directory that is private. What looks like a
// sandbox and is not private is removed where only those make directories who
// may write in execute, and is an error where everybody may.
func (w Sweeper) Sweep(execute string) (Swept, error) {
	const op = "sandbox.Sweep"
	var swept Swept
	root, err := os.OpenRoot(execute)
	if errors.Is(err, fs.ErrNotExist) {
		return swept, nil
	}
	if err != nil {
		return swept, errs.E(op, kindOf(err), execute, err)
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return swept, errs.E(op, kindOf(err), execute, err)
	}
	entries, err := dir.ReadDir(-1)
	dir.Close()
	if err != nil {
		return swept, errs.E(op, kindOf(err), execute, err)
	}
	var all error
	for _, e := range entries {
		if _, ok := starterPID(e.Name()); !ok || !e.IsDir() {
			continue
		}
		if err := swept.one(root, execute, e.Name(), w); err != nil {
			all = errors.Join(all, errs.E(op, errs.Other, filepath.Join(execute, e.Name()), err))
		}
	}
	return swept, all
}

// Reclaim does for one dead starter what Sweep does for all: its processes are
// killed and its sandbox is removed. It is no error if there is none.
func (w Sweeper) Reclaim(execute string, starter host.ProcID) (Swept, error) {
	var swept Swept
	root, err := os.OpenRoot(execute)
	if errors.Is(err, fs.ErrNotExist) {
		return swept, nil
	}
	if err != nil {
		return swept, errs.E("sandbox.Reclaim", kindOf(err), execute, err)
	}
	defer root.Close()
	name := prefix + strconv.Itoa(starter.PID)
	if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return swept, nil
	}
	return swept, swept.one(root, execute, name, w)
}

// one deals with one sandbox.
func (s *Swept) one(root *os.Root, execute, name string, w Sweeper) error {
	path, census, private := filepath.Join(execute, name), w.Census, w.Private
	record, err := readRecord(root, name, private)
	if errs.Is(err, errs.Denied) && open(root) {
		return err // made by another user, and perhaps in use
	}
	switch {
	case errs.Is(err, errs.Unsupported):
		return err // of a newer version: not ours to judge
	case err != nil:
		// Its starter died before it could write, or something else made the
		// directory. The pid in the name is all there is to ask.
		pid, _ := starterPID(name)
		if census.Running(pid) {
			s.Live = append(s.Live, path)
			return nil
		}
	case record.Boot == census.Boot() && census.Alive(record.Starter):
		s.Live = append(s.Live, path)
		return nil
	default:
		n, err := census.KillRemains(record.Remains())
		s.Killed += n
		if err != nil {
			return err
		}
		suspects, err := census.Suspects(record.Remains(), path)
		if err != nil {
			return err
		}
		for _, who := range suspects {
			s.Suspects = append(s.Suspects, who+", after the starter of "+record.Activation+" had died")
		}
		if record.Keep {
			s.Kept = append(s.Kept, path)
			return nil
		}
	}
	if err := errors.Join(w.unmount(root, name), removeAll(root, name)); err != nil {
		return errs.E("sandbox.Sweep", kindOf(err), path, err)
	}
	s.Removed = append(s.Removed, path)
	return nil
}

// unmount takes the file system of a dead starter's scratch directory away, if it has
// one that is seen here.
func (w Sweeper) unmount(root *os.Root, name string) error {
	if w.Mounter == nil {
		return nil
	}
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return w.Mounter.Unmount(dir, scratchDir)
}

// open reports whether everybody may make directories in root.
func open(root *os.Root) bool {
	info, err := root.Stat(".")
	return err != nil || info.Mode().Perm()&0o002 != 0
}

// readRecord reads the record of the sandbox name. It is Denied if another user
// could have written it.
func readRecord(root *os.Root, name string, private Private) (Record, error) {
	own, record, err := openRecord(root, name, private)
	if own != nil {
		own.Close()
	}
	return record, err
}

// openRecord is readRecord that leaves the starter's own directory open for the
// caller, unless there is an error.
func openRecord(root *os.Root, name string, private Private) (*os.Root, Record, error) {
	const op = "sandbox.readRecord"
	missing := func(err error) (*os.Root, Record, error) { return nil, Record{}, errs.E(op, errs.NotFound, name, err) }
	dir, err := root.OpenRoot(name)
	if err != nil {
		return missing(err)
	}
	defer dir.Close()
	if private != nil {
		if err := private(dir); err != nil {
			return nil, Record{}, errs.E(op, errs.Denied, name, fmt.Errorf("it is not ours, and no record in it is believed: %w", err))
		}
	}
	own, err := dir.OpenRoot(ownDir)
	if err != nil {
		return missing(err)
	}
	fail := func(err error) (*os.Root, Record, error) {
		own.Close()
		return nil, Record{}, err
	}
	if private != nil {
		if err := private(own); err != nil {
			return fail(errs.E(op, errs.Denied, name, fmt.Errorf("its record is not believed: %w", err)))
		}
	}
	text, err := readLimited(own, recordFile, maxRecord)
	if err != nil {
		return fail(errs.E(op, errs.NotFound, name, err))
	}
	record, err := ParseRecord(text)
	if err != nil {
		return fail(err)
	}
	return own, record, nil
}

// starterPID reads the pid from the name of a sandbox.
func starterPID(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || digits == "" || digits[0] == '0' || len(digits) > 10 {
		return 0, false
	}
	pid, err := strconv.Atoi(digits)
	return pid, err == nil && pid > 0
}
