// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/shadow"
)

// Numbers of users and groups, as Linux systems give them out: those below 100
// are the same everywhere (disk is 6, shadow 42), those below 1000 are for
// services that are installed. 100 is the group of all ordinary users, which
// some systems give everybody.
const (
	firstStranger = 100
	firstOrdinary = 1000
	usersGroup    = 100
)

// powerful are groups whose members may become root or read what is not theirs,
// whatever their number.
var powerful = []string{
	"adm", "admin", "condor", "disk", "docker", "incus", "incus-admin", "kmem", "kvm", "libvirt", "lxd", "podman", "root", "shadow", "sudo", "systemd-journal", "tty", "wheel",
}

// stranger asks the shadow who a submitter without an account here is.
// What the shadow says is the word of another machine: it gives no number that
// means something on this one.
func (c *Config) stranger(ctx context.Context, caller *shadow.Caller) (*host.Identity, error) {
	const op = "starter.RunAs"
	name := c.Plan.AskUser
	uid, gid, err := caller.UserInfo(ctx)
	if err != nil {
		return nil, err
	}
	const most = 1<<32 - 2 // the one above stands for "leave it" in the system's calls
	if uid <= 0 || gid <= 0 || uid > most || gid > most {
		return nil, errs.E(op, errs.Denied, name, fmt.Errorf("the shadow says that it is the user %d of the group %d; no job of a pool runs as root or with the group of root", uid, gid))
	}
	if c.Accounts.UserName == nil || c.Accounts.GroupName == nil {
		return nil, errs.E(op, errs.Unsupported, name, errors.New("this starter cannot run programs for other users"))
	}
	refused := func(what string) error {
		return errs.E(op, errs.Denied, name, fmt.Errorf("the shadow says that it is the user %d of the group %d, %s; SOFT_UID_DOMAIN lets nobody be that: "+
			"give the submitter an account on this machine, or another group at the access point", uid, gid, what))
	}
	if uid < firstStranger || gid < firstStranger && gid != usersGroup {
		return nil, refused(fmt.Sprintf("and numbers below %d are those of the system", firstStranger))
	}
	other, err := c.Accounts.UserName(uint32(uid))
	switch {
	case err == nil && other != name:
		return nil, errs.E(op, errs.Denied, name, fmt.Errorf("the shadow says that it is the user %d, who is %s on this machine", uid, other))
	case err != nil && !errs.Is(err, errs.NotFound):
		return nil, err
	}
	group, err := c.Accounts.GroupName(uint32(gid))
	switch {
	case errs.Is(err, errs.NotFound): // nothing here is its
	case err != nil:
		return nil, err
	case gid < firstOrdinary && gid != usersGroup || slices.Contains(powerful, group):
		return nil, refused(fmt.Sprintf("and %s is a group of the system on this machine", group))
	}
	return &host.Identity{Name: name, UID: uint32(uid), GID: uint32(gid)}, nil
}
