// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package account

import (
	"errors"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// Daemons returns the users as whom the daemons of this machine's HTCondor run:
// root, the caller, and the account of CONDOR_IDS, which is "uid.gid". Where
// ids is empty that is the user condor, if there is one.
func Daemons(ids string) ([]uint32, error) {
	const op = "account.Daemons"
	trusted := []uint32{0, uint32(os.Geteuid())}
	if ids = strings.TrimSpace(ids); ids != "" {
		uid, gid, ok := strings.Cut(ids, ".")
		id, err := number(uid)
		if _, bad := number(gid); !ok || err != nil || bad != nil {
			return nil, errs.E(op, errs.Invalid, "CONDOR_IDS", errors.New(strconv.Quote(ids)+" is no uid.gid, as 64.64"))
		}
		return slices.Compact(append(trusted, id)), nil
	}
	u, err := user.Lookup("condor")
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		return trusted, nil
	}
	if err != nil {
		return nil, errs.E(op, errs.Broken, "condor", err)
	}
	id, err := number(u.Uid)
	if err != nil {
		return nil, errs.E(op, errs.Broken, "condor", err)
	}
	return append(trusted, id), nil
}
