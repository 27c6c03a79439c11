// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package lockfile keeps two programs from using one place: a lock of the
// kernel (flock) on a file, which ends with the process that holds it. It owns
// the file while the lock is held. It must never wait for a lock, and never
// judge by what is written in the file who may have it: the kernel says that.
package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// mostHolder bounds what is read of who holds a lock, in bytes.
const mostHolder = 4096

// mostRounds bounds how often a file is opened that somebody removes before it
// is locked.
const mostRounds = 100

// Lock is the host.Locker of Linux.
func Lock(path string, share host.Share, me host.Holder) (host.Lock, error) {
	const op = "lockfile.Lock"
	how := unix.LOCK_EX
	if share == host.Together {
		how = unix.LOCK_SH
	}
	for range mostRounds {
		f, err := open(path)
		if err != nil {
			return nil, errs.E(op, kindOf(err), path, err)
		}
		if err := flock(f, how); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = errs.E(op, errs.Conflict, path, &host.HeldError{By: read(f)})
			} else {
				err = errs.E(op, errs.Unsupported, path, fmt.Errorf("its file system gives no lock: %w", err))
			}
			f.Close()
			return nil, err
		}
		if !here(f, path) { // who held it before has removed it
			f.Close()
			continue
		}
		if err := write(f, me); err != nil {
			f.Close()
			return nil, errs.E(op, errs.Broken, path, err)
		}
		return &held{f: f, path: path}, nil
	}
	return nil, errs.E(op, errs.Transient, path, errors.New("it is removed again and again"))
}

// open opens the lock's file. Only its owner may open it: whoever can open a
// file can lock it, and keep a daemon from starting.
func open(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1:
		err = fmt.Errorf("it is no regular file with one name: %w", unix.EACCES)
	case st.Uid != uint32(os.Geteuid()):
		err = fmt.Errorf("it belongs to the user %d, want %d: %w", st.Uid, os.Geteuid(), unix.EACCES)
	case st.Mode&0o077 != 0:
		err = fmt.Errorf("others may open it (mode %#o), want 0600: %w", st.Mode&0o7777, unix.EACCES)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// here reports whether path still names the open file.
func here(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, named)
}

func read(f *os.File) (h host.Holder) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, mostHolder))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return host.Holder{}
	}
	return h
}

func write(f *os.File, h host.Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	return err
}

func kindOf(err error) errs.Kind {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS), errors.Is(err, unix.ELOOP):
		return errs.Denied
	case errors.Is(err, unix.ENOENT):
		return errs.NotFound
	}
	return errs.Broken
}

// held is a lock that is held.
type held struct {
	f    *os.File
	path string
}

// Touch implements host.Lock.
func (l *held) Touch() error {
	return unix.Futimes(int(l.f.Fd()), nil)
}

// Close implements host.Lock. The file goes only under a lock that nobody
// shares, so that no two have locked files of one name.
func (l *held) Close() error {
	var err error
	if flock(l.f, unix.LOCK_EX) == nil && here(l.f, l.path) {
		err = os.Remove(l.path)
	}
	return errors.Join(err, l.f.Close())
}
