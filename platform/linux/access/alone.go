// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// mostLinks is how many links a path may lead through, as in the kernel.
const mostLinks = 40

// Alone implements host.Access. The way is judged from the top down, with all
// links on it: what a directory holds that only root may write to was put there
// by root, and stays as it is while root looks. So the path leads to the same
// place afterwards, and no descriptor has to be held for that.
//
// A directory with the sticky bit (/tmp) is passed on the way to a directory of
// root, which nobody else can rename or make there. Anything else there may be
// somebody's trick: a link, or a second name of another file.
func (a *Files) Alone(path string) error {
	const op = "access.Alone"
	if !filepath.IsAbs(path) {
		return errs.E(op, errs.Invalid, path, errors.New("it is no absolute path"))
	}
	refused := func(what string, err error) error {
		if err == nil {
			err = unix.EACCES
		}
		return errs.E(op, errs.Denied, path, fmt.Errorf("%s: %w", what, err))
	}
	dir, rest := "/", strings.Split(path, "/")
	for links := 0; ; {
		sticky, err := ofRoot(dir)
		if err != nil {
			return refused(dir, err)
		}
		var name string
		for name == "" || name == "." {
			if len(rest) == 0 {
				if sticky {
					return refused(dir+" is open to all", nil)
				}
				return nil
			}
			name, rest = rest[0], rest[1:]
		}
		if name == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		at := filepath.Join(dir, name)
		var st unix.Stat_t
		err = unix.Lstat(at, &st)
		kind := st.Mode & unix.S_IFMT
		switch {
		case sticky && (err != nil || kind != unix.S_IFDIR || st.Uid != 0):
			return refused(at+" is in a directory that is open to all, and no directory of root", nil)
		case errors.Is(err, unix.ENOENT):
			return nil // and only root can make it
		case err != nil:
			return refused(at, err)
		case kind == unix.S_IFDIR:
			dir = at
		case kind != unix.S_IFLNK:
			return nil
		default:
			target, err := os.Readlink(at)
			if err != nil {
				return refused(at, err)
			}
			if links++; links > mostLinks {
				return refused(at, unix.ELOOP)
			}
			if filepath.IsAbs(target) {
				dir = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		}
	}
}

// ofRoot says why others than root may change what the directory dir holds.
// With sticky they may add to it, and not change what is root's.
func ofRoot(dir string) (sticky bool, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return false, err
	}
	switch {
	case st.Uid != 0:
		return false, fmt.Errorf("it belongs to the user %d: %w", st.Uid, unix.EACCES)
	case st.Mode&0o022 == 0:
		return false, nil
	case st.Mode&unix.S_ISVTX == 0:
		return false, fmt.Errorf("others than root may write there (mode %#o): %w", st.Mode&0o7777, unix.EACCES)
	}
	return true, nil
}
