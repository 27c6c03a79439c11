// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox is the directory a job lives in, the environment it is given
// there, and the record by which both can be found and cleared away when the
// starter that made them is gone.
//
//	EXECUTE/dir_<starter pid>/htcondor/   the starter's own: records
//	EXECUTE/dir_<starter pid>/user/       for the job's user, not sent back
//	EXECUTE/dir_<starter pid>/scratch/    where the job runs
//
// It owns these names and everything below them. It must never follow a link
// that the job made out of its directory: paths below EXECUTE are reached
// through os.Root only.
package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Names of files and directories that jobs and tools know.
const (
	JobAdFile     = ".job.ad"
	MachineAdFile = ".machine.ad"
	UpdateAdFile  = ".update.ad" // in the starter's own directory
	StdoutFile    = "_condor_stdout"
	StderrFile    = "_condor_stderr"

	prefix     = "dir_"
	ownDir     = "htcondor"
	userDir    = "user"
	scratchDir = "scratch"
)

// Spec says what to make.
type Spec struct {
	Execute string      // EXECUTE
	Starter host.ProcID // whose pid names the directory
	Mode    fs.FileMode // of the scratch directory; see Mode
	// Owner is whose the directories for the job are; nil is the caller.
	Owner *host.Identity
	// As calls a function whose dealings with files are the owner's; nil calls
	// it as it is. Everything below those directories is written in this way,
	// for the owner may have put anything there.
	As func(func() error) error
	// Volume is a file system of its own for the scratch directory, which Mounter
	// mounts there; nil leaves the directory on that of Execute.
	Volume  *host.Volume
	Mounter host.Mounter
	// Quotas has the file system of Execute count what is in the scratch directory,
	// where it can; nil is to walk alone. One of its own is counted as a whole.
	Quotas host.Quotas
}

// Mode returns the mode that a word of JOB_EXECDIR_PERMISSIONS stands for:
// group and world open the scratch directory, everything else is the user's
// alone.
func Mode(word string) fs.FileMode {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "group":
		return 0o750
	case "world":
		return 0o755
	}
	return 0o700
}

// Sandbox is one job's directory. It is not safe for concurrent use, except
// that Usage and Counted may run beside anything but Close and Remove.
type Sandbox struct {
	dir     string
	name    string
	execute *os.Root
	own     *os.Root // htcondor/
	user    *os.Root // user/
	scratch *os.Root
	as      func(func() error) error
	ledger  *os.File
	volume  volume
	quota   quota
	// recorded is how many bytes were written to the record.
	recorded int

	sharing sync.Mutex
	shared  map[string]fs.FileInfo // files of the scratch directory that are counted elsewhere
}

// Create makes the sandbox. One that a dead starter of the same pid left is
// removed first. The caller removes it, or closes it to keep it.
func Create(spec Spec) (*Sandbox, error) {
	const op = "sandbox.Create"
	name := prefix + strconv.Itoa(spec.Starter.PID)
	s := &Sandbox{dir: filepath.Join(spec.Execute, name), name: name, as: spec.As}
	if s.as == nil {
		s.as = func(f func() error) error { return f() }
	}
	fail := func(err error) (*Sandbox, error) {
		s.Close()
		return nil, errs.E(op, kindOf(err), "EXECUTE "+spec.Execute, err)
	}
	var err error
	if s.execute, err = os.OpenRoot(spec.Execute); err != nil {
		return fail(err)
	}
	err = s.execute.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		if err = removeAll(s.execute, name); err == nil {
			err = s.execute.Mkdir(name, 0o755)
		}
	}
	if err != nil {
		return fail(err)
	}
	dir, err := s.execute.OpenRoot(name)
	if err != nil {
		return fail(err)
	}
	defer dir.Close()
	for _, sub := range []struct {
		name string
		mode fs.FileMode
	}{{ownDir, 0o755}, {userDir, 0o700}, {scratchDir, spec.Mode}} {
		if err := dir.Mkdir(sub.name, sub.mode); err != nil {
			return fail(errors.Join(err, removeAll(s.execute, name)))
		}
		if sub.name == scratchDir && spec.Volume != nil {
			if err := s.mount(dir, spec); err != nil {
				return fail(errors.Join(err, s.unmount(), removeAll(s.execute, name)))
			}
		}
		if sub.name == scratchDir && spec.Volume == nil {
			s.count(dir, spec.Quotas)
		}
		if u := spec.Owner; u != nil && sub.name != ownDir {
			if err := dir.Lchown(sub.name, int(u.UID), int(u.GID)); err != nil {
				return fail(errors.Join(err, s.unmount(), removeAll(s.execute, name)))
			}
		}
	}
	if s.own, err = dir.OpenRoot(ownDir); err != nil {
		return fail(err)
	}
	if s.user, err = dir.OpenRoot(userDir); err != nil {
		return fail(err)
	}
	if s.scratch, err = dir.OpenRoot(scratchDir); err != nil {
		return fail(err)
	}
	return s, nil
}

