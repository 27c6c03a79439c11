// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/execpoint/execpoint/lib/errs"
)

// The permissions of a file that matter here.
const (
	ownerMayExecute = 0o100
	anyoneMayWrite  = 0o002
)

// CheckPath says why the program at path may not be used as a hook, nil if it may: it has
// to be there and to be executable, and neither it nor its directory may be one that
// everybody can change. knob names it in the error.
func CheckPath(knob, path string, stat func(path string) (fs.FileInfo, error)) error {
	const op = "hook.CheckPath"
	if !filepath.IsAbs(path) {
		return errs.E(op, errs.Invalid, knob, fmt.Errorf("%s is no absolute path; give the full path of the program", path))
	}
	info, err := stat(path)
	if err != nil {
		return errs.E(op, errs.NotFound, knob, fmt.Errorf("invalid path specified for %s (%s): %w", knob, path, err))
	}
	mode := info.Mode()
	if mode.Perm()&anyoneMayWrite != 0 {
		return errs.E(op, errs.Denied, knob, fmt.Errorf("path specified for %s (%s) is world-writable! Refusing to use. Take the permission away", knob, path))
	}
	if !mode.IsRegular() || mode.Perm()&ownerMayExecute == 0 {
		return errs.E(op, errs.Denied, knob, fmt.Errorf("path specified for %s (%s) is not executable. Give its owner that permission", knob, path))
	}
	dir := filepath.Dir(path)
	if info, err = stat(dir); err != nil {
		return errs.E(op, errs.NotFound, knob, err)
	}
	if info.Mode().Perm()&anyoneMayWrite != 0 {
		return errs.E(op, errs.Denied, knob, fmt.Errorf("path specified for %s (%s) is in a world-writable directory! Refusing to use. Take the permission from %s", knob, path, dir))
	}
	return nil
}
