// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// options are ext4's for a file system that never outlives a reboot: nothing is done
// that would keep it whole over one, and what is removed goes back to the pool.
const options = "barrier=0,discard"

// Volumes implements host.Mounter.
type Volumes struct{}

// Mount implements host.Mounter.
func (Volumes) Mount(device string, parent *os.File, name string, hidden bool) error {
	const op = "mount.Mount"
	dir := at(parent, name)
	if hidden {
		if err := keepPrivate(); err != nil {
			return errs.E(op, errs.Broken, dir, err)
		}
	}
	if err := unix.Mount(device, dir, "ext4", unix.MS_NOATIME|unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return errs.E(op, errs.Broken, dir, &os.PathError{Op: "mount", Path: device, Err: err})
	}
	// A new file system has one directory, which is not the job's. It is gone already
	// if somebody else removed it.
	if err := os.Remove(dir + "/lost+found"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errs.E(op, errs.Broken, dir, errors.Join(err, unmount(dir)))
	}
	return nil
}

// at is the path of a name in an open directory, whatever that is called by now.
func at(parent *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), name)
}

// keepPrivate has no mount of this process seen by others. It fails where the
// process shares its mounts with its parent, whose they would change.
func keepPrivate() error {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	parent, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", os.Getppid()))
	if err != nil {
		return err
	}
	if own == parent {
		return errors.New("the process has no mounts of its own, and the volume would be seen by others")
	}
	// What the machine mounts and unmounts later still comes here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return &os.PathError{Op: "mount", Path: "/", Err: err}
	}
	return nil
}

// Unmount implements host.Mounter.
func (Volumes) Unmount(parent *os.File, name string) error {
	if err := unmount(at(parent, name)); err != nil {
		return errs.E("mount.Unmount", errs.Broken, name, err)
	}
	return nil
}

func unmount(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // nothing is mounted there
		return nil
	}
	// Who may not unmount is told so before the kernel looks whether anything is there.
	if errors.Is(err, unix.EPERM) && !elsewhere(dir) {
		return nil
	}
	return &os.PathError{Op: "umount", Path: dir, Err: err}
}

// elsewhere reports whether a directory is of another file system than the one that it
// is in.
func elsewhere(dir string) bool {
	var own, around unix.Stat_t
	if unix.Lstat(dir, &own) != nil || unix.Lstat(filepath.Dir(dir)+"/.", &around) != nil {
		return false
	}
	return own.Dev != around.Dev
}

// Fill implements host.Mounter.
func (Volumes) Fill(parent *os.File, name string) (host.Fill, error) {
	dir := at(parent, name)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return host.Fill{}, errs.E("mount.Fill", errs.Broken, dir, &os.PathError{Op: "statfs", Path: dir, Err: err})
	}
	return fill(&st), nil
}

// scrap is how much may be left of a file system that is full: a writer of larger
// pieces leaves so much.
const scrap = 64 << 10

// fill reads statfs's answer. Blocks that the file system keeps for itself at the end
// count as used when it is full: no job gets them.
func fill(st *unix.Statfs_t) host.Fill {
	size := uint64(max(st.Bsize, 1))
	if st.Frsize > 0 {
		size = uint64(st.Frsize)
	}
	used := st.Blocks - min(st.Bfree, st.Blocks)
	f := host.Fill{Files: int(st.Files - min(st.Ffree, st.Files))}
	if st.Bavail*size <= scrap && st.Blocks*size > scrap {
		f.Full, used = true, st.Blocks
	}
	f.Full = f.Full || st.Files > 0 && st.Ffree == 0
	f.UsedBytes = int64(used * size)
	return f
}
