// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
)

// Users are those of the machine, as root sees them.
type Users struct {
	// Find finds a user by name; nil where this process has no rights of others, and
	// all jobs are its own user's.
	Find   func(name string) (*host.Identity, error)
	Files  host.Access // with the rights of others; nil without Find
	Owners host.Owners
}

// Submitter is whose the jobs of a submit file are: with that one's rights the file
// is read, their files are moved and their logs are written.
type Submitter struct {
	User *host.Identity // nil: who runs this process

	users Users
	dir   string // of the submit file, "" where there is no choice
	// open is the submit file if dir is root's, and others may change the file or
	// what it is called: it is no word of root's then. "" for others.
	open string
}

// SubmitterOf finds out whose the jobs of a submit file are. For root it is the
// owner of the file's directory, whose jobs they would be in a pool. Root's own
// directory may be one where others write, as /tmp: a submit file there is nobody's.
// The file is input if it is the standard input.
func SubmitterOf(u Users, snap *config.Snapshot, file string, input bool) (Submitter, error) {
	s := Submitter{users: u}
	if u.Find == nil {
		return s, nil
	}
	// Standard input counts as a file of the working directory, from which the names in
	// it count, too.
	abs, err := filepath.Abs(file)
	if err != nil {
		return s, err
	}
	if s.dir, err = filepath.EvalSymlinks(filepath.Dir(abs)); err != nil {
		return s, err
	}
	entry, err := u.Owners.Entry(s.dir)
	if err != nil {
		return s, err
	}
	name := ""
	switch {
	case entry.UID != 0:
		if name, err = u.Owners.UserName(entry.UID); err != nil {
			return s, fmt.Errorf("%s is of the user %d, as whom no job can run: %w", s.dir, entry.UID, err)
		}
	case u.writtenByRoot(abs):
		return s, nil
	default:
		if name, s.open = run.Nobody(snap), abs; input {
			s.open = s.dir
		}
	}
	s.User, err = u.Find(name)
	return s, err
}

// writtenByRoot reports whether the file at path is what root put there, and nobody
// else can change it.
func (u Users) writtenByRoot(path string) bool {
	if u.Files.Alone(path) != nil {
		return false
	}
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true // there is none, or what root itself named by its descriptor
	}
	entry, err := u.Owners.Entry(at)
	return err == nil && entry.UID == 0 && entry.Mode.Perm()&0o022 == 0
}

// Told says in a line as whom the jobs run, "" where it is who runs this process.
func (s *Submitter) Told(snap *config.Snapshot, jobs []*classad.Ad) (string, error) {
	if s.users.Find == nil {
		return "", nil
	}
	names, err := run.JobUsers(snap, s.users.Find, s.User, jobs)
	if err != nil {
		return "", fmt.Errorf("%w; put the submit file into a directory of an ordinary user, or name a user in NOBODY_SLOT_USER", err)
	}
	who := strings.Join(names, " and ")
	switch {
	case s.User == nil:
		return "the jobs run as " + who + ", not as root, whose directory " + s.dir + " is; in a directory of another user they run as that user", nil
	case s.open != "":
		return "the jobs run as " + who + ", not as root, and their files are moved as " + s.User.Name + ": others than root may change " + s.open, nil
	case who != s.User.Name:
		return "the jobs run as " + who + ", not as root, and their files are moved as " + s.User.Name + ", whose directory " + s.dir + " is", nil
	}
	return "the jobs run as " + who + ", whose directory " + s.dir + " is, not as root", nil
}

// As calls f with the file rights of the owner of the jobs.
func (s *Submitter) As(f func() error) error {
	if s.User == nil {
		return f()
	}
	return s.users.Files.As(s.User, f)
}

// Env is the environment that a submit file may name, of this process's own: none of
// root's where the jobs are another's.
func (s *Submitter) Env(own []string) []string {
	if s.User == nil {
		return own
	}
	return []string{"HOME=" + s.User.Home, "LOGNAME=" + s.User.Name, "USER=" + s.User.Name, "PATH=/usr/local/bin:/usr/bin:/bin"}
}

// LetIn lets the users of jobs pass through the directories of a run, which are
// root's, to those of the sandboxes.
func (s *Submitter) LetIn(snap *config.Snapshot, dir *run.Dir, execute string) error {
	if s.users.Find == nil {
		return nil
	}
	if err := os.Chmod(dir.Files, 0o711); err != nil {
		return err
	}
	if execute != dir.Execute() {
		return nil // the owner of the machine says who passes there
	}
	if err := os.Chmod(execute, 0o711); err != nil {
		return err
	}
	who, err := s.User, error(nil)
	if who == nil {
		if who, err = s.users.Find(run.Nobody(snap)); err != nil {
			return nil //nolint:nilerr // each slot has an account of its own
		}
	}
	if err := s.users.Files.Enter(who, execute); err != nil {
		return fmt.Errorf("%s cannot work in EXECUTE: %w; let TMPDIR or EXECUTE name a directory that all may pass through", who.Name, err)
	}
	return nil
}