func kindOf(err error) errs.Kind {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errs.NotFound
	case errors.Is(err, fs.ErrPermission):
		return errs.Denied
	}
	return errs.Broken
}

// Dir is the whole sandbox, EXECUTE/dir_<pid>.
func (s *Sandbox) Dir() string { return s.dir }

// Scratch is the path of the directory the job runs in.
func (s *Sandbox) Scratch() string { return filepath.Join(s.dir, scratchDir) }

// User is the path of the directory for the job's user that is not sent back.
func (s *Sandbox) User() string { return filepath.Join(s.dir, userDir) }

// Root is the scratch directory as a handle that nothing can lead out of. It
// is closed with the sandbox.
func (s *Sandbox) Root() *os.Root { return s.scratch }

// WriteAds writes the ads that the job may read, in old syntax. They are not
// for it to write.
func (s *Sandbox) WriteAds(job, machine string) error {
	for _, f := range []struct{ name, text string }{{JobAdFile, job}, {MachineAdFile, machine}} {
		if err := s.writeNew(s.scratch, f.name, f.text, 0o444); err != nil {
			return errs.E("sandbox.WriteAds", kindOf(err), f.name, err)
		}
	}
	return nil
}

// WriteUpdateAd writes the slot's ad as it is now, in old syntax, into the
// starter's own directory, where the job may read it and nobody but the starter
// write. A reader sees the old text or the new.
func (s *Sandbox) WriteUpdateAd(text string) error {
	const next = UpdateAdFile + ".tmp"
	err := s.own.WriteFile(next, []byte(text), 0o644)
	if err == nil {
		err = s.own.Rename(next, UpdateAdFile)
	}
	if err != nil {
		return errs.E("sandbox.WriteUpdateAd", kindOf(err), UpdateAdFile, err)
	}
	return nil
}

// writeNew writes a file of the job's user in place of what is there: a link is
// replaced, never followed.
func (s *Sandbox) writeNew(root *os.Root, name, text string, mode fs.FileMode) error {
	return s.as(func() error {
		const create = os.O_WRONLY | os.O_CREATE | os.O_EXCL
		f, err := root.OpenFile(name, create, mode)
		if errors.Is(err, fs.ErrExist) {
			if err = root.RemoveAll(name); err == nil {
				f, err = root.OpenFile(name, create, mode)
			}
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	})
}

// Close lets go of the directory and leaves it in place.
func (s *Sandbox) Close() {
	if s.ledger != nil {
		s.ledger.Close()
	}
	for _, r := range []*os.Root{s.scratch, s.user, s.own, s.execute} {
		if r != nil {
			r.Close()
		}
	}
	s.volume.close()
	s.quota.close()
	s.ledger, s.scratch, s.user, s.own, s.execute = nil, nil, nil, nil, nil
}

// Remove takes the sandbox away with everything in it, whatever modes the job
// gave to its directories, and looks that it is gone. It closes the sandbox.
func (s *Sandbox) Remove() error {
	if s.execute == nil {
		return nil
	}
	defer s.Close()
	if err := errors.Join(s.unmount(), removeAll(s.execute, s.name)); err != nil {
		return errs.E("sandbox.Remove", kindOf(err), s.dir, err)
	}
	return nil
}

// RemoveJob takes away what is the job's in the sandbox, and leaves what is the
// starter's own.
func (s *Sandbox) RemoveJob() error {
	if s.execute == nil {
		return nil
	}
	err := errors.Join(s.unmount(), removeAll(s.execute, filepath.Join(s.name, scratchDir)), removeAll(s.execute, filepath.Join(s.name, userDir)))
	if err != nil {
		return errs.E("sandbox.RemoveJob", kindOf(err), s.dir, err)
	}
	return nil
}

// removeAll removes name below root. A job may have taken the rights to its
// own directories away; they are given back once.
func removeAll(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	unlock(root, name)
	return root.RemoveAll(name)
}

// unlock makes directories below name ones that can be emptied.
func unlock(root *os.Root, name string) {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	_ = root.Chmod(name, 0o700) // what cannot be changed shows when it cannot be removed
	dir, err := root.Open(name)
	if err != nil {
		return
	}
	entries, _ := dir.ReadDir(-1)
	dir.Close()
	for _, e := range entries {
		if e.IsDir() {
			unlock(root, filepath.Join(name, e.Name()))
		}
	}
}

// ChirpFile is the name of the file that says how a job reaches its shadow.
const ChirpFile = ".chirp.config"

// WriteChirp writes that file into the directory for the job's user, for its
// owner alone, and returns its path.
func (s *Sandbox) WriteChirp(text string) (string, error) {
	path := filepath.Join(s.User(), ChirpFile)
	if err := s.writeNew(s.user, ChirpFile, text, 0o700); err != nil {
		return "", errs.E("sandbox.WriteChirp", kindOf(err), path, err)
	}
	return path, nil
}
