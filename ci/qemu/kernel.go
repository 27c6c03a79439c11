// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// kernel is an unpacked kernel of the store.
type kernel struct {
	version string // 6.1.0-41-cloud-amd64
	dir     string
}

func (k kernel) image() string   { return filepath.Join(k.dir, "vmlinuz") }
func (k kernel) modules() string { return filepath.Join(k.dir, "lib", "modules", k.version) }

// kernelPackage depends on the package of Debian's newest kernel for virtual
// machines: with both versions of control groups, device-mapper and the file
// systems, without drivers for real hardware.
const kernelPackage = "linux-image-cloud-amd64"

// kernel finds the kernel that was made last.
func (s Store) kernel() (found kernel, ok bool, err error) {
	dirs, err := filepath.Glob(filepath.Join(s.dir, "kernel-*"))
	if err != nil {
		return found, false, err
	}
	var newest time.Time
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			return found, false, err
		}
		if !ok || info.ModTime().After(newest) {
			newest, ok = info.ModTime(), true
			found = kernel{strings.TrimPrefix(filepath.Base(dir), "kernel-"), dir}
		}
	}
	return found, ok, nil
}

// Make makes what Find finds: it downloads the kernel, unless there is one and no
// fresh one is wanted.
func (s Store) Make(ctx context.Context, fresh bool, log io.Writer) (Base, error) {
	if _, err := findTools(searched()); err != nil { // before a download that would be in vain
		return Base{}, err
	}
	err := s.exclusive(func() error {
		if _, ok, err := s.kernel(); err != nil || ok && !fresh {
			return err
		}
		return s.download(ctx, log)
	})
	if err != nil {
		return Base{}, err
	}
	return s.Find()
}

// download unpacks Debian's kernel into the store. It is installed nowhere, so
// this needs no rights.
func (s Store) download(ctx context.Context, log io.Writer) error {
	tmp, err := os.MkdirTemp(s.dir, ".kernel-")
	if err != nil {
		return fmt.Errorf("qemu: the store: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	a := apt{ctx: ctx, dir: tmp}
	name, err := a.fetch()
	if err != nil {
		// This machine has no lists of packages, or old ones. Own ones do for
		// everybody, and leave the machine's alone.
		fmt.Fprintf(log, "qemu: %v; with lists of packages of its own\n", err)
		if a.options, err = s.ownLists(); err != nil {
			return err
		}
		if err := a.run("update"); err != nil {
			return err
		}
		if name, err = a.fetch(); err != nil {
			return err
		}
	}
	root := filepath.Join(tmp, "root")
	if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", filepath.Join(tmp, name), root).CombinedOutput(); err != nil {
		return fmt.Errorf("qemu: dpkg-deb -x %s: %w: %s", name, err, out)
	}
	images, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return fmt.Errorf("qemu: the package %s has %d kernels", name, len(images))
	}
	k := kernel{version: strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-"), dir: filepath.Join(tmp, "kernel")}
	tree := filepath.Join(root, "lib", "modules", k.version)
	if _, err := os.Stat(tree); err != nil {
		tree = filepath.Join(root, "usr", tree[len(root):])
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(k.modules()), 0o700), os.Rename(tree, k.modules()), os.Rename(images[0], k.image())); err != nil {
		return fmt.Errorf("qemu: %w", err)
	}
	// The package has no list of what a module needs.
	if out, err := exec.CommandContext(ctx, sbin("depmod"), "-b", k.dir, k.version).CombinedOutput(); err != nil {
		return fmt.Errorf("qemu: depmod: %w: %s", err, out)
	}
	old, err := filepath.Glob(filepath.Join(s.dir, "kernel-*"))
	if err != nil {
		return err
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	fmt.Fprintln(log, "qemu: kernel", k.version)
	return os.Rename(k.dir, filepath.Join(s.dir, "kernel-"+k.version))
}

// ownLists are options of apt's by which it keeps its lists in the store.
func (s Store) ownLists() ([]string, error) {
	lists, cache := filepath.Join(s.dir, "lists"), filepath.Join(s.dir, "cache")
	err := errors.Join(os.MkdirAll(filepath.Join(lists, "partial"), 0o700), os.MkdirAll(filepath.Join(cache, "archives", "partial"), 0o700))
	return []string{"-o", "Dir::State::Lists=" + lists, "-o", "Dir::Cache=" + cache}, err
}

// apt downloads into a directory.
type apt struct {
	ctx     context.Context
	dir     string
	options []string
}

// command runs as the user that we are: a directory that only we can enter is none
// for apt's own user.
func (a apt) command(program string, args ...string) *exec.Cmd {
	options := append([]string{"-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=3"}, a.options...)
	cmd := exec.CommandContext(a.ctx, program, append(options, args...)...)
	cmd.Dir, cmd.Env = a.dir, append(os.Environ(), "LC_ALL=C")
	return cmd
}

func (a apt) run(args ...string) error {
	if out, err := a.command("apt-get", append([]string{"-q"}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("qemu: apt-get %s: %w: %s", strings.Join(args, " "), err, last(string(out), 5))
	}
	return nil
}

var dependsOn = regexp.MustCompile(`(?m)^\s*Depends: (linux-image-\S+)$`)

// fetch downloads the package of the kernel and returns its file.
func (a apt) fetch() (string, error) {
	out, err := a.command("apt-cache", "depends", kernelPackage).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("apt-cache depends %s: %w: %s", kernelPackage, err, last(string(out), 3))
	}
	m := dependsOn.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("apt-cache names no kernel for %s", kernelPackage)
	}
	if err := a.run("download", string(m[1])); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(a.dir, "*.deb"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("apt-get download %s left %d files", m[1], len(files))
	}
	return filepath.Base(files[0]), nil
}

// last returns the last n lines of a text.
func last(text string, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
