// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
)

// submitter is whose the jobs of a submit file are: with that one's rights the file
// is read, their files are moved and their logs are written.
type submitter struct {
	user *host.Identity // nil: who runs condor_ep
	dir  string         // of the submit file, "" where there is no choice
	// open is the submit file if dir is root's, and others may change the file or
	// what it is called: it is no word of root's then. "" for others.
	open string
}

// submitterOf finds out whose the jobs of a submit file are. For root it is the
// owner of the file's directory, whose jobs they would be in a pool. Root's own
// directory may be one where others write, as /tmp: a submit file there is nobody's.
func submitterOf(p *thishost.Platform, snap *config.Snapshot, file string) (submitter, error) {
	find, files := p.Others()
	if find == nil {
		return submitter{}, nil
	}
	// Standard input counts as a file of the working directory, from which the names in
	// it count, too.
	abs, err := filepath.Abs(file)
	if err != nil {
		return submitter{}, err
	}
	s := submitter{}
	if s.dir, err = filepath.EvalSymlinks(filepath.Dir(abs)); err != nil {
		return submitter{}, err
	}
	_, owners := p.Credentials()
	entry, err := owners.Entry(s.dir)
	if err != nil {
		return submitter{}, err
	}
	name := ""
	switch {
	case entry.UID != 0:
		if name, err = owners.UserName(entry.UID); err != nil {
			return submitter{}, fmt.Errorf("%s is of the user %d, as whom no job can run: %w", s.dir, entry.UID, err)
		}
	case writtenByRoot(files, owners, abs):
		return s, nil
	default:
		if name, s.open = run.Nobody(snap), abs; file == standardInput {
			s.open = s.dir
		}
	}
	s.user, err = find(name)
	return s, err
}

// writtenByRoot reports whether the file at path is what root put there, and nobody
// else can change it.
func writtenByRoot(files host.Access, owners host.Owners, path string) bool {
	if files.Alone(path) != nil {
		return false
	}
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true // there is none, or what root itself named by its descriptor
	}
	entry, err := owners.Entry(at)
	return err == nil && entry.UID == 0 && entry.Mode.Perm()&0o022 == 0
}

// told says in a line as whom the jobs run, "" where it is who runs condor_ep.
func (s *submitter) told(p *thishost.Platform, snap *config.Snapshot, jobs []*classad.Ad) (string, error) {
	find, _ := p.Others()
	if find == nil {
		return "", nil
	}
	names, err := run.JobUsers(snap, find, s.user, jobs)
	if err != nil {
		return "", fmt.Errorf("%w; put the submit file into a directory of an ordinary user, or name a user in NOBODY_SLOT_USER", err)
	}
	who := strings.Join(names, " and ")
	switch {
	case s.user == nil:
		return "the jobs run as " + who + ", not as root, whose directory " + s.dir + " is; in a directory of another user they run as that user", nil
	case s.open != "":
		return "the jobs run as " + who + ", not as root, and their files are moved as " + s.user.Name + ": others than root may change " + s.open, nil
	case who != s.user.Name:
		return "the jobs run as " + who + ", not as root, and their files are moved as " + s.user.Name + ", whose directory " + s.dir + " is", nil
	}
	return "the jobs run as " + who + ", whose directory " + s.dir + " is, not as root", nil
}

// asOwner calls f with the file rights of the owner of the jobs.
func asOwner(p *thishost.Platform, owner *host.Identity, f func() error) error {
	if owner == nil {
		return f()
	}
	_, files := p.Others()
	return files.As(owner, f)
}

// ownEnv is the environment that a submit file may name: none of root's where the
// jobs are another's.
func ownEnv(owner *host.Identity) []string {
	if owner == nil {
		return os.Environ()
	}
	return []string{"HOME=" + owner.Home, "LOGNAME=" + owner.Name, "USER=" + owner.Name, "PATH=/usr/local/bin:/usr/bin:/bin"}
}

// letIn lets the users of jobs pass through the directories of a run, which are
// root's, to those of the sandboxes.
func (s *submitter) letIn(p *thishost.Platform, snap *config.Snapshot, dir *run.Dir, execute string) error {
	find, files := p.Others()
	if find == nil {
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
	who, err := s.user, error(nil)
	if who == nil {
		if who, err = find(run.Nobody(snap)); err != nil {
			return nil //nolint:nilerr // each slot has an account of its own
		}
	}
	if err := files.Enter(who, execute); err != nil {
		return fmt.Errorf("%s cannot work in EXECUTE: %w; let TMPDIR or EXECUTE name a directory that all may pass through", who.Name, err)
	}
	return nil
}
