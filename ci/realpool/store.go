// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// store is the directory where everything is that realpool makes:
//
//	lock             held while roots and runs are made and removed
//	roots/NAME/      a root directory; roots/NAME.json is its stamp
//	roots/.NAME/     one that is being made
//	runs/NAME/       what one run writes; runs/NAME/lock is held while it lasts
type store struct{ dir string }

// openStore makes the store's directories, which only their owner can enter.
func openStore(dir string) (store, error) {
	s := store{dir}
	for _, sub := range []string{"roots", "runs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return s, fmt.Errorf("realpool: the store: %w", err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return s, fmt.Errorf("realpool: the store: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return s, fmt.Errorf("realpool: the store %s: %w", dir, err)
	}
	if int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return s, fmt.Errorf("realpool: the store %s belongs to user %d with mode %04o; want a directory that only user %d can write", dir, st.Uid, info.Mode().Perm(), os.Geteuid())
	}
	return s, nil
}

// flock opens a file and locks it. With wait unset it returns errBusy if
// another process has the lock. The lock is free once every copy of the file's
// descriptor is closed, so a child that inherits it holds it as well.
func flock(path string, how int, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if err == unix.EWOULDBLOCK {
		return nil, errBusy
	}
	return nil, &os.PathError{Op: "flock", Path: path, Err: err}
}

var errBusy = errors.New("another process holds the lock")

// exclusive calls f while no other realpool makes or removes anything in the
// store.
func (s store) exclusive(f func() error) error {
	lock, err := flock(filepath.Join(s.dir, "lock"), unix.LOCK_EX, true)
	if err != nil {
		return fmt.Errorf("realpool: the store: %w", err)
	}
	defer func() { _ = lock.Close() }()
	return f()
}

// stamp says what a root directory is. It is written when the root directory
// is complete.
type stamp struct {
	Suite    string
	HTCondor string
	Packages []string
	Made     time.Time

	name string
}

func (s store) rootDir(st stamp) string { return filepath.Join(s.dir, "roots", st.name) }

// find returns the newest root directory of the release which has just these
// packages and the version.
func (s store) find(suite string, packages []string, insists string) (found stamp, ok bool, err error) {
	all, err := s.stamps()
	for _, st := range all {
		if st.Suite == suite && slices.Equal(st.Packages, packages) && isVersion(st.HTCondor, insists) && (!ok || st.Made.After(found.Made)) {
			found, ok = st, true
		}
	}
	return found, ok, err
}

// stamps reads the stamps of all complete root directories.
func (s store) stamps() ([]stamp, error) {
	names, err := filepath.Glob(filepath.Join(s.dir, "roots", "*.json"))
	if err != nil {
		return nil, err
	}
	var all []stamp
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var st stamp
		if err := json.Unmarshal(text, &st); err != nil {
			return nil, fmt.Errorf("realpool: %s: %w; remove the file and the directory beside it", name, err)
		}
		st.name = strings.TrimSuffix(filepath.Base(name), ".json")
		all = append(all, st)
	}
	return all, nil
}

// newRun makes the directory of a run. The lock of its caller is what keeps
// sweep away from it.
func (s store) newRun(name string) (dir string, lock *os.File, err error) {
	if name == "" {
		name = "exec-" + rand.Text()[:8]
	}
	dir = filepath.Join(s.dir, "runs", name)
	err = s.exclusive(func() error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("realpool: %w", err)
		}
		lock, err = flock(filepath.Join(dir, "lock"), unix.LOCK_EX, false)
		return err
	})
	return dir, lock, err
}

// sweep removes the runs whose processes are gone and the root directories that
// were never completed, and returns what it removed.
func (s store) sweep() (removed []string, err error) {
	err = s.exclusive(func() error {
		runs, err := os.ReadDir(filepath.Join(s.dir, "runs"))
		if err != nil {
			return err
		}
		for _, run := range runs {
			dir := filepath.Join(s.dir, "runs", run.Name())
			lock, err := flock(filepath.Join(dir, "lock"), unix.LOCK_EX, false)
			if errors.Is(err, errBusy) {
				continue
			}
			if err == nil {
				_ = lock.Close() // nothing can take it again: the store is locked
			}
			if err := removeAll(dir); err != nil {
				return err
			}
			removed = append(removed, dir)
		}
		roots, err := os.ReadDir(filepath.Join(s.dir, "roots"))
		if err != nil {
			return err
		}
		for _, root := range roots {
			dir := filepath.Join(s.dir, "roots", root.Name())
			if _, err := os.Stat(dir + ".json"); !root.IsDir() || err == nil {
				continue
			}
			if err := removeAll(dir); err != nil {
				return err
			}
			removed = append(removed, dir)
		}
		return nil
	})
	return removed, err
}

// forget removes the root directories that no run uses and that are older than
// the newest of the same kind, or as old that their packages are not asked for
// any more. It is called with the store locked.
func (s store) forget(newest stamp, maxAge time.Duration) error {
	all, err := s.stamps()
	if err != nil {
		return err
	}
	for _, st := range all {
		same := st.Suite == newest.Suite && slices.Equal(st.Packages, newest.Packages)
		if st.name == newest.name || !same && newest.Made.Sub(st.Made) < 2*maxAge {
			continue
		}
		lock, err := flock(s.rootDir(st)+".lock", unix.LOCK_EX, false)
		if errors.Is(err, errBusy) {
			continue
		}
		if err != nil {
			return err
		}
		// The stamp goes first: a root directory without one is incomplete, and
		// sweep removes what is left of it.
		err = errors.Join(os.Remove(s.rootDir(st)+".json"), removeAll(s.rootDir(st)), os.Remove(lock.Name()), lock.Close())
		if err != nil {
			return err
		}
	}
	return nil
}
