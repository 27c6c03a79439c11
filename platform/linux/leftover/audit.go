// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package leftover

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// The bounds of one audit.
const (
	patience  = time.Second
	mostLooks = 20_000 // files and directories
	deepest   = 16
	mostNamed = 32 // in the record
)

// Finder looks on this machine. It needs the rights of root.
type Finder struct {
	Access host.Access
	// Proc and Shared are /proc and the directories in which everybody may write,
	// but in tests.
	Proc   string
	Shared []string
}

// New looks at the machine as it is.
func New(access host.Access) *Finder {
	return &Finder{Access: access, Proc: "/proc", Shared: []string{"/dev/shm", "/tmp", "/var/tmp"}}
}

// audit is one that is under way.
type audit struct {
	host.AuditSpec
	out      host.Audit
	deadline time.Time
	looks    int
}

// Audit looks for what a job left, none of whose processes lives. Where somebody else
// uses the account at the moment nothing tells apart whose things are: what of System V and
// in /dev/shm has come since the job began is named then, and left.
func (f *Finder) Audit(spec host.AuditSpec) (host.Audit, error) {
	const op = "leftover.Audit"
	if spec.User == nil || spec.User.UID == 0 || spec.User.UID == uint32(os.Getuid()) {
		return host.Audit{}, errs.E(op, errs.Denied, "", errors.New("not the things of root, nor our own"))
	}
	if spec.Shared = spec.Shared || f.used(spec.User.UID); spec.Shared {
		spec.Remove = false
	}
	a := &audit{AuditSpec: spec, deadline: time.Now().Add(patience)}
	err := f.objects(a)
	err = errors.Join(err, f.mounts(a))
	if a.out.Shared = spec.Shared; spec.Files || spec.Shared {
		err = errors.Join(err, f.files(a))
	}
	if err != nil {
		err = errs.E(op, errs.Broken, spec.User.Name, err)
	}
	return a.out, err
}

// used reports whether a process of the user lives.
func (f *Finder) used(uid uint32) bool {
	dir, err := os.Open(f.Proc)
	if err != nil {
		return true // nothing is proven
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		var st unix.Stat_t
		if name[0] < '0' || name[0] > '9' || unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		if st.Uid == uid && !f.dead(name) {
			return true
		}
	}
	return false
}

// lives reports whether there is a process of that number.
func (f *Finder) lives(pid int) bool {
	_, err := os.Lstat(filepath.Join(f.Proc, strconv.Itoa(pid)))
	return err == nil
}

// dead reports whether a process is one that only waits to be waited for.
func (f *Finder) dead(pid string) bool {
	_, err := os.Readlink(filepath.Join(f.Proc, pid, "exe"))
	return err != nil
}

// add notes one thing.
func (a *audit) add(l host.Leftover) {
	if len(a.out.Found) == mostNamed {
		a.out.More++
		return
	}
	a.out.Found = append(a.out.Found, l)
}

// over reports whether enough was looked at.
func (a *audit) over() bool {
	a.looks++
	if a.looks > mostLooks || a.looks%64 == 0 && time.Now().After(a.deadline) {
		a.out.Cut = true
	}
	return a.out.Cut
}

// objects looks for those of System V. Their numbers are not used again for long: the
// kernel counts each on.
func (f *Finder) objects(a *audit) error {
	var all error
	for _, t := range [...]struct {
		file, kind string
		remove     uintptr
	}{{"shm", host.LeftMemory, unix.SYS_SHMCTL}, {"sem", host.LeftSemaphore, unix.SYS_SEMCTL}, {"msg", host.LeftQueue, unix.SYS_MSGCTL}} {
		text, err := os.ReadFile(filepath.Join(f.Proc, "sysvipc", t.file))
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without them
		}
		objects, perr := Objects(text)
		all = errors.Join(all, err, perr)
		for _, o := range objects {
			if a.over() || o.Owner != a.User.UID || o.Was != a.User.UID || o.Changed.Before(a.Since.Truncate(time.Second)) {
				continue
			}
			if a.Shared && o.Creator > 0 && f.lives(o.Creator) {
				continue // no process of the job does
			}
			l := host.Leftover{Kind: t.kind, Name: strconv.Itoa(o.ID), Bytes: o.Bytes}
			if a.Remove {
				settle(&l, removeObject(t.remove, o.ID))
			}
			a.add(l)
		}
	}
	return all
}

// removeObject ends an object of System V. semctl has the number of a semaphore before
// the command.
func removeObject(call uintptr, id int) error {
	command := [2]uintptr{unix.IPC_RMID, 0}
	if call == unix.SYS_SEMCTL {
		command = [2]uintptr{0, unix.IPC_RMID}
	}
	if _, _, errno := unix.Syscall(call, uintptr(id), command[0], command[1]); errno != 0 {
		return errno
	}
	return nil
}

// mounts looks for what is mounted below the scratch directory, which nobody but the
// job can have asked for (by fusermount). It would keep the directory from being
// removed, so it goes whoever else has the account.
func (f *Finder) mounts(a *audit) error {
	text, err := os.ReadFile(filepath.Join(f.Proc, "self/mountinfo"))
	if err != nil {
		return err
	}
	for _, at := range Mounts(text, a.Scratch) {
		l := host.Leftover{Kind: host.LeftMount, Name: at}
		settle(&l, unmount(at))
		a.add(l)
	}
	return nil
}

// unmount takes a mount off. No link is followed on the way.
func unmount(at string) error {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(at), how)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Unmount("/proc/self/fd/"+strconv.Itoa(fd)+"/"+filepath.Base(at), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
}

// settle notes what came of removing l.
func settle(l *host.Leftover, err error) {
	l.Removed = err == nil
	if err != nil {
		l.Problem = err.Error()
	}
}
