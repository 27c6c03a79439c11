// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// StoreKnob names the directory of the store.
const StoreKnob = "EXECPOINT_GUEST_STORE"

// Store is the directory where everything is that is made once:
//
//	lock                held while something is made
//	kernel-VERSION/     vmlinuz, and lib/modules/VERSION
//	system-KEY.img      a file system with systemd
//	base-KEY.cpio       the first file system, of the ingredients that KEY stands for
//	kvm-KEY             whether a machine with KVM came up: yes or no
//	lists/ cache/       lists of Debian's packages, where the machine has none
type Store struct{ dir string }

// OpenStore makes the store's directory, which only its owner can write. An empty
// name stands for the directory that the environment names, or else for one below
// the user's cache directory.
func OpenStore(dir string) (Store, error) {
	if dir == "" {
		var err error
		if dir, err = defaultStore(os.Getenv, os.Geteuid()); err != nil {
			return Store{}, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Store{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Store{}, fmt.Errorf("qemu: the store: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return Store{}, fmt.Errorf("qemu: the store: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return Store{}, fmt.Errorf("qemu: the store %s has mode %04o; want a directory that only user %d owns and can write", dir, info.Mode().Perm(), os.Geteuid())
	}
	return Store{dir}, nil
}

// defaultStore is a directory on disk that outlives a reboot: a kernel with its
// modules has some 100 MB.
func defaultStore(getenv func(string) string, uid int) (string, error) {
	if dir := getenv(StoreKnob); dir != "" {
		return dir, nil
	}
	if uid == 0 {
		return "/var/cache/execpoint-guest", nil
	}
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "execpoint-guest"), nil
	}
	if dir := getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".cache", "execpoint-guest"), nil
	}
	return "", errors.New("qemu: neither HOME nor XDG_CACHE_HOME is set; name a directory in " + StoreKnob)
}

// exclusive calls f while no other process makes anything in the store.
func (s Store) exclusive(f func() error) error {
	lock, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("qemu: the store: %w", err)
	}
	defer func() { _ = lock.Close() }()
	for {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
		if err == nil {
			return f()
		}
		if err != syscall.EINTR {
			return fmt.Errorf("qemu: the lock of the store: %w", err)
		}
	}
}

// Base is what every machine begins with.
type Base struct {
	store    Store
	kernel   kernel
	archive  string
	emulator string
}

// NotMade is the error of Find where something is missing that Find does not
// bring itself.
type NotMade struct {
	What    string // is missing
	Remedy  string // what to install or to do
	ForRoot bool   // only root can do it
}

func (e *NotMade) Error() string { return e.What + "; " + e.Remedy }

// Find returns the base that the store has. It packs it anew where what it is made
// of has changed on this machine, and downloads nothing.
func (s Store) Find() (b Base, err error) {
	b.store = s
	t, err := findTools(searched())
	if err != nil {
		return b, err
	}
	b.emulator = t.emulator
	err = s.exclusive(func() error {
		var ok bool
		if b.kernel, ok, err = s.kernel(); err != nil {
			return err
		}
		if !ok {
			return &NotMade{What: "there is no kernel for a guest in " + s.dir, Remedy: "run: go run ./ci/guest make"}
		}
		b.archive, err = s.pack(b.kernel, t)
		return err
	})
	return b, err
}
