// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package account finds users of the machine by name, tells whose a directory
// is, and reads the files that are ours alone. It owns what of the system's
// list of users and of a file's rights is believed, and must never start a
// program or open a file for another user.
package account

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Lookup finds the user called name in the system's files, /etc/passwd and
// /etc/group. One that is not there is NotFound, root is Denied.
func Lookup(name string) (*host.Identity, error) {
	const op = "account.Lookup"
	u, err := user.Lookup(name)
	if err != nil {
		var unknown user.UnknownUserError
		if errors.As(err, &unknown) {
			return nil, errs.E(op, errs.NotFound, name, errors.New("there is no such user"))
		}
		return nil, errs.E(op, errs.Broken, name, err)
	}
	id := &host.Identity{Name: u.Username, Home: u.HomeDir}
	if id.UID, err = number(u.Uid); err != nil {
		return nil, errs.E(op, errs.Broken, name, err)
	}
	if id.GID, err = number(u.Gid); err != nil {
		return nil, errs.E(op, errs.Broken, name, err)
	}
	if id.UID == 0 {
		return nil, errs.E(op, errs.Denied, name, errors.New("nothing is run for others as root"))
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, errs.E(op, errs.Broken, name, err)
	}
	for _, g := range groups {
		gid, err := number(g)
		if err != nil {
			return nil, errs.E(op, errs.Broken, name, err)
		}
		if gid != id.GID {
			id.Groups = append(id.Groups, gid)
		}
	}
	return id, nil
}

// GroupName returns the name of a group of this machine; a number that no
// group has is NotFound.
func GroupName(gid uint32) (string, error) {
	const op = "account.GroupName"
	id := strconv.FormatUint(uint64(gid), 10)
	g, err := user.LookupGroupId(id)
	if err != nil {
		var unknown user.UnknownGroupIdError
		if errors.As(err, &unknown) {
			return "", errs.E(op, errs.NotFound, id, errors.New("there is no group with this number"))
		}
		return "", errs.E(op, errs.Broken, id, err)
	}
	return g.Name, nil
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 1<<32-1 { // -1 stands for "leave it" in the system's calls
		return 0, fmt.Errorf("%q is no number of a user or group", text)
	}
	return uint32(n), nil
}
