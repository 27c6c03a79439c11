// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// named returns one machine of testdata, and the directory of its files.
func named(t testing.TB, name string) (System, string) {
	t.Helper()
	dir := t.TempDir()
	sys, _ := readFixture(t, filepath.Join("testdata", "machines", name+".txt")).system(t, dir)
	return sys, dir
}

// published returns the ads that a configuration makes of a machine.
func published(t *testing.T, sys System, config string) []*classad.Ad {
	t.Helper()
	ads, problems := advertise(t, sys, config, goldenSample)
	if problems != nil || len(ads) == 0 {
		t.Fatalf("%q: %d ads, %v", config, len(ads), problems)
	}
	return ads
}

// shows compares the text of attributes.
func shows(t *testing.T, a *classad.Ad, want map[string]string) {
	t.Helper()
	for name, text := range want {
		e, ok := a.Lookup(name)
		if !ok || e.Text(classad.Old) != text {
			t.Errorf("%s = %v, want %s", name, e, text)
		}
	}
}

// takes reports whether a slot and a job with these requirements match.
func takes(t *testing.T, a *classad.Ad, requirements string, now time.Time) bool {
	t.Helper()
	job := classad.NewAd()
	job.SetInt("RequestCpus", 1)
	job.SetInt("RequestMemory", 1)
	job.SetInt("RequestDisk", 1)
	if err := job.SetText("Requirements", requirements); err != nil {
		t.Fatal(err)
	}
	return classad.Match(job, a, &classad.Env{Now: now}).OK()
}

// row: S1-002
func TestArchAndOpSys(t *testing.T) {
	t.Parallel()
	for name, arch := range map[string]string{"altra-ubuntu-arm64": "aarch64", "firecracker-debian12": "X86_64", "power9-smt4": "ppc64le"} {
		sys, _ := named(t, name)
		a := published(t, sys, "")[0]
		shows(t, a, map[string]string{"Arch": `"` + arch + `"`, "OpSys": `"LINUX"`})
		// The kernel's answer later is not asked for.
		sys.Uname = nil
		if !takes(t, a, fmt.Sprintf(`TARGET.Arch == %q && OpSys == "LINUX"`, arch), scanned.Wall) {
			t.Errorf("%s is refused by a job for it", name)
		}
		if takes(t, a, `TARGET.Arch == "INTEL"`, scanned.Wall) || takes(t, a, `TARGET.OpSys == "WINDOWS"`, scanned.Wall) {
			t.Errorf("%s is taken by a job for another machine", name)
		}
	}
}

// A CentOS 8 machine, as far as its ad and the Requirements of jobs go.
func TestCentOS8(t *testing.T) {
	t.Parallel()
	sys, dir := named(t, "rhel9-cgroup2-limits")
	write(t, dir+"/etc/redhat-release", "CentOS Linux release 8.4.2105\n")
	write(t, dir+"/etc/system-release", "CentOS Linux release 8.4.2105\n")
	write(t, dir+"/etc/os-release", "NAME=\"CentOS Linux\"\nVERSION=\"8\"\nID=\"centos\"\nVERSION_ID=\"8\"\nPRETTY_NAME=\"CentOS Linux 8\"\n")
	a := published(t, sys, "")[0]
	shows(t, a, map[string]string{"OpSys": `"LINUX"`, "OpSysAndVer": `"CentOS8"`, "OpSysMajorVer": "8"})
	if !takes(t, a, `TARGET.OpSysAndVer == "CentOS8"`, scanned.Wall) || takes(t, a, `TARGET.OpSysAndVer == "CentOS7"`, scanned.Wall) {
		t.Error("a job does not find it")
	}
}

// row: S0-209, S1-004
func TestClock(t *testing.T) {
	t.Parallel()
	sys, _ := named(t, "altra-ubuntu-arm64")
	const config = `
WorkHours = ( (ClockMin >= 480 && ClockMin < 1020) && (ClockDay > 0 && ClockDay < 6) )
AfterHours = ( (ClockMin < 480 || ClockMin >= 1020) || (ClockDay == 0 || ClockDay == 6) )
START = $(AfterHours)
`
	for _, tt := range []struct {
		at       time.Time
		min, day string
		starts   bool
	}{
		{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), "480", "5", false},
		{time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC), "1020", "5", true},
		{time.Date(2026, 11, 22, 0, 0, 59, 0, time.UTC), "0", "0", true},
		{time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC), "1439", "6", true},
		{time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC), "600", "1", false},
		{time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC), "1080", "1", true},
	} {
		ads, _, problems := advertiseAt(t, sys, config, goldenSample, clock.Instant{Wall: tt.at, Boot: time.Hour})
		if len(ads) != 1 {
			t.Fatal(problems)
		}
		shows(t, ads[0], map[string]string{"ClockMin": tt.min, "ClockDay": tt.day})
		if got := takes(t, ads[0], "true", tt.at); got != tt.starts {
			t.Errorf("%v: a job can start: %v", tt.at, got)
		}
	}
}

