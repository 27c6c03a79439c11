// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"os"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// canRunAs says whether this starter can act for the user of the plan.
func (a *activation) canRunAs() error {
	if u := a.plan.RunAs; u != nil && a.host.Access == nil {
		return errs.E("starter.RunAs", errs.Unsupported, u.Name, errors.New("this starter cannot run programs for other users"))
	}
	return nil
}

// mayRunAs refuses a job of another user that is to have what only the
// starter's own user can have.
func (a *activation) mayRunAs() error {
	const op = "starter.RunAs"
	u := a.plan.RunAs
	switch {
	case u == nil:
		return nil
	case a.job.transfer:
		return errs.E(op, errs.Unsupported, u.Name, errors.New("files are not moved for jobs of other users"))
	case a.job.stdin != "":
		return errs.E(op, errs.Unsupported, u.Name, errors.New("a job of another user has no standard input"))
	}
	return nil
}

// home is the home directory of who the job runs as.
func (a *activation) home() string {
	if u := a.plan.RunAs; u != nil {
		return u.Home
	}
	return a.host.Home
}

// openStdAs is openStd for a job of another user: the files are that user's,
// and opened as that user would.
func (a *activation) openStdAs(u *host.Identity) (files [3]*os.File, hold *Hold) {
	j := a.job
	var err error
	if j.stdout.path != "" {
		if files[1], err = a.host.Access.Overwrite(u, j.stdout.path); err != nil {
			return files, a.holds.std(j.stdout.path, "standard output", err)
		}
	}
	switch {
	case j.stderr.path == "":
	case j.stderr.path == j.stdout.path:
		files[2] = files[1]
	default:
		if files[2], err = a.host.Access.Overwrite(u, j.stderr.path); err != nil {
			return files, a.holds.std(j.stderr.path, "standard error", err)
		}
	}
	return files, nil
}
