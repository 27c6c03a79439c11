// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/platform/linux/mount"
)

// needDeviceMapper skips a test that makes real volumes where the kernel has none:
// integration/guest runs these tests in a machine that does.
func needDeviceMapper(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	control, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if control != nil {
		control.Close()
	}
	if err != nil {
		t.Skip("the kernel has no device-mapper; integration/guest runs this in a virtual machine")
	}
}

// shell runs one of lvm2's programs as an administrator would.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func onFile(t *testing.T, change func(*Settings)) Settings {
	t.Helper()
	s := Settings{Group: "condor_STARTD", File: filepath.Join(t.TempDir(), "disk.img"), FileMiB: 200, Margin: 0.98, UniqueNames: true, FirstName: 1, Limit: time.Minute, BreakSlots: true}
	change(&s)
	t.Cleanup(func() {
		_ = exec.Command("vgremove", "--yes", "--force", s.Group).Run()
		if f, err := os.Open(s.File); err == nil {
			defer f.Close()
			if device, err := attached(f); err == nil && device != "" {
				_ = exec.Command("pvremove", "--yes", "--force", device).Run()
				if err := detach(device); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return s
}

// TestVolumesOnAFile has a group made on a file, volumes of both kinds made, filled,
// removed and, after a life that left some, cleaned away.
//
// row: S0-086, S0-088, S0-089, S0-092, S4-075, S4-078, S4-079, S4-080
func TestVolumesOnAFile(t *testing.T) {
	needDeviceMapper(t)
	for name, thin := range map[string]bool{"thick": false, "thin": true} {
		t.Run(name, func(t *testing.T) {
			s := onFile(t, func(s *Settings) {
				if thin {
					s.Pool, s.ExtraMiB = s.Group+"_THINPOOL", 16
				}
			})
			ctx := context.Background()
			m, removed, err := Open(ctx, s)
			if err != nil || len(removed) != 0 {
				t.Fatalf("%v, removed %v", err, removed)
			}
			before, err := m.Space(ctx)
			if err != nil || before.FreeBytes < 150<<20 || before.FreeBytes > 210<<20 || before.ExtentKiB != 4096 || before.OthersBytes != 0 {
				t.Fatalf("%+v, %v", before, err)
			}
			volume, err := m.Make(ctx, "slot1_1", 20<<10)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("slot1_1+%d_1", os.Getpid()); volume != want {
				t.Errorf("it is called %s, want %s", volume, want)
			}
			if got := strings.TrimSpace(shell(t, "lvs", "--noheadings", "-o", "lv_tags,lv_size", "--units", "m", "--nosuffix", s.Group+"/"+volume)); strings.Join(strings.Fields(got), " ") != map[bool]string{false: Tag + " 20.00", true: Tag + " 36.00"}[thin] {
				t.Errorf("tag and size: %s", got)
			}
			fillAndEmpty(t, m.Device(volume))
			small, err := m.Make(ctx, "slot1_2", 100)
			if err != nil {
				t.Fatal(err)
			}
			if !thin {
				if got := strings.TrimSpace(shell(t, "lvs", "--noheadings", "-o", "lv_size", "--units", "m", "--nosuffix", s.Group+"/"+small)); got != "4.00" {
					t.Errorf("the smallest volume has %s MiB", got)
				}
			}
			if err := errors.Join(m.Remove(ctx, volume), m.Remove(ctx, volume)); err != nil {
				t.Error(err)
			}
			// The next life finds the device of the file, and removes what is left.
			again, removed, err := Open(ctx, s)
			if err != nil || !slices.Equal(removed, []string{small}) || again.device != m.device {
				t.Fatalf("%v, removed %v, on %v and %v", err, removed, m.device, again.device)
			}
			if after, err := again.Space(ctx); err != nil || after.Bytes != before.Bytes || after.FreeBytes < before.FreeBytes-1<<20 {
				t.Errorf("%+v, before %+v, %v", after, before, err)
			}
		})
	}
}

// fillAndEmpty mounts a volume, fills it and takes it away.
func fillAndEmpty(t *testing.T, device string) {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "scratch")
	parent, err := os.Open(top)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	var v mount.Volumes
	if err := v.Mount(device, parent, "scratch", false); err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) && !(strings.Contains(line, "noatime") && strings.Contains(line, "nodev") && strings.Contains(line, "nosuid") && strings.Contains(line, "nobarrier") && strings.Contains(line, "discard")) {
			t.Errorf("mounted as %s", line)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("a new file system has %v, %v", left, err)
	}
	if f, err := v.Fill(parent, "scratch"); err != nil || f.Full || f.UsedBytes > 2<<20 {
		t.Errorf("empty: %+v, %v", f, err)
	}
	f, err := os.Create(filepath.Join(dir, "all"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyN(f, zeros{}, 1<<30)
	f.Close()
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("filled: %v", err)
	}
	if f, err := v.Fill(parent, "scratch"); err != nil || !f.Full || f.UsedBytes < 14<<20 {
		t.Errorf("full: %+v, %v", f, err)
	}
	if err := errors.Join(v.Unmount(parent, "scratch"), v.Unmount(parent, "scratch")); err != nil {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestGivenGroup uses the group and the pool of an owner, and touches nothing of his.
//
// row: S0-087, S4-076, S4-077
func TestGivenGroup(t *testing.T) {
	needDeviceMapper(t)
	const disk = "/dev/vda"
	if _, err := os.Stat(disk); err != nil || os.Getenv("EXECPOINT_GUEST_INSIDE") == "" {
		t.Skip("needs an empty disk of a virtual machine")
	}
	shell(t, "pvcreate", "--yes", disk)
	shell(t, "vgcreate", "owners", disk)
	shell(t, "lvcreate", "--yes", "-L", "40m", "-n", "precious", "owners")
	shell(t, "lvcreate", "--yes", "--type", "thin-pool", "-L", "100m", "-n", "jobs", "owners")
	shell(t, "lvcreate", "--yes", "-V", "40m", "-T", "owners/jobs", "-n", "his")
	ctx := context.Background()
	for _, pool := range []string{"", "jobs"} {
		s := Settings{Group: "owners", Pool: pool, Margin: 0.98, UniqueNames: true, FirstName: 7, Limit: time.Minute}
		m, removed, err := Open(ctx, s)
		if err != nil || len(removed) != 0 {
			t.Fatalf("%v, removed %v", err, removed)
		}
		is, err := m.Space(ctx)
		if err != nil || is.OthersBytes < 40<<20 {
			t.Errorf("%+v, %v", is, err)
		}
		name, err := m.Make(ctx, "slot1_1", 40<<10)
		if err != nil {
			t.Fatal(err)
		}
		fillAndEmpty(t, m.Device(name))
		for _, his := range []string{"precious", "jobs", "his"} {
			if err := m.Remove(ctx, his); err == nil {
				t.Errorf("%s was removed", his)
			}
		}
		if err := m.Remove(ctx, name); err != nil {
			t.Error(err)
		}
		if got := strings.Join(strings.Fields(shell(t, "lvs", "--noheadings", "-o", "lv_name", "owners")), " "); got != "his jobs precious" {
			t.Errorf("the group has %s", got)
		}
	}
	if _, _, err := Open(ctx, Settings{Group: "nobodys", Limit: time.Minute}); err == nil || !strings.Contains(err.Error(), "LVM_VOLUME_GROUP_NAME") {
		t.Errorf("a group that is not there: %v", err)
	}
	if _, _, err := Open(ctx, Settings{Group: "owners", Pool: "none", Limit: time.Minute}); !errs.Is(err, errs.NotFound) {
		t.Errorf("a pool that is not there: %v", err)
	}
}

// A volume that somebody uses cannot be removed, and its error says so; mounts of it
// that are seen are taken away.
func TestRemoveOfABusyVolume(t *testing.T) {
	needDeviceMapper(t)
	m, _, err := Open(context.Background(), onFile(t, func(*Settings) {}))
	if err != nil {
		t.Fatal(err)
	}
	name, err := m.Make(context.Background(), "slot1", 20<<10)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := unix.Mount(m.Device(name), dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(context.Background(), name); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a file of it is open: %v", err)
	}
	f.Close()
	if err := m.Remove(context.Background(), name); err != nil {
		t.Error(err)
	}
}
