// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// canRunAs says whether this starter can act for the user of the plan. One that
// can act for others never runs a job with its own rights, whatever the plan
// says.
func (a *activation) canRunAs() error {
	const op = "starter.RunAs"
	u, files := a.plan.RunAs, a.plan.Submit.As
	switch {
	case u == nil && a.host.Access != nil:
		return errs.E(op, errs.Denied, a.plan.Activation, errors.New("the plan names no user, and no job runs as root"))
	case u == nil:
		return nil
	case a.host.Access == nil:
		return errs.E(op, errs.Unsupported, u.Name, errors.New("this starter cannot run programs for other users"))
	case u.UID == 0 || u.GID == 0:
		return errs.E(op, errs.Denied, u.Name, errors.New("no job runs for another user as root or with the group of root"))
	case files != nil && (files.UID == 0 || files.GID == 0):
		return errs.E(op, errs.Denied, files.Name, errors.New("root's files are moved as the plan's own alone"))
	}
	return nil
}

// apart reports whether the files of the submit side are not those of the job's
// user.
func (a *activation) apart() bool {
	return a.plan.RunAs != nil && (a.plan.Submit.Own || a.plan.Submit.As != nil)
}

// submitSide is with whose rights the files of the submit side are dealt with, by
// somebody who has those of the job's user. Root's own serve where nobody but root
// can have put something in the way; what lies elsewhere is reached as the job's
// user would reach it.
func (a *activation) submitSide() transfer.SubmitSide {
	access := a.host.Access
	switch s := a.plan.Submit; {
	case !a.apart():
		return nil
	case s.Own:
		return func(path string, f func() error) (err error) {
			alone := false
			job.Apart(func() {
				if alone = access.Alone(path) == nil; alone {
					err = f()
				}
			})
			if !alone {
				return f()
			}
			return err
		}
	default:
		return func(_ string, f func() error) error { return access.As(s.As, f) }
	}
}

// primaryGroup makes the group that the job names with PrimaryUnixGroup the first of
// its user's, as HTCondor does for a job that runs as its owner: with the others it
// is ignored. A group that the user is not in holds the job.
func (a *activation) primaryGroup(ad *classad.Ad) *protocol.Hold {
	u := a.plan.RunAs
	name, _ := ad.EvalString("PrimaryUnixGroup", nil)
	if name == "" || u == nil || a.host.GroupName == nil {
		return nil
	}
	owner, ok := ad.EvalString("OsUser", nil)
	if !ok {
		owner, _ = ad.EvalString("Owner", nil)
	}
	if u.Name != owner {
		return nil
	}
	who, ok := withPrimaryGroup(u, name, a.host.GroupName)
	if !ok {
		return a.holds.From(reason.CannotSwitchPrimaryGroup, 0, "Could not install primary unix group "+name+" from supplmental groups")
	}
	a.plan.RunAs = who
	return nil
}

// withPrimaryGroup is u with another primary group, one that u is in already.
func withPrimaryGroup(u *host.Identity, name string, nameOf func(uint32) (string, error)) (*host.Identity, bool) {
	for i, gid := range append([]uint32{u.GID}, u.Groups...) {
		if is, err := nameOf(gid); err != nil || is != name {
			continue
		}
		who := *u
		if i > 0 {
			who.GID, who.Groups = gid, slices.Clone(u.Groups)
			who.Groups[i-1] = u.GID
		}
		return &who, true
	}
	return nil, false
}

// asUser calls f, whose dealings with files are then those of the job's user:
// below the scratch directory is what that user, and the job, put there.
func (a *activation) asUser(f func() error) error {
	if u := a.plan.RunAs; u != nil {
		return a.host.Access.As(u, f)
	}
	return f()
}

// clearAccount ends what is left of an account that is for this job alone,
// wherever it hides.
func (a *activation) clearAccount() (int, error) {
	if u := a.plan.RunAs; u != nil && a.plan.Dedicated && a.host.KillUser != nil {
		return a.host.KillUser(u.UID)
	}
	return 0, nil
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
func (a *activation) openStdAs(u *host.Identity) (files [3]*os.File, hold *protocol.Hold) {
	j := a.job
	var err error
	if j.Stdin != "" {
		if files[0], err = a.host.Access.Read(u, j.Stdin); err != nil {
			return files, a.holds.Std(j.Stdin, "standard input", err)
		}
	}
	open := func(path string) (*os.File, error) {
		if a.keepsStd() {
			if f, err := a.host.Access.Append(u, path); !errors.Is(err, fs.ErrNotExist) {
				return f, err
			}
		}
		return a.host.Access.Overwrite(u, path)
	}
	if j.Stdout.Path != "" {
		if files[1], err = open(j.Stdout.Path); err != nil {
			hold = a.holds.Std(j.Stdout.Path, "standard output", err)
		}
	}
	switch {
	case j.Stderr.Path == "":
	case j.Stderr.Path == j.Stdout.Path:
		files[2] = files[1]
	default:
		if files[2], err = open(j.Stderr.Path); err != nil && hold == nil {
			return files, a.holds.Std(j.Stderr.Path, "standard error", err)
		}
	}
	return files, hold
}
