// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package detect finds out what a Linux machine has (Scanners, Volume) and how
// busy it is (Sampler). It owns the choice of what to read; how the texts are
// read is prometheus/procfs or lib/machine/proctext. It must never read
// anything but below the Root it was given, by the calls in System, or at the
// paths of EXECUTE and SLOT<N>_EXECUTE; never write; and never start a program:
// those that have to be run are machine.Prober's.
//
//	sys := detect.Host(linux.DefaultRoot())
//	inv, problems := machine.Scan(ctx, now, detect.Scanners(sys)...)
package detect

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux"
)

// System is everything this package asks of a machine: the directories it
// reads and the few facts that only a system call tells. A test hands in
// another machine by filling all fields.
type System struct {
	Root   linux.Root
	Uname  func(*unix.Utsname) error
	Stat   func(path string, st *unix.Stat_t) error   // used for EXECUTE and SLOT<N>_EXECUTE
	Statfs func(path string, st *unix.Statfs_t) error // used for the same
	// Interfaces lists the network interfaces that are up.
	Interfaces func() ([]machine.Interface, error)
	// CloneUser tries to make a user namespace.
	CloneUser func() error
}

// Host returns the machine this process runs on, seen through root.
func Host(root linux.Root) System {
	return System{Root: root, Uname: unix.Uname, Stat: unix.Stat, Statfs: unix.Statfs, Interfaces: interfaces, CloneUser: cloneUser}
}

// Scanners returns the scanners of the facts that do not need the owner's
// configuration. The volume of EXECUTE is scanned by Volume, once the
// configuration has named it.
func Scanners(sys System) []machine.Scanner {
	return []machine.Scanner{names{sys}, processors{sys}, memory{sys}, namespaces{sys}, virtual{sys}}
}

// The largest texts that are read. The list of processors grows with the
// machine (about 1.5 KiB each); everything else is small.
const (
	maxCPUInfo = 16 << 20
	maxText    = 256 << 10
)

var errTooLong = errors.New("the file is too long")

// readText returns the whole of a text of at most limit bytes.
func readText(limit int64, elem ...string) ([]byte, error) {
	return readFile(limit, filepath.Join(elem...))
}

func readFile(limit int64, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, &os.PathError{Op: "read", Path: path, Err: errTooLong}
	}
	return text, nil
}

// broken says that path could be read but not understood.
func broken(path string, err error) error { return errs.E("detect.read", errs.Broken, path, err) }
