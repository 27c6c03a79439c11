// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package linux holds what every Linux edge shares: the directories in which a
// Linux kernel shows itself, as values, and the clock that goes on while the
// machine sleeps. It must never hold a path of its own: whoever reads /proc,
// /sys or /dev is given a Root, so that a test can hand in another machine.
package linux

import "path/filepath"

// Root is where one machine shows itself. Every read of a Linux edge goes
// below one of these directories. A Root is a plain value; an empty field
// makes every read below it fail.
type Root struct {
	Proc   string // procfs
	Sys    string // sysfs
	Cgroup string // the mount point of version 2, or the directory of the version 1 mounts
	Dev    string // device nodes
	Run    string // utmp and other state since boot
	Etc    string // names of the distribution and of hosts
}

// DefaultRoot returns the directories of the machine this process runs on.
func DefaultRoot() Root {
	return Root{Proc: "/proc", Sys: "/sys", Cgroup: "/sys/fs/cgroup", Dev: "/dev", Run: "/run", Etc: "/etc"}
}

// RootAt returns the directories of a machine whose tree is kept below dir,
// as in a fixture or a mounted image.
func RootAt(dir string) Root {
	return Root{
		Proc:   filepath.Join(dir, "proc"),
		Sys:    filepath.Join(dir, "sys"),
		Cgroup: filepath.Join(dir, "sys", "fs", "cgroup"),
		Dev:    filepath.Join(dir, "dev"),
		Run:    filepath.Join(dir, "run"),
		Etc:    filepath.Join(dir, "etc"),
	}
}
