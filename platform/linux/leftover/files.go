// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package leftover

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// files looks for the user's in the directories where everybody may write. All of it
// is done with that user's rights: what the job could not have removed itself, this
// cannot either.
func (f *Finder) files(a *audit) error {
	var all error
	for _, dir := range f.Shared {
		kind := host.LeftFile
		if filepath.Base(dir) == "shm" {
			kind = host.LeftPosix
		} else if a.Shared {
			continue // people work there
		}
		err := f.Access.As(a.User, func() error {
			fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
				return nil // what the user cannot enter it has not filled
			}
			if err != nil {
				return &os.PathError{Op: "open", Path: dir, Err: err}
			}
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil {
				unix.Close(fd)
				return err
			}
			w := walk{audit: a, kind: kind, dev: st.Dev}
			w.dir(os.NewFile(uintptr(fd), dir), dir, 0, false)
			return nil
		})
		all = errors.Join(all, err)
	}
	return all
}

// walk is the way through one of these directories.
type walk struct {
	*audit
	kind string
	dev  uint64 // what is mounted there is left alone
}

// dir looks at what is in a directory, which it closes. within says that the directory
// itself is the job's, and is what is named in the record. It returns how large the
// job's files in it are.
func (w *walk) dir(d *os.File, path string, depth int, within bool) (bytes int64) {
	defer d.Close()
	for {
		names, err := d.Readdirnames(256)
		for _, name := range names {
			if w.over() {
				return bytes
			}
			bytes += w.entry(int(d.Fd()), name, path+"/"+name, depth, within)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.out.Cut = true
			}
			return bytes
		}
	}
}

// entry looks at one name, and removes what it is of the job.
func (w *walk) entry(in int, name, path string, depth int, within bool) (bytes int64) {
	var st unix.Stat_t
	if unix.Fstatat(in, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != w.dev || path == filepath.Dir(w.Scratch) {
		return 0 // the sandbox goes by itself
	}
	own := st.Uid == w.User.UID && !w.older(in, name, &st)
	flags := 0
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if st.Uid != w.User.UID && st.Mode&0o002 == 0 {
			return 0 // the job could make nothing there, or not without its owner's leave
		}
		flags = unix.AT_REMOVEDIR
		bytes = w.below(in, name, path, depth, within || own, own)
	} else if own {
		bytes = st.Size
	}
	if !own {
		return bytes
	}
	var err error
	if w.Remove && !w.out.Cut {
		err = unix.Unlinkat(in, name, flags)
	}
	if !within {
		l := host.Leftover{Kind: w.kind, Name: path, Bytes: bytes}
		if w.Remove && !w.out.Cut {
			settle(&l, err)
		}
		w.add(l)
	}
	return bytes
}

// below goes into a directory, one of the job's even if it has no rights to it any more.
func (w *walk) below(in int, name, path string, depth int, within, own bool) int64 {
	if depth == deepest {
		w.out.Cut = true
		return 0
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if own && w.Remove {
		// With the user's rights, as all here: what is not that user's stays as it is.
		_ = unix.Fchmodat(in, name, 0o700, 0)
	}
	fd, err := unix.Openat(in, name, flags, 0)
	if err != nil {
		return 0
	}
	return w.dir(os.NewFile(uintptr(fd), path), path, depth+1, within)
}

// older reports whether a file was there before the job began: by the time of its
// birth, and where the file system keeps none by that of its last change.
func (w *walk) older(in int, name string, st *unix.Stat_t) bool {
	made := time.Unix(st.Ctim.Unix())
	var sx unix.Statx_t
	if unix.Statx(in, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &sx) == nil && sx.Mask&unix.STATX_BTIME != 0 {
		made = time.Unix(sx.Btime.Sec, int64(sx.Btime.Nsec))
	}
	// The clock of files is that of the last tick.
	return made.Before(w.Since.Add(-20 * time.Millisecond))
}
