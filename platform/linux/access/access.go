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
type Files struct{}

// turning is held while a thread changes its rights: what that changes of the process
// is read before and set back after.
var turning sync.Mutex

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
	return a.open(u, path, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_NOFOLLOW, func(fd int) error {
		if err := plain(fd); err != nil {
			return err
		}
		return unix.Ftruncate(fd, 0)
	})
}

// Append implements host.Access.
func (a *Files) Append(u *host.Identity, path string) (*os.File, error) {
	return a.open(u, path, unix.O_WRONLY|unix.O_APPEND|unix.O_NOFOLLOW, plain)
}

// Read implements host.Access.
func (a *Files) Read(u *host.Identity, path string) (*os.File, error) {
	return a.open(u, path, unix.O_RDONLY, readable)
}

// open opens path with the rights of u, if check has nothing against it.
func (a *Files) open(u *host.Identity, path string, flags int, check func(fd int) error) (*os.File, error) {
	var f *os.File
	err := a.As(u, func() error {
		// O_NONBLOCK keeps a named pipe without an other end from holding us up.
		fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o644)
		if err == nil {
			if err = check(fd); err == nil {
				err = unix.SetNonblock(fd, false) // writing and reading waits as it does for any file
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

// readable refuses what reading may hang on, and what is read by other means.
func readable(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if t := st.Mode & unix.S_IFMT; t != unix.S_IFREG && t != unix.S_IFCHR {
		return fmt.Errorf("it is no regular file and no device: %w", unix.EINVAL)
	}
	return nil
}

// plain refuses what is no regular file with one name.
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
	return nil
}

// As implements host.Access: f is called on a thread that reaches files with the
// rights of u alone and is used for nothing else. Other calls do not wait for f.
func (a *Files) As(u *host.Identity, f func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with this goroutine, whatever its
		// rights are by then. The system's calls below change one thread, those
		// of the syscall package would change all.
		runtime.LockOSThread()
		err := turn(u)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// Give implements host.Access. All is asked of the open file, so that nobody can
// put another one in its place.
func (a *Files) Give(u *host.Identity, root *os.Root, name string) error {
	const op = "access.Give"
	f, err := root.OpenFile(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return errs.E(op, errs.Broken, name, err)
	}
	defer f.Close()
	fd := int(f.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errs.E(op, errs.Broken, name, err)
	}
	kind := st.Mode & unix.S_IFMT
	switch {
	case st.Uid == u.UID:
		return nil
	case st.Uid != uint32(os.Getuid()), kind != unix.S_IFDIR && (kind != unix.S_IFREG || st.Nlink != 1):
		return errs.E(op, errs.Denied, name, fmt.Errorf("it is of the user %d and has %d names, want a file that was just made: %w", st.Uid, st.Nlink, unix.EPERM))
	}
	if err := unix.Fchown(fd, int(u.UID), int(u.GID)); err != nil {
		return errs.E(op, errs.Broken, name, err)
	}
	return nil
}

// turn gives the calling thread the file rights of u. With those of a thread the
// kernel changes who may look into the process, which is to stay as it was.
func turn(u *host.Identity) error {
	turning.Lock()
	defer turning.Unlock()
	dumpable, derr := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	err := become(u)
	if derr == nil {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(dumpable), 0, 0, 0)
	}
	if err != nil {
		return errs.E("access.As", errs.Denied, u.Name, err)
	}
	return nil
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

// Here calls f on the calling thread, to which the goroutine is locked, with the file
// rights of u, and gives the thread its own back. It is for threads that are no longer
// where the process is: others use As. After an error of Here itself the thread must end.
func Here(u *host.Identity, f func() error) error {
	groups, err := unix.Getgroups()
	if err != nil {
		return errs.E("access.Here", errs.Broken, u.Name, err)
	}
	back := &host.Identity{Name: "root", UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	for _, g := range groups {
		back.Groups = append(back.Groups, uint32(g))
	}
	if err := turn(u); err != nil {
		return err
	}
	ferr := f()
	if err := turn(back); err != nil {
		return err
	}
	return ferr
}
