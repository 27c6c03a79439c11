// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"errors"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Descriptors counts the open file descriptors of this process. One that could
// not even open the list of them has none left.
func Descriptors(root Root) (host.Descriptors, error) {
	const op = "linux.Descriptors"
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return host.Descriptors{}, errs.E(op, errs.Broken, "RLIMIT_NOFILE", err)
	}
	d := host.Descriptors{Most: int(min(limit.Cur, math.MaxInt32))}
	dir, err := os.Open(filepath.Join(root.Proc, "self", "fd"))
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		d.Open = d.Most
		return d, nil
	}
	if err != nil {
		return host.Descriptors{}, errs.E(op, errs.Broken, "", err)
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return host.Descriptors{}, errs.E(op, errs.Broken, "", err)
	}
	d.Open = len(names) - 1 // without that of the list itself
	return d, nil
}
