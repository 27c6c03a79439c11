// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lvm

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/config"
)

// TestSettings reads the knobs of volumes, the old names too.
//
// row: S0-087, S0-088, S0-089, S2-044, S4-075, S4-076, S4-077, S4-078, S4-079, S4-080, S4-081, S4-082
func TestSettings(t *testing.T) {
	t.Parallel()
	usual := Settings{Group: "vg", ExtraMiB: 2000, Margin: 0.98, Hide: true, BreakSlots: true, UniqueNames: true, FirstName: 1, Limit: 2 * time.Minute}
	for _, tt := range []struct {
		name, text string
		change     func(*Settings)
		warnings   int
	}{
		{"a group", "LVM_VOLUME_GROUP_NAME = vg\n", func(*Settings) {}, 0},
		{"thick by default, a pool is not asked for", "LVM_VOLUME_GROUP_NAME = vg\nLVM_THINPOOL_NAME = pool\n", func(*Settings) {}, 0},
		{"a pool", "LVM_VOLUME_GROUP_NAME = vg\nLVM_THINPOOL_NAME = pool\nLVM_USE_THIN_PROVISIONING = True\n", func(s *Settings) { s.Pool, s.Margin = "pool", 1 }, 0},
		{"old names", "THINPOOL_VOLUME_GROUP_NAME = vg\nTHINPOOL_NAME = pool\nLVM_USE_THIN_PROVISIONING = True\n", func(s *Settings) { s.Pool, s.Margin = "pool", 1 }, 2},
		{"a new name counts before the old one", "LVM_VOLUME_GROUP_NAME = vg\nTHINPOOL_VOLUME_GROUP_NAME = old\n", func(*Settings) {}, 0},
		{"a file", "SPOOL = /sp\n", func(s *Settings) { s.Group, s.File, s.FileMiB = "condor_STARTD", "/sp/startd_disk.img", 10240 }, 0},
		{"a file and a pool", "LVM_BACKING_FILE = /d\nLVM_BACKING_FILE_SIZE_MB = 100\nLVM_USE_THIN_PROVISIONING = True\n", func(s *Settings) {
			s.Group, s.Pool, s.Margin, s.File, s.FileMiB = "condor_STARTD", "condor_STARTD_THINPOOL", 1, "/d", 100
		}, 0},
		{"a group without a pool is left alone", "LVM_VOLUME_GROUP_NAME = vg\nLVM_USE_THIN_PROVISIONING = True\nLVM_BACKING_FILE = /d\n", func(s *Settings) {
			s.Group, s.Pool, s.Margin, s.File, s.FileMiB = "condor_STARTD", "condor_STARTD_THINPOOL", 1, "/d", 10240
		}, 0},
		{"a group of one's own name on the file", "LVM_AUTO_VG_NAME = mine\nLVM_BACKING_FILE = /d\n", func(s *Settings) { s.Group, s.File, s.FileMiB = "mine", "/d", 10240 }, 0},
		{"shown", "LVM_VOLUME_GROUP_NAME = vg\nLVM_HIDE_MOUNT = False\n", func(s *Settings) { s.Hide = false }, 0},
		{"hidden", "LVM_VOLUME_GROUP_NAME = vg\nLVM_HIDE_MOUNT = True\n", func(*Settings) {}, 0},
		{"all else", "LVM_VOLUME_GROUP_NAME = vg\nLVM_THIN_LV_EXTRA_SIZE_MB = 5\nLVM_THICK_LV_MARGIN = 0.5\nLVM_CLEANUP_FAILURE_MAKES_BROKEN_SLOT = False\n" +
			"LVM_USE_UNIQUE_LV_NAMES = False\nLVM_FIRST_LV_ID = 9\nVOLUME_MANAGER_TIMEOUT = 7\n", func(s *Settings) {
			s.ExtraMiB, s.Margin, s.BreakSlots, s.UniqueNames, s.FirstName, s.Limit = 5, 0.5, false, false, 9, 7*time.Second
		}, 0},
	} {
		want := usual
		tt.change(&want)
		got, warnings, err := SettingsFrom(read(t, tt.text))
		if err != nil || !reflect.DeepEqual(got, want) || len(warnings) != tt.warnings {
			t.Errorf("%s: %+v, want %+v; %v, %v", tt.name, got, want, warnings, err)
		}
	}
	for _, text := range []string{
		"LVM_VOLUME_GROUP_NAME = a b\n", "LVM_VOLUME_GROUP_NAME = --force\n", "LVM_VOLUME_GROUP_NAME = a/b\n", "LVM_VOLUME_GROUP_NAME = ..\n",
		"LVM_VOLUME_GROUP_NAME = vg\nLVM_USE_THIN_PROVISIONING = True\nLVM_THINPOOL_NAME = a;b\n", "LVM_BACKING_FILE = disk.img\n", "LVM_BACKING_FILE_SIZE_MB = 0\n",
		"LVM_THIN_LV_EXTRA_SIZE_MB = -1\n", "LVM_THICK_LV_MARGIN = 2\n", "LVM_USE_THIN_PROVISIONING = perhaps\n", "VOLUME_MANAGER_TIMEOUT = 0\n",
	} {
		if s, _, err := SettingsFrom(read(t, text)); err == nil {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}

func read(t *testing.T, text string) *config.Snapshot {
	t.Helper()
	s, err := config.Parse("ep.conf", text, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCommands are those of both kinds of volumes, as HTCondor has them.
func TestCommands(t *testing.T) {
	t.Parallel()
	thick, thin := Settings{Group: "vg", Margin: 0.98, UniqueNames: true, ExtraMiB: 2000}, Settings{Group: "my-vg", Pool: "p", Margin: 1, ExtraMiB: 2000}
	for want, got := range map[string]string{
		"pvcreate --yes /dev/loop0; vgcreate --autobackup n vg /dev/loop0":                                                                           all(thick.makeGroup("/dev/loop0")),
		"pvcreate --yes /dev/loop0; vgcreate --autobackup n my-vg /dev/loop0; lvcreate --yes --autobackup n --type thin-pool -l 100%FREE -n p my-vg": all(thin.makeGroup("/dev/loop0")),
		"vgremove --yes --force vg; pvremove --yes --force /dev/loop0":                                                                               all(thick.removeGroup("/dev/loop0")),
		"lvcreate --yes --autobackup n -n slot1_1+5_1 --addtag htcondor_lv -L 1024k vg":                                                              thick.makeVolume("slot1_1+5_1", 1024).String(),
		"lvcreate --yes --autobackup n -n v --addtag htcondor_lv -V 2049024k -T my-vg/p":                                                             thin.makeVolume("v", 1024).String(),
		"lvremove --yes --autobackup n vg/v":                                                                                                         thick.removeVolume("v").String(),
		"-q -F -O ^has_journal -E lazy_itable_init=1 -m 0 -L HTCondorLV_FS /dev/mapper/vg-v":                                                         format(thick.Device("v")).String(),
		"/dev/mapper/my--vg-a--b+c": thin.Device("a-b+c"),
		"vg":                        thick.Backing(),
		"my-vg/p":                   thin.Backing(),
		"slot1_2+77_5":              thick.VolumeName("slot1_2", 77, 5),
		"slot1_3":                   thin.VolumeName("slot1_3", 77, 5),
		"a_b_c+1_1":                 thick.VolumeName("-a b/c", 1, 1),
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if thick.volumeKiB(0) != 1 || thick.limitKiB(1000) != 980 || thin.limitKiB(1000) != 1000 {
		t.Errorf("%d, %d, %d", thick.volumeKiB(0), thick.limitKiB(1000), thin.limitKiB(1000))
	}
	if name := thick.VolumeName(strings.Repeat("ä", 500), 1<<22, 1<<40); badName(name) != "" {
		t.Errorf("%s: %s", name, badName(name))
	}
}

func all(cs []command) string {
	var texts []string
	for _, c := range cs {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, "; ")
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestReports reads what lvm 2.03.16 wrote of a group with a volume and a thin pool of
// an owner's, in which a thin volume is that of a job, and has filled it.
func TestReports(t *testing.T) {
	t.Parallel()
	volumes, err := ParseVolumes(recorded(t, "lvs.json"))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := ParseGroups(recorded(t, "vgs.json"))
	if err != nil {
		t.Fatal(err)
	}
	devices, err := ParseDevices(recorded(t, "pvs.json"))
	if err != nil || len(devices) != 1 || devices["/dev/vda"] != "owners" {
		t.Errorf("%v, %v", devices, err)
	}
	const mib = 1 << 20
	thin, thick := Settings{Group: "owners", Pool: "jobs"}, Settings{Group: "owners"}
	if got, want := thin.leftovers(volumes), []string{"slot1_1+77_3"}; !slices.Equal(got, want) {
		t.Errorf("left of thin ones: %v", got)
	}
	if got, want := thick.leftovers(volumes), []string{"slot1_2+77_4"}; !slices.Equal(got, want) {
		t.Errorf("left of thick ones: %v", got)
	}
	if pool, ok := thin.pool(volumes); !ok || !pool.Full() {
		t.Errorf("the pool: %+v", pool)
	}
	if is, err := thin.space(groups, volumes); err != nil || is != (Space{Bytes: 16 * mib, FreeBytes: 0, OthersBytes: 40 * mib, ExtentKiB: 4096}) {
		t.Errorf("of the pool: %+v, %v", is, err)
	}
	is, err := thick.space(groups, volumes)
	// The pool is the owner's, and so is his volume; what the pool needs beside is hidden.
	if err != nil || is.Bytes != 508*mib || is.FreeBytes <= 0 || is.OthersBytes != (40+16)*mib || is.ExtentKiB != 4096 {
		t.Errorf("of the group: %+v, %v", is, err)
	}
	if _, err := (&Settings{Group: "others"}).space(groups, volumes); err == nil {
		t.Error("a group that is not there has space")
	}
	if _, err := (&Settings{Group: "owners", Pool: "precious2"}).space(groups, volumes); err == nil {
		t.Error("a pool that is not there has space")
	}
	for used, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 5000: 5000, 9999: 9999, 10000: 10000} {
		if got := (Volume{Bytes: 10000, Used: used}).usedBytes(); got != want {
			t.Errorf("%d of ten thousand is %d", used, got)
		}
	}
}

func TestReportsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", "[]", `{"report":3}`, "  WARNING: something\n{}", `{"report":[{"lv":[{"lv_size":"many","vg_extent_size":"1"}]}]}`,
		`{"report":[{"lv":[{"lv_size":"-1","vg_extent_size":"1"}]}]}`, `{"report":[{"lv":[{"lv_size":"1","vg_extent_size":"1","data_percent":"NaN"}]}]}`} {
		if v, err := ParseVolumes([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, v)
		}
	}
}

func FuzzReports(f *testing.F) {
	for _, name := range []string{"lvs.json", "vgs.json", "pvs.json"} {
		f.Add(recorded(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		volumes, err := ParseVolumes(text)
		groups, gerr := ParseGroups(text)
		_, _ = ParseDevices(text) // anything but a panic
		if err != nil || gerr != nil {
			return
		}
		for _, v := range volumes {
			if used := v.usedBytes(); used < 0 || used > v.Bytes {
				t.Errorf("%+v uses %d", v, used)
			}
			s := Settings{Group: v.Group, Pool: v.Pool}
			if is, err := s.space(groups, volumes); err == nil && (is.FreeBytes < 0 || is.OthersBytes < 0) {
				t.Errorf("%+v", is)
			}
		}
	})
}
