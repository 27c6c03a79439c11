// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest_test

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/guest"
)

// TestControlGroups runs what is about control groups with every layout of them:
// a build machine has one, and seldom one with all controllers.
func TestControlGroups(t *testing.T) {
	for _, of := range []struct {
		name, pkg string
		run       map[string]string // what runs in the machine of that name
		args      []string
	}{
		{name: "cgroup", pkg: "platform/linux/cgroup", run: map[string]string{"v2": "^Test[^/]*$/^version=2$", "v1": "^Test[^/]*$/^version=1$", "hybrid": "^Test(LifeOfAGroup|Subgroups)$"}},
		{name: "proc", pkg: "platform/linux/proc", run: map[string]string{"v2": "^Test[^/]*$/^groups=2$", "v1": "^Test[^/]*$/^groups=1$"},
			args: []string{"-test.skip=^TestUsageOfTheTree$"}}, // counts for most of a minute there
		{name: "starter", pkg: "bin/condor_starter", run: map[string]string{"v2": "ControlGroup", "v1": "ControlGroup"}},
		{name: "ep", pkg: "bin/condor_ep", run: map[string]string{"v2": "^(TestGroupOfAJob|TestLimitThatFails)$"}},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			tests := guest.Build(t, of.pkg)
			for _, m := range []guest.Machine{{Cgroups: guest.V2}, {Cgroups: guest.V1}, {Cgroups: guest.Hybrid}} {
				if run, ok := of.run[m.Cgroups.String()]; ok {
					t.Run(m.Cgroups.String(), func(t *testing.T) { tests.Run(t, m, run, of.args...) })
				}
			}
		})
	}
}

// TestLogicalVolumes runs what is about volumes of jobs, in a machine with
// device-mapper and an empty disk.
func TestLogicalVolumes(t *testing.T) {
	const slow = 10 * time.Minute // lvm's programs are, where nothing helps the emulator
	for pkg, m := range map[string]guest.Machine{
		"platform/linux/lvm": {Disks: []int{512}, Limit: slow},
		"integration/faults": {Memory: 2048, Programs: []string{"condor_startd", "condor_starter"}, Limit: slow},
	} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			guest.Run(t, m, pkg, "Volume|GivenGroup|FullDisk")
		})
	}
}

// TestKilled has starters and startd killed in every stage of jobs that have volumes and
// groups of version 2.
func TestKilled(t *testing.T) {
	t.Parallel()
	guest.Run(t, guest.Machine{Memory: 2048, Programs: []string{"condor_startd", "condor_starter"}, Limit: 10 * time.Minute}, "integration/faults", "KilledInEveryStage")
}

// TestQuotas runs what is about projects of file systems, in a machine with an empty
// disk.
func TestQuotas(t *testing.T) {
	for pkg, m := range map[string]guest.Machine{
		"platform/linux/quota": {Disks: []int{400}},
		"integration/faults":   {Disks: []int{400}, Memory: 2048, Programs: []string{"condor_startd", "condor_starter"}, Limit: 10 * time.Minute},
	} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			guest.Run(t, m, pkg, "Projects|QuotaOfAJob")
		})
	}
}

// TestRootless has an ordinary user run what an Execution Point without root gives its
// jobs, with a group of version 2 of the user's own.
func TestRootless(t *testing.T) {
	for pkg, run := range map[string]string{
		"platform/linux/space": "TryUsers", "platform/linux/proc": "^TestSpace(|Beside|Killed)$",
		"bin/condor_starter": "^TestSpace", "bin/condor_ep": "^TestRootless",
	} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			guest.Run(t, guest.Machine{Cgroups: guest.V2, User: guest.Tester, Delegated: true}, pkg, run)
		})
	}
}

// TestHostile runs programs that misbehave where their control groups are those of
// version 2, which lets them do more with their own. The disk takes what they write: the
// guest's own files are all in memory.
func TestHostile(t *testing.T) {
	t.Parallel()
	guest.Run(t, guest.Machine{Memory: 2048, Disks: []int{2048}, Programs: []string{"condor_ep"}}, "integration/hostile", "^Test(OfRoot|InSpaces)$")
}
