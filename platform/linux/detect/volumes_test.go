// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux"
)

// disks is a machine with a file system for each first directory: /a has
// device 1 and 100 KiB, /b device 2 and 200 KiB and so on. /hung never answers.
func disks(release chan struct{}) System {
	number := func(path string) (uint64, error) {
		switch {
		case strings.HasPrefix(path, "/hung"):
			<-release
			return 0, unix.EIO
		case path[1] >= 'a' && path[1] <= 'e':
			return uint64(path[1]-'a') + 1, nil
		}
		return 0, unix.ENOENT
	}
	return System{
		Statfs: func(path string, fs *unix.Statfs_t) error {
			n, err := number(path)
			fs.Bsize, fs.Blocks, fs.Bavail = 1024, 1000*n, 100*n
			return err
		},
		Stat: func(path string, st *unix.Stat_t) error {
			n, err := number(path)
			st.Dev = n
			return err
		},
	}
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sys := disks(release)
		start := time.Now()
		inv, problems := machine.Scan(t.Context(), start, Volume(sys, "/a", []machine.SlotExecute{
			{Slot: 1, Path: "/a/one"}, {Slot: 2, Path: "/b/two"}, {Slot: 3, Path: "/c"}, {Slot: 4, Path: "/b/four"}, {Slot: 5, Path: "/hung/x"},
			{Slot: 6, Path: "/hung/y"}, {Slot: 7, Path: "/nowhere"}, {Slot: 8, Path: "/b/two"}, {Slot: 9, Path: "/nowhere"},
		}...))
		if took := time.Since(start); took != hangLimit {
			t.Errorf("two dead file systems held the scan up for %v, want %v", took, hangLimit)
		}
		want := []machine.Volume{
			{ID: "2", Paths: []string{"/b/two", "/b/four"}, TotalKiB: 2000, AvailableKiB: 200, FreeKiB: 200, Slots: []int{2, 4, 8}},
			{ID: "3", Paths: []string{"/c"}, TotalKiB: 3000, AvailableKiB: 300, FreeKiB: 300, Slots: []int{3}},
			{ID: "/hung/x", Paths: []string{"/hung/x"}, Slots: []int{5}},
			{ID: "/hung/y", Paths: []string{"/hung/y"}, Slots: []int{6}},
			{ID: "/nowhere", Paths: []string{"/nowhere"}, Slots: []int{7, 9}},
		}
		if diff := cmp.Diff(want, inv.Volumes); diff != "" {
			t.Error(diff)
		}
		err := errors.Join(problems...)
		if !errors.Is(err, ErrHung) || !errors.Is(err, unix.ENOENT) || strings.Count(err.Error(), "\n") != 2 {
			t.Errorf("problems %v", err)
		}
		close(release)
	})
}

// Real file systems: what lies with EXECUTE has no volume of its own.
func TestRealVolumes(t *testing.T) {
	t.Parallel()
	sys := Host(linux.DefaultRoot())
	dir := t.TempDir()
	inv, problems := machine.Scan(t.Context(), time.Now(), Volume(sys, dir, machine.SlotExecute{Slot: 1, Path: dir}, machine.SlotExecute{Slot: 2, Path: "/proc"}))
	if problems != nil || len(inv.Volumes) != 1 || inv.Volumes[0].ID == inv.Execute.ID || !cmp.Equal(inv.Volumes[0].Slots, []int{2}) {
		t.Errorf("%+v beside %+v, %v", inv.Volumes, inv.Execute, problems)
	}
}
