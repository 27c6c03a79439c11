// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// recipe is raised when the base is made of other things than before.
const recipe = 1

// modules are those that the base has, with what they need. What a kernel has
// built in, or not at all, is no error: a test finds out what it lacks.
func modules() []string {
	return strings.Fields("virtio_pci virtio_blk virtio_console virtio_net dm-mod dm-thin-pool dm-snapshot dm-crypt loop " +
		"ext4 xfs overlay fuse squashfs quota_v2 quota_tree autofs4 configfs nbd dummy veth tun bridge aesni_intel xts crc32c")
}

// pack makes the first file system of every guest, unless the store has it. It is
// called with the store locked.
func (s Store) pack(k kernel, t tools) (string, error) {
	key, err := ingredients(k, t)
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, "base-"+key+".cpio")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	f, err := os.CreateTemp(s.dir, ".base-")
	if err != nil {
		return "", fmt.Errorf("qemu: the store: %w", err)
	}
	err = errors.Join(writeBase(newArchive(f), k, t), f.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	// A base of other ingredients is not removed before the next one is whole, and
	// a machine that began with it has read it.
	old, err := filepath.Glob(filepath.Join(s.dir, "base-*.cpio"))
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	for _, name := range old {
		err = errors.Join(err, os.Remove(name))
	}
	return file, err
}

// ingredients is a key that changes when a program of this machine does, the
// kernel, or what is packed.
func ingredients(k kernel, t tools) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, recipe, k.version, modules(), lvmNames(), lvmConf, accounts())
	for _, p := range inside() {
		file := t.programs[p[0]]
		info, err := os.Stat(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, p, file, info.Size(), info.ModTime().UnixNano())
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

func writeBase(a *archive, k kernel, t tools) error {
	for _, top := range []string{"bin", "sbin", "lib", "lib64"} {
		a.dir("usr/"+top, 0o755)
		a.link(top, "usr/"+top)
	}
	a.console()
	for _, dir := range strings.Fields("proc sys run mnt etc root var/tmp var/lock var/log var/cache") {
		a.dir(dir, 0o755)
	}
	a.dir("tmp", 0o777|os.ModeSticky)
	for _, name := range slices.Sorted(maps.Keys(accounts())) {
		a.text(name, 0o644, accounts()[name])
	}
	a.text("etc/lvm/lvm.conf", 0o644, lvmConf)
	if _, err := os.Stat(mke2fsConf); err == nil { // without it mkfs.ext4 makes another kind of ext4
		a.copy(mke2fsConf, mke2fsConf)
	}
	if err := addPrograms(a, t); err != nil {
		return err
	}
	if err := addModules(a, k); err != nil {
		return err
	}
	return a.close()
}

// addPrograms adds the programs with the libraries that they load, and the names
// of everything that busybox is.
func addPrograms(a *archive, t tools) error {
	for _, p := range inside() {
		name, file := p[0], t.programs[p[0]]
		a.copy(path.Join("usr/sbin", name), file)
		libs, err := libraries(file)
		if err != nil {
			return err
		}
		for _, lib := range libs {
			if !a.has(lib) {
				a.copy(lib, lib)
			}
		}
	}
	for _, name := range lvmNames() {
		a.link("usr/sbin/"+name, "lvm")
	}
	a.link("usr/bin/sh", "/usr/sbin/dash")
	a.link("usr/bin/bash", "/usr/sbin/bash") // scripts name it there
	out, err := exec.Command(t.programs["busybox"], "--list").Output()
	if err != nil {
		return fmt.Errorf("qemu: busybox --list: %w", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if !a.has("usr/sbin/"+name) && !a.has("usr/bin/"+name) {
			a.link("usr/bin/"+name, "/usr/sbin/busybox")
		}
	}
	return nil
}

// libraries are the files that the loader maps for a program, and the loader.
func libraries(file string) ([]string, error) {
	if static(file) {
		return nil, nil
	}
	out, err := exec.Command("ldd", file).Output()
	if err != nil {
		return nil, fmt.Errorf("qemu: ldd %s: %w", file, err)
	}
	return parseLdd(string(out)), nil
}

// parseLdd finds the files in what ldd prints: "name => file (address)", or the
// file alone for the loader.
func parseLdd(out string) []string {
	var files []string
	for line := range strings.Lines(out) {
		if _, file, ok := strings.Cut(line, " => "); ok {
			line = file
		}
		if words := strings.Fields(line); len(words) > 0 && path.IsAbs(words[0]) {
			files = append(files, words[0])
		}
	}
	return files
}

// addModules adds modules, and the lists by which modprobe finds them.
func addModules(a *archive, k kernel) error {
	files, err := needed(k)
	if err != nil {
		return err
	}
	lists, err := filepath.Glob(filepath.Join(k.modules(), "modules.*"))
	if err != nil {
		return err
	}
	for _, file := range append(files, lists...) {
		rel, err := filepath.Rel(k.dir, file)
		if err != nil {
			return err
		}
		a.copy(filepath.ToSlash(rel), file)
	}
	return nil
}

// needed are the files of the modules.
func needed(k kernel) ([]string, error) {
	var files []string
	for _, name := range modules() {
		out, err := exec.Command(sbin("modprobe"), "-d", k.dir, "-S", k.version, "--show-depends", name).Output()
		if err != nil {
			continue // this kernel does not have it
		}
		for line := range strings.Lines(string(out)) {
			if words := strings.Fields(line); len(words) > 1 && words[0] == "insmod" {
				files = append(files, words[1])
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("qemu: modprobe finds no module of the kernel in %s", k.modules())
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

const mke2fsConf = "/etc/mke2fs.conf"

// Tester is the ordinary user of every guest: uid 1000, with a shell and a home.
const Tester = "tester"

// accounts are the files that say who is who in the guest.
func accounts() map[string]string {
	return map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\ngames:x:5:60:games:/usr/games:/bin/false\ncondor:x:990:990:HTCondor:/var/lib/condor:/bin/false\n" +
			Tester + ":x:1000:1000:Tester:/home/" + Tester + ":/bin/sh\nother:x:1001:1001:Other:/home/other:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
		"etc/group":         "root:x:0:\ntty:x:5:\ndisk:x:6:\ngames:x:60:\ncondor:x:990:\n" + Tester + ":x:1000:\nother:x:1001:\nnogroup:x:65534:\n",
		"etc/hosts":         "127.0.0.1 guest.example.org guest localhost\n::1 localhost\n",
		"etc/hostname":      "guest\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"etc/shells":        "/bin/sh\n",
		"etc/os-release":    "ID=debian\nNAME=\"guest of the tests\"\n",
	}
}

// lvmConf lets lvm do without udev, which the guest does not have.
const lvmConf = `activation { udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=0 }
devices { obtain_device_list_from_udev=0 use_devicesfile=0 }
global { use_lvmpolld=0 }
backup { backup=0 archive=0 }
`
