// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const emulator = "qemu-system-x86_64"

// inside are the programs of this machine that the guest has, with the package of
// Debian's that brings each. sh is dash, as in Debian, and everything
// else is busybox.
func inside() [][2]string {
	return [][2]string{
		{"busybox", "busybox-static"}, {"dash", "dash"}, {"bash", "bash"},
		{"kmod", "kmod"}, {"modprobe", "kmod"}, {"lsmod", "kmod"},
		{"lvm", "lvm2"}, {"dmsetup", "dmsetup"}, {"thin_check", "thin-provisioning-tools"},
		{"mkfs.ext4", "e2fsprogs"}, {"e2fsck", "e2fsprogs"}, {"resize2fs", "e2fsprogs"}, {"tune2fs", "e2fsprogs"}, {"chattr", "e2fsprogs"}, {"lsattr", "e2fsprogs"},
		{"mkfs.xfs", "xfsprogs"}, {"xfs_quota", "xfsprogs"}, {"xfs_io", "xfsprogs"}, {"xfs_growfs", "xfsprogs"},
		{"mount", "mount"}, {"umount", "mount"}, {"losetup", "mount"},
		{"setpriv", "util-linux"}, {"lsblk", "util-linux"}, {"findmnt", "util-linux"}, {"unshare", "util-linux"}, {"nsenter", "util-linux"}, {"blkid", "util-linux"},
	}
}

// lvmNames are other names of lvm that scripts and daemons call.
func lvmNames() []string {
	return strings.Fields("lvchange lvconvert lvcreate lvdisplay lvextend lvreduce lvremove lvrename lvresize lvs lvscan " +
		"pvcreate pvdisplay pvremove pvresize pvs pvscan vgchange vgcreate vgdisplay vgextend vgreduce vgremove vgs vgscan")
}

// tools is what this machine brings to a guest.
type tools struct {
	emulator string
	programs map[string]string // where each of inside is
}

// searched are the directories of programs: those in PATH, and root's.
func searched() []string {
	return strings.Split(os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", ":")
}

// findTools finds them in directories, or says what to install.
func findTools(dirs []string) (tools, error) {
	t := tools{programs: map[string]string{}}
	if runtime.GOARCH != "amd64" {
		return t, &NotMade{What: "a guest has an amd64 kernel, and this machine is " + runtime.GOARCH, Remedy: "run it on amd64"}
	}
	var missing, install []string
	need := func(name, pkg string) string {
		file := look(dirs, name)
		if file == "" {
			missing, install = append(missing, name), append(install, pkg)
		}
		return file
	}
	t.emulator = need(emulator, "qemu-system-x86")
	for _, p := range inside() {
		t.programs[p[0]] = need(p[0], p[1])
	}
	need("depmod", "kmod")
	if file := t.programs["busybox"]; file != "" && !static(file) {
		missing, install = append(missing, "a busybox without libraries"), append(install, "busybox-static")
	}
	if len(missing) == 0 {
		return t, nil
	}
	slices.Sort(install)
	return t, &NotMade{
		What:   fmt.Sprintf("a guest needs %s, not found in PATH", strings.Join(missing, ", ")),
		Remedy: "apt-get install --no-install-recommends " + strings.Join(slices.Compact(install), " "),
	}
}

// look finds a program in directories.
func look(dirs []string, name string) string {
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// sbin is where a program is that findTools found.
func sbin(name string) string { return look(searched(), name) }

// static says whether a program runs without a loader of libraries.
func static(file string) bool {
	f, err := elf.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	return !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
