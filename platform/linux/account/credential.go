// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package account

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Private is the host.PrivateFiles of Linux.
type Private struct{}

var _ host.PrivateFiles = Private{}

// ReadPrivate implements host.PrivateFiles.
func (Private) ReadPrivate(path string, limit int64) ([]byte, error) {
	return readChecked("account.ReadPrivate", path, limit, func(st *unix.Stat_t) error {
		switch {
		case st.Uid != uint32(os.Getuid()):
			return fmt.Errorf("it belongs to the user %d, want %d", st.Uid, os.Getuid())
		case st.Mode&0o077 != 0:
			return fmt.Errorf("others may reach it (mode %#o), want 0600 or less", st.Mode&0o7777)
		}
		return nil
	})
}

// ReadOf reads a file of at most limit bytes that belongs to one of these users
// and that nobody else may write to. It fails with Denied for any other file.
func ReadOf(users []uint32, path string, limit int64) ([]byte, error) {
	return readChecked("account.ReadOf", path, limit, func(st *unix.Stat_t) error {
		switch {
		case !slices.Contains(users, st.Uid):
			return fmt.Errorf("it belongs to the user %d; want one of %d, as which the daemons of this machine run (CONDOR_IDS)", st.Uid, users)
		case st.Mode&0o022 != 0:
			return fmt.Errorf("others may write to it (mode %#o), want 0644 or less", st.Mode&0o7777)
		}
		return nil
	})
}

// readChecked reads a regular file that a check lets pass. All is asked of the
// open file, so that nobody can put another one in its place.
func readChecked(op, path string, limit int64, check func(*unix.Stat_t) error) ([]byte, error) {
	// O_NONBLOCK keeps a named pipe from holding us up.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errs.E(op, kindOf(err), path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return nil, errs.E(op, errs.Broken, path, err)
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errs.E(op, errs.Denied, path, errors.New("it is no regular file"))
	}
	if err := check(&before); err != nil {
		return nil, errs.E(op, errs.Denied, path, err)
	}
	if before.Size > limit {
		return nil, errs.E(op, errs.Exhausted, path, fmt.Errorf("it has %d bytes, at most %d are read", before.Size, limit))
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, errs.E(op, errs.Broken, path, err)
	}
	if err := unix.Fstat(fd, &after); err != nil {
		return nil, errs.E(op, errs.Broken, path, err)
	}
	if after.Mtim != before.Mtim || int64(len(b)) != before.Size {
		return nil, errs.E(op, errs.Transient, path, errors.New("it was changed while it was read"))
	}
	return b, nil
}

// Owners is the host.Owners of Linux.
type Owners struct {
	// As is the user whose the directories are that are made, nil the one who
	// runs this process. For another one the rights of root are needed.
	As *host.Identity
}

var _ host.Owners = Owners{}

// Entry implements host.Owners.
func (Owners) Entry(path string) (host.Entry, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return host.Entry{}, errs.E("account.Entry", kindOf(err), path, err)
	}
	return host.Entry{Mode: fileMode(st.Mode), UID: st.Uid, Links: uint64(st.Nlink)}, nil //nolint:unconvert // 32 bits on some machines
}

// fileMode keeps what tells a plain directory or file from all else.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	default:
		m |= fs.ModeIrregular
	}
	if mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// UserName implements host.Owners.
func (Owners) UserName(uid uint32) (string, error) {
	const op = "account.UserName"
	id := strconv.FormatUint(uint64(uid), 10)
	u, err := user.LookupId(id)
	if err != nil {
		var unknown user.UnknownUserIdError
		if errors.As(err, &unknown) {
			return "", errs.E(op, errs.NotFound, id, errors.New("there is no user with this number"))
		}
		return "", errs.E(op, errs.Broken, id, err)
	}
	return u.Username, nil
}

// MakeDir implements host.Owners.
func (o Owners) MakeDir(path string) error {
	const op = "account.MakeDir"
	if err := unix.Mkdir(path, 0o700); err != nil {
		return errs.E(op, kindOf(err), path, err)
	}
	if err := o.give(path); err != nil {
		_ = unix.Rmdir(path)
		return errs.E(op, kindOf(err), path, err)
	}
	return nil
}

// give makes a directory that was just made that of another user. It goes by
// the open directory: what stands under the name by then may be somebody's
// trick.
func (o Owners) give(path string) error {
	if o.As == nil || o.As.UID == uint32(os.Geteuid()) {
		return nil
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Uid != uint32(os.Geteuid()) || st.Mode&0o7777 != 0o700 {
		return fmt.Errorf("another one took its place: %w", fs.ErrPermission)
	}
	return unix.Fchown(fd, int(o.As.UID), int(o.As.GID))
}

// RemoveDir implements host.Owners.
func (Owners) RemoveDir(path string) error {
	if err := unix.Rmdir(path); err != nil {
		return errs.E("account.RemoveDir", kindOf(err), path, err)
	}
	return nil
}

func kindOf(err error) errs.Kind {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errs.NotFound
	case errors.Is(err, fs.ErrExist):
		return errs.Conflict
	case errors.Is(err, fs.ErrPermission):
		return errs.Denied
	}
	return errs.Broken
}
