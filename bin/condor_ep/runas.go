// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
)

// jobOwner is as whom the jobs of a submit file run: nil is who runs condor_ep.
// For root it is the owner of the file's directory, whose jobs they would be in a
// pool, and told says so. What root puts into a directory of root's own are root's
// jobs.
func jobOwner(p *thishost.Platform, file string) (owner *host.Identity, told string, err error) {
	find, _ := p.Others()
	if find == nil {
		return nil, "", nil
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, "", err
	}
	_, owners := p.Credentials()
	entry, err := owners.Entry(dir)
	if err != nil {
		return nil, "", err
	}
	if entry.UID == 0 {
		return nil, "the jobs run as root, since " + dir + " is root's; put the submit file into a directory of another user to have them run as that user", nil
	}
	name, err := owners.UserName(entry.UID)
	if err != nil {
		return nil, "", fmt.Errorf("%s is of the user %d, as whom no job can run: %w", dir, entry.UID, err)
	}
	if owner, err = find(name); err != nil {
		return nil, "", err
	}
	return owner, "the jobs run as " + name + ", whose directory " + dir + " is, not as root", nil
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

// letIn lets the owner of the jobs pass through the directories of a run, which
// are root's, to those of the sandboxes.
func letIn(owner *host.Identity, dir *run.Dir, execute string) error {
	if owner == nil {
		return nil
	}
	if err := os.Chmod(dir.Files, 0o711); err != nil {
		return err
	}
	if execute != dir.Execute() {
		return nil // the owner of the machine says who passes there
	}
	return os.Chmod(execute, 0o711)
}
