// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/access"
)

// Make gives the calling thread the space s. Sources are opened with the rights of u,
// nil being those of the process. After an error the thread is of no use.
func Make(s host.Space, u *host.Identity) error {
	const op = "space.Make"
	steps, err := PlanOf(s)
	if err != nil {
		return err
	}
	if len(steps) > 0 && unix.Gettid() == os.Getpid() {
		return errs.E(op, errs.Internal, "", errors.New("the main thread has to stay where the process is"))
	}
	for _, step := range steps {
		if err := step.do(u); err != nil {
			return errs.E(op, errs.Broken, step.String(), err)
		}
	}
	return nil
}

// Join brings the calling thread to the namespaces of another thread of this process,
// which Make has given the space s.
func Join(s host.Space, thread int) error {
	const op = "space.Join"
	steps, err := PlanOf(s)
	if err != nil || len(steps) == 0 {
		return err
	}
	// All are opened before any is entered: the thread's /proc may be another one then.
	var names []string
	if s.NoNetwork {
		names = append(names, "net")
	}
	if s.PIDs {
		names = append(names, "pid_for_children")
	}
	if steps[0].Mounts {
		names = append(names, "mnt")
	}
	fds := make([]int, 0, len(names))
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for _, name := range names {
		path := "/proc/self/task/" + strconv.Itoa(thread) + "/ns/" + name
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return errs.E(op, errs.Broken, path, err)
		}
		fds = append(fds, fd)
	}
	// Who enters mounts finds himself at their root, whatever directory is / for those
	// who made them.
	root, err := unix.Open("/proc/self/task/"+strconv.Itoa(thread)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errs.E(op, errs.Broken, "root", err)
	}
	defer unix.Close(root)
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // who shares a root directory cannot enter another's mounts
		return errs.E(op, errs.Broken, "unshare", err)
	}
	for i, fd := range fds {
		if err := unix.Setns(fd, 0); err != nil {
			return errs.E(op, errs.Broken, names[i], err)
		}
	}
	if err := unix.Fchdir(root); err != nil {
		return errs.E(op, errs.Broken, "root", err)
	}
	if err := unix.Chroot("."); err != nil {
		return errs.E(op, errs.Broken, "root", err)
	}
	return nil
}

func (s Step) do(u *host.Identity) error {
	switch s.Verb {
	case Leave:
		return s.leave()
	case Slave:
		return mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "")
	case Bind:
		return s.bind(u)
	case Memory:
		return mount("tmpfs", s.Target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, s.options())
	case ReadOnly:
		return readOnly(s.Target)
	case Loopback:
		return loopback()
	}
	return fmt.Errorf("the step %d is not known", s.Verb)
}

func (s Step) leave() error {
	flags := 0
	if s.Mounts {
		flags |= unix.CLONE_FS | unix.CLONE_NEWNS
	}
	if s.PIDs {
		flags |= unix.CLONE_NEWPID
	}
	if s.Network {
		flags |= unix.CLONE_NEWNET
	}
	return os.NewSyscallError("unshare", unix.Unshare(flags))
}

// bind opens the source as u would, links on the way included, and no link itself: what
// u could not reach is not brought to him, whatever he has put in the way. It is opened
// by this thread, for a directory of another tree of mounts cannot be mounted here.
func (s Step) bind(u *host.Identity) error {
	fd := -1
	open := func() (err error) {
		fd, err = unix.Open(s.Source, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	}
	err := open
	if u != nil {
		err = func() error { return access.Here(u, open) }
	}
	if err := err(); err != nil {
		return &os.PathError{Op: "open", Path: s.Source, Err: err}
	}
	defer unix.Close(fd)
	return mount("/proc/thread-self/fd/"+strconv.Itoa(fd), s.Target, "", unix.MS_BIND, "")
}

// readOnly keeps what else is said of the mount.
func readOnly(target string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(target, &st); err != nil {
		return &os.PathError{Op: "statfs", Path: target, Err: err}
	}
	const same = unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC | unix.ST_NOATIME | unix.ST_NODIRATIME // MS_ are the same bits
	return mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|uintptr(st.Flags&same), "")
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return &os.PathError{Op: "mount", Path: target, Err: err}
	}
	return nil
}

// loopback brings lo up in the thread's network.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return os.NewSyscallError("SIOCSIFFLAGS", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}

// ProcOf is where the processes of a space look for their /proc.
func ProcOf(s host.Space) string { return filepath.Join("/", s.Root, "proc") }
