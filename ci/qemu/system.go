// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// systemSuite is the release of Debian that a machine with systemd has.
const systemSuite = "bookworm"

// systemPackages are those that are added to the smallest system.
func systemPackages() []string {
	return strings.Fields("systemd-sysv dbus libpam-systemd udev kmod iproute2 lvm2 thin-provisioning-tools e2fsprogs xfsprogs")
}

// systemFile is where the store has, or will have, the file system with systemd for
// a kernel.
func (s Store) systemFile(k kernel) string {
	sum := sha256.Sum256(fmt.Append(nil, recipe, systemSuite, systemPackages(), k.version, accounts(), lvmConf))
	return filepath.Join(s.dir, fmt.Sprintf("system-%x.img", sum[:8]))
}

// Has returns an error where a machine needs something that is not made.
func (b Base) Has(m Machine) error {
	if !m.Systemd {
		return nil
	}
	if _, err := os.Stat(b.store.systemFile(b.kernel)); err != nil {
		return &NotMade{"there is no file system with systemd for a guest in " + b.store.dir, "run as root: go run ./ci/guest make -systemd", true}
	}
	return nil
}

// MakeSystem makes the file system of machines with systemd, unless it is there.
func (b Base) MakeSystem(ctx context.Context, log io.Writer) error {
	if look(searched(), "mmdebstrap") == "" {
		return &NotMade{What: "a guest with systemd needs mmdebstrap, not found in PATH", Remedy: "apt-get install --no-install-recommends mmdebstrap"}
	}
	if os.Geteuid() != 0 { // files of others have to be made
		return &NotMade{"only root can make the file system of a guest with systemd", "run it as root", true}
	}
	return b.store.exclusive(func() error {
		file := b.store.systemFile(b.kernel)
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		fmt.Fprintf(log, "qemu: making a Debian %s with systemd in %s (half a minute)\n", systemSuite, b.store.dir)
		dir, err := os.MkdirTemp(b.store.dir, ".system-")
		if err != nil {
			return fmt.Errorf("qemu: the store: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		image := filepath.Join(dir, "image")
		if err := b.installSystem(ctx, filepath.Join(dir, "root"), image); err != nil {
			return err
		}
		old, err := filepath.Glob(filepath.Join(b.store.dir, "system-*.img"))
		for _, name := range old {
			err = errors.Join(err, os.Remove(name))
		}
		return errors.Join(err, os.Rename(image, file))
	})
}

// installSystem installs Debian in a directory and makes an image of it.
func (b Base) installSystem(ctx context.Context, root, image string) error {
	modules := filepath.Join(root, "usr/lib/modules")
	for _, step := range [][]string{
		{"mmdebstrap", "--mode=root", "--variant=minbase", "--aptopt=Acquire::Retries \"3\"", "--include=" + strings.Join(systemPackages(), ","), systemSuite, root},
		{"mkdir", "-p", modules},
		{"cp", "-a", b.kernel.modules(), modules + "/"}, // where udev and modprobe find them
	} {
		if out, err := exec.CommandContext(ctx, sbin(step[0]), step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("qemu: %s: %w: %s", step[0], err, last(string(out), 10))
		}
	}
	if err := settle(root); err != nil {
		return fmt.Errorf("qemu: the file system with systemd: %w", err)
	}
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 2<<30)); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, sbin("mkfs.ext4"), "-q", "-F", "-d", root, image).CombinedOutput(); err != nil {
		return fmt.Errorf("qemu: mkfs.ext4: %w: %s", err, last(string(out), 5))
	}
	return nil
}

// settle gives the system its users and what it would ask for at a first start.
func settle(root string) error {
	var errs []error
	for name, text := range accounts() {
		file := filepath.Join(root, name)
		switch name {
		case "etc/passwd", "etc/group":
			has, err := os.ReadFile(file)
			errs = append(errs, err, os.WriteFile(file, []byte(string(has)+newAccounts(string(has), text)), 0o644))
		case "etc/hosts", "etc/hostname":
			errs = append(errs, os.WriteFile(file, []byte(text), 0o644))
		}
	}
	for name, uid := range map[string]int{Tester: 1000, "other": 1001} {
		home := filepath.Join(root, "home", name)
		errs = append(errs, os.MkdirAll(home, 0o755), os.Chown(home, uid, uid))
	}
	// A system without a number of its own takes every service for new.
	errs = append(errs, os.WriteFile(filepath.Join(root, "etc/machine-id"), []byte("0123456789abcdef0123456789abcdef\n"), 0o444))
	return errors.Join(errs...)
}

// newAccounts are those lines of a text whose names a file does not have.
func newAccounts(has, lines string) string {
	var added strings.Builder
	for line := range strings.Lines(lines) {
		name, _, _ := strings.Cut(line, ":")
		if !strings.Contains("\n"+has, "\n"+name+":") {
			added.WriteString(line)
		}
	}
	return added.String()
}

// kernelWords are what systemd reads of the kernel's command line.
func (m Machine) kernelWords() string {
	if !m.Systemd {
		return ""
	}
	words := " systemd.unit=execpoint.target systemd.show_status=no systemd.unified_cgroup_hierarchy="
	switch m.Cgroups {
	case V1:
		return words + "no systemd.legacy_systemd_cgroup_controller=yes"
	case Hybrid:
		return words + "no"
	}
	return words + "yes"
}
