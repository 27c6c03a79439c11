// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package account

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Directories is the host.PrivateDirs of Linux.
type Directories struct{}

var _ host.PrivateDirs = Directories{}

// OpenPrivate implements host.PrivateDirs. The way to the directory is judged
// from the top down: what stands under a name cannot be exchanged by others
// once all above it is proven. Symbolic links on the way are resolved before.
func (d Directories) OpenPrivate(path string) (*os.Root, error) {
	const op = "account.OpenPrivate"
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, errs.E(op, errs.Broken, path, err)
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return nil, errs.E(op, kindOf(err), path, err)
	}
	if err := passable(above); err != nil {
		return nil, errs.E(op, errs.Denied, path, err)
	}
	at := filepath.Join(above, filepath.Base(abs))
	named, err := os.Lstat(at)
	if err != nil {
		return nil, errs.E(op, kindOf(err), path, err)
	}
	if !named.IsDir() {
		return nil, errs.E(op, errs.Denied, path, fmt.Errorf("it is no directory but %v, want a directory itself and no link to one", named.Mode()))
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, errs.E(op, kindOf(err), path, err)
	}
	err = d.Private(root)
	if err == nil {
		if opened, serr := root.Stat("."); serr != nil || !os.SameFile(named, opened) {
			err = errs.E(op, errs.Denied, path, fmt.Errorf("another directory took its place while it was opened"))
		}
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// Private implements host.PrivateDirs.
func (Directories) Private(dir *os.Root) error {
	const op = "account.Private"
	info, err := dir.Stat(".")
	if err != nil {
		return errs.E(op, errs.Broken, dir.Name(), err)
	}
	switch uid, mode := owner(info), info.Mode().Perm(); {
	case uid != uint32(os.Geteuid()):
		return errs.E(op, errs.Denied, dir.Name(), fmt.Errorf("it belongs to the user %d, want %d, who runs this", uid, os.Geteuid()))
	case mode&0o022 != 0:
		return errs.E(op, errs.Denied, dir.Name(), fmt.Errorf("others may write in it (mode %#o), want 0700", mode))
	}
	return nil
}

// passable says where on the way to a directory others could put another one
// in its place: a part that belongs to a third user, or one in which everybody
// may rename the names of others.
func passable(dir string) error {
	if up := filepath.Dir(dir); up != dir {
		if err := passable(up); err != nil {
			return err
		}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	switch uid := owner(info); {
	case !info.IsDir():
		return fmt.Errorf("%s on the way to it is no directory but %v", dir, info.Mode())
	case uid != 0 && uid != uint32(os.Geteuid()):
		return fmt.Errorf("%s on the way to it belongs to the user %d, want %d or root", dir, uid, os.Geteuid())
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("%s on the way to it lets everybody rename what is in it (mode %#o), want the sticky bit (chmod +t)", dir, info.Mode().Perm())
	}
	return nil
}

func owner(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
