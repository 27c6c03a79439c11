// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
)

// executePatience is how long a file system may take to keep a small file.
const executePatience = 10 * time.Second

// CheckExecute makes sure that sandboxes can be made below dir: it exists (or
// is made, mode 0755), a file can be written there and room is left for it. A
// file system that does not answer is an error after ten seconds.
func CheckExecute(dir string) error {
	return patiently(dir, func() error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return errs.E("run.CheckExecute", errs.Denied, "EXECUTE", err)
		}
		return testExecute(dir, nil, nil)
	})
}

// CheckSlotExecutes returns the directories of single slots with what is wrong
// with those that cannot be used. None is made: as in HTCondor, SLOT<N>_EXECUTE
// names a place that the owner has prepared, such as a disk of its own, and one
// that is not there is a disk that is not mounted. A directory that goes away
// later is another matter (ep.MachineFault).
func CheckSlotExecutes(all []machine.SlotExecute, errno host.Errno) []machine.SlotExecute {
	all = slices.Clone(all)
	found := make(map[string]*error)
	var open sync.WaitGroup
	for _, x := range all {
		if found[x.Path] != nil {
			continue // several slots may share one
		}
		err := new(error)
		found[x.Path] = err
		// At once: any number of dead file systems is waited for only as long as one.
		open.Go(func() { *err = patiently(x.Path, func() error { return checkSlotExecute(x.Path) }) })
	}
	open.Wait()
	for i := range all {
		all[i].Unusable = unusableFor(all[i], *found[all[i].Path], errno)
	}
	return all
}

// missingError is that a directory cannot even be looked at.
type missingError struct{ error }

func (m missingError) Unwrap() error { return m.error }

func checkSlotExecute(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return missingError{err}
	}
	return testExecute(dir, nil, nil)
}

// unusableFor says what is wrong with a directory, "" for nothing. The words
// are HTCondor's: they stand in SlotBrokenReason.
func unusableFor(x machine.SlotExecute, err error, errno host.Errno) string {
	var missing missingError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &missing) && errno != nil:
		if n, text, ok := errno(err); ok {
			return fmt.Sprintf("Error accessing execute directory %s specified in the configuration setting SLOT%d_EXECUTE: (errno=%d) %s", x.Path, x.Slot, n, text)
		}
	}
	return fmt.Sprintf("Execute directory %s is invalid: %v", x.Path, err)
}

// patiently gives a test of dir some time to end. One that does not answer
// stays behind: nothing ends a call to a dead file server.
func patiently(dir string, test func() error) error {
	done := make(chan error, 1)
	go func() { done <- test() }()
	select {
	case err := <-done:
		return err
	case <-time.After(executePatience):
		return errNoAnswer(dir)
	}
}

func errNoAnswer(dir string) error {
	return errs.E("run.CheckExecute", errs.Expired, "EXECUTE", fmt.Errorf("the file system of %s does not answer", dir))
}

// probeSize is what a test writes. A disk with less room is full for any job.
const probeSize = 64 << 10

// testExecute does in dir what a starter does for a job of user: it makes a
// directory, which it gives to that user, and a file there with the user's
// rights, which has to reach the disk. nil is the user of this program. Nothing
// of it stays.
func testExecute(dir string, user *host.Identity, access host.Access) (err error) {
	const op = "run.CheckExecute"
	// Not by a name that a person could wait for: others may write to EXECUTE.
	probe, err := os.MkdirTemp(dir, ".probe-*")
	if err != nil {
		return errs.E(op, errs.Denied, "EXECUTE", fmt.Errorf("jobs cannot be given a directory: %w", err))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return errs.E(op, errs.Denied, "EXECUTE", fmt.Errorf("jobs cannot be given a directory: %w", errors.Join(err, os.Remove(probe))))
	}
	defer root.Close()
	name := filepath.Base(probe)
	write := func() error { return writeProbe(root, filepath.Join(name, "file")) }
	if user != nil && access != nil {
		if err = root.Lchown(name, int(user.UID), int(user.GID)); err == nil {
			err = access.As(user, write)
		}
	} else {
		err = write()
	}
	if err = errors.Join(err, root.RemoveAll(name)); err != nil {
		return errs.E(op, errs.Exhausted, "EXECUTE", fmt.Errorf("jobs could not write their files: %w", err))
	}
	return nil
}

// writeProbe writes a small file that reaches the disk.
func writeProbe(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeSize))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
