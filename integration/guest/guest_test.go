// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/ci/qemu"
	"github.com/execpoint/execpoint/integration/guest"
)

// withOutcomes makes TestOutcomes run tests that fail, in a process whose output is
// looked at.
const withOutcomes = "EXECPOINT_TEST_OUTCOMES"

// TestOutcomes runs tests inside that end in every way, and looks what is seen of
// them outside.
func TestOutcomes(t *testing.T) {
	if run := os.Getenv(withOutcomes); run != "" {
		guest.Run(t, guest.Machine{Memory: 512, Limit: time.Minute}, "integration/guest/testdata/outcomes", run)
		return
	}
	guest.Need(t)
	for _, tt := range []struct {
		name, run string
		want      []string // patterns, in that order
	}{
		{"ends", "^Test(Passes|Fails|Skips|Data)$", []string{
			`--- FAIL: TestOutcomes `,
			`--- PASS: TestOutcomes/TestPasses `, `said v2`, `--- PASS: TestOutcomes/TestPasses/a_b `, `--- PASS: TestOutcomes/TestPasses/x `, `--- PASS: TestOutcomes/TestPasses/x/y `, `deep`,
			`--- FAIL: TestOutcomes/TestFails `, `--- PASS: TestOutcomes/TestFails/good `, `--- FAIL: TestOutcomes/TestFails/bad `, `failed in the guest`, `printed`, `outcomes_test.go:\d+: wrong`,
			`--- SKIP: TestOutcomes/TestSkips `, `events.go:\d+: needs the moon`,
			`--- PASS: TestOutcomes/TestData `}},
		{"panics", "^Test(Panics|Passes)$", []string{`=== RUN   TestOutcomes/TestPanics`, `it did not end`, `at the disco`, `--- FAIL: TestOutcomes/TestPanics `}},
		{"exits", "^TestExits$", []string{`--- FAIL: TestOutcomes/TestExits `}},
		{"off", "^TestTurnsOff$", []string{`it ended without telling the status of its program; the end of its console:`, `--- FAIL: TestOutcomes/TestTurnsOff `}},
		{"hangs", "^TestHangs$", []string{`panic: test timed out after 30s`, `outcomes_test.go:\d+`}},
		{"none", "^TestNothing$", []string{`no test of integration/guest/testdata/outcomes matches "\^TestNothing\$"`, `--- FAIL: TestOutcomes `}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			results := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOutcomes$", "-test.v")
			cmd.Env = append(os.Environ(), withOutcomes+"="+tt.run, "EXECPOINT_GUEST_RESULTS="+results)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Error("a test that failed inside did not fail outside")
			}
			rest := out
			for _, pattern := range tt.want {
				at := regexp.MustCompile(pattern).FindIndex(rest)
				if at == nil {
					t.Fatalf("no %q where it should be in\n%s", pattern, out)
				}
				if tt.name == "ends" {
					continue // testing prints parents first, and their words later
				}
				rest = rest[at[1]:]
			}
			events, err := os.ReadFile(filepath.Join(results, "guest-TestOutcomes.json"))
			if err != nil || !strings.Contains(string(events), `"Package":"github.com/execpoint/execpoint/integration/guest/testdata/outcomes"`) {
				t.Errorf("the results: %v, %.300s", err, events)
			}
		})
	}
}

// shell runs commands in a machine and returns what they print.
func shell(t *testing.T, m guest.Machine, commands string) string {
	t.Helper()
	var out bytes.Buffer
	r, err := guest.NeedFor(t, m).Run(t.Context(), m, qemu.Command{Shell: commands}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != 0 {
		t.Errorf("status %d\n%s\nthe console:\n%s", r.Status, &out, r.Console)
	}
	return out.String()
}

// TestDisks has a machine with disks do what LVM and quotas of projects are for.
func TestDisks(t *testing.T) {
	t.Parallel()
	out := shell(t, guest.Machine{Disks: []int{256, 320}}, `set -ex
pvcreate -q /dev/vda; vgcreate -q vg /dev/vda; lvcreate -q -L 100M -T vg/pool; lvcreate -q -V 300M -T vg/pool -n thin
mkfs.ext4 -q -O quota,project -E quotatype=prjquota /dev/vg/thin; mkdir /mnt/ext4; mount -o prjquota /dev/vg/thin /mnt/ext4
mkfs.xfs -q /dev/vdb; mkdir /mnt/xfs; mount -o prjquota /dev/vdb /mnt/xfs; mkdir /mnt/xfs/p
xfs_quota -x -c 'project -s -p /mnt/xfs/p 42' -c 'limit -p bhard=4m 42' /mnt/xfs
if dd if=/dev/zero of=/mnt/xfs/p/f bs=1M count=8; then exit 9; fi
echo wrote $(stat -c %s /mnt/xfs/p/f)
umount /mnt/ext4 /mnt/xfs; lvremove -qfy vg/thin vg/pool; lvs --noheadings; echo end`)
	if !strings.Contains(out, "wrote 4194304\n") || !strings.HasSuffix(out, "end\n") {
		t.Error(out)
	}
}

// TestDelegation has a user who has a group of version 2, and nothing above it: as
// the machine gives it, and as systemd does.
func TestDelegation(t *testing.T) {
	t.Parallel()
	for name, systemd := range map[string]bool{"machine": false, "systemd": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := shell(t, guest.Machine{Delegated: true, User: guest.Tester, Systemd: systemd}, `set -e
cat /proc/1/comm; id -un; own=/sys/fs/cgroup$(sed s/0::// /proc/self/cgroup); echo $own
mkdir $own/leaf $own/job; echo 0 >$own/leaf/cgroup.procs; echo '+memory +pids +cpu' >$own/cgroup.subtree_control
echo 20M >$own/job/memory.max; cat $own/job/memory.max
mkdir $own/../other 2>/dev/null || echo refused; (echo 20M >$own/memory.max) 2>/dev/null || echo refused`)
			first := map[bool]string{false: "init", true: "systemd"}[systemd]
			if want := first + "\ntester\n/sys/fs/cgroup/system.slice/execpoint.service\n20971520\nrefused\nrefused\n"; out != want {
				t.Errorf("got  %q\nwant %q", out, want)
			}
		})
	}
}

// TestPrograms has programs of ours and files in a machine.
func TestPrograms(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "text"), []byte("text of the file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := shell(t, guest.Machine{Programs: []string{"condor_ep"}, Files: map[string]string{"/mnt/here": here}, Modules: []string{"nbd"}, CPUs: 2},
		"condor_ep -version; cat /mnt/here/text; ls -d /sys/module/nbd; nproc; echo $EXECPOINT_GUEST_INSIDE")
	if !strings.HasPrefix(out, "$CondorVersion: ") || !strings.HasSuffix(out, "\ntext of the file\n/sys/module/nbd\n2\nv2\n") {
		t.Error(out)
	}
}
