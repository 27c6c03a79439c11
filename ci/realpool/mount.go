// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// addressInside is the address of the host name inside, one of those that are
// for documentation (RFC 5737).
const addressInside = "192.0.2.2"

// arrange makes the root directory the root of this mount namespace, with what
// the run may write, and gives the network namespace its addresses.
func arrange(o order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	top := filepath.Join(o.Run, "root")
	if err := os.Mkdir(top, 0o755); err != nil {
		return err
	}
	if err := bindMount(o.Root, top, false); err != nil {
		return err
	}
	if err := readOnly(top); err != nil {
		return err
	}
	for i, dir := range o.Writable {
		copied := filepath.Join(o.Run, fmt.Sprintf("w%d", i))
		if out, err := exec.Command("cp", "-a", "--reflink=auto", "--", filepath.Join(o.Root, dir), copied).CombinedOutput(); err != nil {
			return fmt.Errorf("cp %s: %w: %s", dir, err, strings.TrimSpace(string(out)))
		}
		if err := bindMount(copied, filepath.Join(top, dir), false); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(top, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("proc cannot be mounted (a container that hides parts of /proc does not let it): %w", err)
	}
	for _, dir := range []string{"/dev", "/sys"} {
		if err := bindMount(dir, filepath.Join(top, dir), true); err != nil {
			return err
		}
	}
	for _, b := range o.Binds {
		if err := bindAt(b, top); err != nil {
			return err
		}
	}
	n := 0
	for path, text := range o.Files {
		n++
		file := filepath.Join(o.Run, fmt.Sprintf("f%d", n))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		if err := os.Chmod(file, 0o644); err != nil { // whatever the umask is
			return err
		}
		if err := bindMount(file, filepath.Join(top, path), false); err != nil {
			return err
		}
	}
	for _, dir := range o.Own {
		if out, err := chrooted(top, "chown", "-R", tester+":", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("chown %s: %w: %s", dir, err, strings.TrimSpace(string(out)))
		}
	}
	if o.Host != "" {
		if err := unix.Sethostname([]byte(shortName(o.Host))); err != nil {
			return fmt.Errorf("the host name: %w", err)
		}
		if err := loopback(); err != nil {
			return fmt.Errorf("the loopback interface: %w", err)
		}
	}
	return enterRoot(top)
}

func bindMount(source, target string, recursive bool) error {
	flags := uintptr(unix.MS_BIND)
	if recursive {
		flags |= unix.MS_REC
	}
	if err := unix.Mount(source, target, "", flags, ""); err != nil {
		return fmt.Errorf("%s cannot be mounted at %s: %w", source, target, err)
	}
	return nil
}

// bindAt mounts what the user named. The root directory is read-only, so a
// target that is not there can be made only below a writable directory.
func bindAt(b bind, top string) error {
	info, err := os.Stat(b.Source)
	if err != nil {
		return err
	}
	target := filepath.Join(top, b.Target)
	if _, err := os.Stat(target); errors.Is(err, os.ErrNotExist) {
		if info.IsDir() {
			err = os.MkdirAll(target, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
			err = touch(target)
		}
		if err != nil {
			return fmt.Errorf("%s is not there inside and cannot be made; choose a place below /mnt: %w", b.Target, err)
		}
	}
	return bindMount(b.Source, target, true)
}

// readOnly makes a mount read-only. In a user namespace the flags which the
// mount has from outside must stay.
func readOnly(top string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(top, &st); err != nil {
		return err
	}
	flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY)
	for _, f := range []struct{ st, ms uintptr }{{unix.ST_NOSUID, unix.MS_NOSUID}, {unix.ST_NODEV, unix.MS_NODEV}, {unix.ST_NOEXEC, unix.MS_NOEXEC},
		{unix.ST_NOATIME, unix.MS_NOATIME}, {unix.ST_NODIRATIME, unix.MS_NODIRATIME}, {unix.ST_RELATIME, unix.MS_RELATIME}} {
		if uintptr(st.Flags)&f.st != 0 {
			flags |= f.ms
		}
	}
	if err := unix.Mount("", top, "", flags, ""); err != nil {
		return fmt.Errorf("the root directory cannot be made read-only: %w", err)
	}
	return nil
}

// enterRoot makes top the root of everything in the mount namespace. Where the
// present root is no mount of its own (a plain chroot), it cannot be exchanged;
// then this process and its children get another root.
func enterRoot(top string) error {
	if err := unix.Chdir(top); err != nil {
		return err
	}
	err := unix.PivotRoot(".", ".")
	if err == nil {
		err = unix.Unmount(".", unix.MNT_DETACH)
	} else if errors.Is(err, unix.EINVAL) {
		err = unix.Chroot(".")
	}
	if err != nil {
		return fmt.Errorf("the root cannot be exchanged: %w", err)
	}
	return unix.Chdir("/")
}

// loopback brings the interface up and gives it the address of the host name.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, up); err != nil {
		return err
	}
	up.SetUint16(up.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		return err
	}
	second, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := second.SetInet4Addr(net.ParseIP(addressInside).To4()); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, second)
}
