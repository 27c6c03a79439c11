// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Swept is what a sweep found.
type Swept struct {
	Removed []string // sandboxes of dead starters, removed
	Live    []string // sandboxes whose starters are running, left alone
	Kept    []string // sandboxes that were to stay
	Killed  int      // processes that dead starters had left running
}

// Sweep clears below execute what dead starters have left: it kills the
// processes that their records prove to be theirs, and removes their
// sandboxes. Live starters and anything that is no sandbox are left alone. A
// sandbox that cannot be cleared is an error, and the others are still done.
func Sweep(execute string, census host.Census) (Swept, error) {
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
		if err := swept.one(root, execute, e.Name(), census); err != nil {
			all = errors.Join(all, errs.E(op, errs.Other, filepath.Join(execute, e.Name()), err))
		}
	}
	return swept, all
}

// Reclaim does for one dead starter what Sweep does for all: its processes are
// killed and its sandbox is removed. It is no error if there is none.
func Reclaim(execute string, starter host.ProcID, census host.Census) (Swept, error) {
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
	return swept, swept.one(root, execute, name, census)
}

// one deals with one sandbox.
func (s *Swept) one(root *os.Root, execute, name string, census host.Census) error {
	path := filepath.Join(execute, name)
	record, err := readRecord(root, name)
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
		if record.Keep {
			s.Kept = append(s.Kept, path)
			return nil
		}
	}
	if err := removeAll(root, name); err != nil {
		return errs.E("sandbox.Sweep", kindOf(err), path, err)
	}
	s.Removed = append(s.Removed, path)
	return nil
}

func readRecord(root *os.Root, name string) (Record, error) {
	text, err := readLimited(root, filepath.Join(name, ownDir, recordFile))
	if err != nil {
		return Record{}, errs.E("sandbox.readRecord", errs.NotFound, name, err)
	}
	return ParseRecord(text)
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
