// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mount

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// TestFill reads what ext4 said of itself on a small volume: empty, full for a writer
// of large pieces, and with a file for each inode. A file system that says nothing of
// inodes (btrfs) is not full for want of them.
//
// row: S0-084
func TestFill(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		is   unix.Statfs_t
		want host.Fill
	}{
		"empty":        {unix.Statfs_t{Bsize: 1024, Frsize: 1024, Blocks: 18873, Bfree: 18859, Bavail: 18450, Files: 5112, Ffree: 5101}, host.Fill{UsedBytes: 14 << 10, Files: 11}},
		"full":         {unix.Statfs_t{Bsize: 1024, Frsize: 1024, Blocks: 18873, Bfree: 410, Bavail: 1, Files: 5112, Ffree: 5101}, host.Fill{UsedBytes: 18873 << 10, Files: 11, Full: true}},
		"scraps":       {unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 18873, Bfree: 420, Bavail: 16, Files: 10, Ffree: 5}, host.Fill{UsedBytes: 18873 << 12, Files: 5, Full: true}},
		"some left":    {unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 18873, Bfree: 420, Bavail: 17, Files: 10, Ffree: 5}, host.Fill{UsedBytes: 18453 << 12, Files: 5}},
		"no inodes":    {unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 18873, Bfree: 18000, Bavail: 18000, Files: 10}, host.Fill{UsedBytes: 873 << 12, Files: 10, Full: true}},
		"none counted": {unix.Statfs_t{Bsize: 4096, Blocks: 18873, Bfree: 18000, Bavail: 18000}, host.Fill{UsedBytes: 873 << 12}},
	} {
		if got := fill(&tt.is); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// A process that has the mounts of its parent hides nothing, and changes nothing.
func TestHiddenNeedsOwnMounts(t *testing.T) {
	t.Parallel()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := (Volumes{}).Mount("/dev/null", dir, ".", true); err == nil || !strings.Contains(err.Error(), "no mounts of its own") {
		t.Errorf("%v", err)
	}
	if err := (Volumes{}).Unmount(dir, "nothing"); err != nil {
		t.Errorf("nothing to unmount: %v", err)
	}
}

// Where nothing is mounted there is nothing to take away, whatever rights there are.
func TestUnmountOfNothing(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "scratch"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, name := range []string{"scratch", "nothing"} {
		if err := (Volumes{}).Unmount(dir, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !elsewhere("/proc") || elsewhere("/proc/self") {
		t.Error("/proc is of the file system of /, or /proc/self is not of that of /proc")
	}
}
