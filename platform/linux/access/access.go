// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package access is how a process of root reaches the files of another user:
// with that user's rights and no others. It owns the change of the rights of
// one thread. It must never change the rights of the whole process, start a
// program, or look at a file of a user with the rights of root.
package access

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Files is the host.Access of Linux. It needs the rights of root. One is enough
// for a process; its methods are safe for concurrent use.
type Files struct {
	mu sync.Mutex // one change of rights at a time
}

var _ host.Access = (*Files)(nil)

// Enter implements host.Access.
func (a *Files) Enter(u *host.Identity, dir string) error {
	return a.As(u, func() error {
		var st unix.Stat_t
		// The dot asks for what chdir does: a directory that may be passed through.
		if err := unix.Stat(dir+"/.", &st); err != nil {
			return &os.PathError{Op: "chdir", Path: dir, Err: err}
		}
		return nil
	})
}

// Overwrite implements host.Access. The whole path is walked with the user's
// rights, so that links on the way lead nowhere where the user could not go.
// The file itself is looked at once it is open: it is emptied only when it is
// what it should be.
func (a *Files) Overwrite(u *host.Identity, path string) (*os.File, error) {
	var f *os.File
	err := a.As(u, func() error {
		// O_NONBLOCK keeps a named pipe without a reader from holding us up.
		const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
		fd, err := unix.Open(path, flags, 0o644)
		if err == nil {
			if err = plain(fd); err == nil {
				err = unix.Ftruncate(fd, 0)
			}
			if err != nil {
				unix.Close(fd)
			}
		}
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		f = os.NewFile(uintptr(fd), path)
		return nil
	})
	return f, err
}

// plain refuses what is no regular file with one name, and makes writing to it
// wait as it does for any file.
func plain(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("it is no regular file: %w", unix.EINVAL)
	case st.Nlink != 1:
		return fmt.Errorf("it is a file with %d names: %w", st.Nlink, unix.EMLINK)
	}
	return unix.SetNonblock(fd, false)
}

// As calls f on a thread that reaches files with the rights of u alone and is
// used for nothing else. f must not start a goroutine that is to have them too.
func (a *Files) As(u *host.Identity, f func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with this goroutine, whatever its
		// rights are by then. The system's calls below change one thread, those
		// of the syscall package would change all.
		runtime.LockOSThread()
		// With the rights of a thread the kernel changes who may look into the
		// process, which is to stay as it was.
		dumpable, derr := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		err := become(u)
		if err == nil {
			err = f()
		} else {
			err = errs.E("access.As", errs.Denied, u.Name, err)
		}
		if derr == nil {
			_ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(dumpable), 0, 0, 0)
		}
		done <- err
	}()
	return <-done
}

// become gives the calling thread the file rights of u: user, group and
// groups. With the user root's power over files goes as well.
func become(u *host.Identity) error {
	groups := make([]int, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = int(g)
	}
	if err := unix.Setgroups(groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	// These two tell nothing about success but what was before.
	_, _ = unix.SetfsgidRetGid(int(u.GID))
	_, _ = unix.SetfsuidRetUid(int(u.UID))
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if uid != int(u.UID) || gid != int(u.GID) {
		return fmt.Errorf("the rights are those of %d:%d, not of %d:%d", uid, gid, u.UID, u.GID)
	}
	return nil
}