// row: S1-009
func TestDiskAttribute(t *testing.T) {
	t.Parallel()
	sys, _ := named(t, "firecracker-debian12") // 83235480 KiB are free
	shows(t, published(t, sys, "")[0], map[string]string{"Disk": "83235480", "DetectedDisk": "264212084"})
	shows(t, published(t, sys, "RESERVED_DISK = 1000")[0], map[string]string{"Disk": "82211480", "DetectedDisk": "264212084"})
	// EXECUTE is the path that is measured.
	asked := ""
	measure := sys.Statfs
	sys.Statfs = func(path string, st *unix.Statfs_t) error { asked = path; return measure(path, st) }
	published(t, sys, "EXECUTE = /scratch/condor")
	if asked != "/scratch/condor" {
		t.Errorf("measured %q", asked)
	}
}

// row: S1-010
func TestEnteredCurrentActivity(t *testing.T) {
	t.Parallel()
	sys, _ := named(t, "power9-smt4")
	shows(t, published(t, sys, "")[0], map[string]string{"EnteredCurrentActivity": "1795180455", "EnteredCurrentState": "1795180455"})
}

// row: S1-011
func TestDomains(t *testing.T) {
	t.Parallel()
	sys, _ := named(t, "epyc-numa-128")
	shows(t, published(t, sys, "UID_DOMAIN = people.example.org\nFILESYSTEM_DOMAIN = nfs.example.org")[0],
		map[string]string{"UidDomain": `"people.example.org"`, "FileSystemDomain": `"nfs.example.org"`})
	shows(t, published(t, sys, "")[0], map[string]string{"UidDomain": `"big1.hpc.example.org"`, "FileSystemDomain": `"big1.hpc.example.org"`})
}

// row: S1-014
func TestMachineAndName(t *testing.T) {
	t.Parallel()
	sys, _ := named(t, "altra-ubuntu-arm64") // which calls itself altra; /etc/hosts knows more
	for i, a := range published(t, sys, "NUM_SLOTS_TYPE_1 = 4\nSLOT_TYPE_1 = cpus=1") {
		shows(t, a, map[string]string{"Machine": `"altra.lab.example.org"`, "Name": fmt.Sprintf(`"slot%d@altra.lab.example.org"`, i+1)})
	}
}

// row: S1-015, S4-060, S4-061
func TestMemoryAttributes(t *testing.T) {
	t.Parallel()
	sys, _ := named(t, "altra-ubuntu-arm64") // MemTotal 16384000 kB
	for config, want := range map[string]string{
		"":                        "16000",
		"MEMORY = 1000":           "1000",
		"RESERVED_MEMORY = 1024":  "14976",
		"MEMORY = 2 * 16000":      "32000",
		"MEMORY = 1000\nX = 5000": "1000",
	} {
		shows(t, published(t, sys, config+"\nSTARTD_ATTRS = Real\nReal = $(DETECTED_MEMORY)")[0],
			map[string]string{"Memory": want, "TotalMemory": want, "DetectedMemory": "16000", "Real": "16000"})
	}
}

// row: S1-021
func TestVirtualMemory(t *testing.T) {
	t.Parallel()
	sys, dir := named(t, "epyc-numa-128")
	// HTCondor counts the memory that could be swapped out with it.
	shows(t, published(t, sys, "")[0], map[string]string{"VirtualMemory": "1593283836", "TotalVirtualMemory": "1593283836"})
	write(t, dir+"/proc/meminfo", "MemTotal: 1000000 kB\nSwapTotal: 500000 kB\nSwapFree: 400000 kB\n")
	shows(t, published(t, sys, "")[0], map[string]string{"VirtualMemory": "1400000"})
}

// row: S2-029
func TestTotalLoadAvg(t *testing.T) {
	t.Parallel()
	sys, dir := named(t, "altra-ubuntu-arm64")
	write(t, dir+"/proc/loadavg", "3.00 2.00 1.00 3/93 14908\n")
	s := NewSampler(sys, clock.NewFake(scanned.Wall), nil, execute)
	defer s.Close()
	sample, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ads, problems := advertise(t, sys, "NUM_SLOTS_TYPE_1 = 4\nSLOT_TYPE_1 = cpus=1", sample)
	if len(ads) != 4 {
		t.Fatal(len(ads), problems)
	}
	for _, a := range ads {
		shows(t, a, map[string]string{"TotalLoadAvg": "3.0", "Cpus": "1"})
	}
}

// Slots with directories of their own have the disk that is there, and those
// that share a file system share its disk.
func TestSlotExecuteAds(t *testing.T) {
	t.Parallel()
	sys, _ := named(t, "altra-ubuntu-arm64")
	apart := disks(nil)
	sys.Stat = apart.Stat
	sys.Statfs = func(path string, st *unix.Statfs_t) error {
		err := apart.Statfs(path, st)
		st.Bsize = 1 << 20 // /a has 100 MiB, /b 200 MiB, /c 300 MiB
		return err
	}
	ads := published(t, sys, "EXECUTE = /a\nSLOT2_EXECUTE = /b\nSLOT3_EXECUTE = /c\nNUM_SLOTS_TYPE_1 = 4\nSLOT_TYPE_1 = cpus=1")
	if len(ads) != 4 {
		t.Fatal(len(ads))
	}
	for i, want := range []map[string]string{
		{"Disk": "51200", "TotalDisk": "102400"}, {"Disk": "204800", "TotalDisk": "204800"},
		{"Disk": "307200", "TotalDisk": "307200"}, {"Disk": "51200", "TotalDisk": "102400"},
	} {
		shows(t, ads[i], want)
	}
}
