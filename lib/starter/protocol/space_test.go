// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// Notes 49 and 50 of the recorded starter, cases mnt-….
//
// row: S4-070
func TestMountUnderScratch(t *testing.T) {
	t.Parallel()
	job, err := classad.ParseAd("RequestMemory = 128\nSite = \"/data\"", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := classad.ParseAd("UtsnameSysname = \"Linux\"\nRequestMemory = 7", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want, wrong string }{
		{"", "/tmp /var/tmp", ""},
		{"MOUNT_UNDER_SCRATCH =\n", "", ""},
		{"MOUNT_UNDER_SCRATCH = \"\"\n", "", ""},
		{"MOUNT_UNDER_SCRATCH = \"/tmp, /media\"\n", "/tmp /media", ""},
		{"MOUNT_UNDER_SCRATCH = /srv, /media\n", "/srv /media", ""}, // no expression: the list itself
		{"MOUNT_UNDER_SCRATCH = ifThenElse(RequestMemory > 100, \"/tmp,/media\", \"/var/tmp\")\n", "/tmp /media", ""},
		{"MOUNT_UNDER_SCRATCH = ifThenElse(TARGET.UtsnameSysname =?= \"Linux\", \"/tmp,/var/tmp\", \"\")\n", "/tmp /var/tmp", ""},
		{"MOUNT_UNDER_SCRATCH = strcat(MY.Site, \" /x\")\n", "/data /x", ""},
		{"MOUNT_UNDER_SCRATCH = 7 + 1\n", "", "gives 8, not a string"},
		{"MOUNT_UNDER_SCRATCH = tmp\n", "", "gives undefined, not a string"},
		{"ENCRYPT_EXECUTE_DIRECTORY = true\nMOUNT_UNDER_SCRATCH = \"/media\"\n", "/tmp /var/tmp /media", ""},
		{"ENCRYPT_EXECUTE_DIRECTORY = true\nMOUNT_UNDER_SCRATCH =\n", "/tmp /var/tmp", ""},
	} {
		set := spaceOf(t, c.text)
		got, err := set.Dirs(job, machine, time.Time{})
		if !slices.Equal(got, strings.Fields(c.want)) || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
	}
}

// The defaults are HTCondor's.
//
// row: S0-058
func TestSpaceDefaults(t *testing.T) {
	t.Parallel()
	if got, want := spaceOf(t, ""), (SpaceSettings{Under: `"/tmp,/var/tmp"`, PrivateShm: true, PerJob: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	all := "USE_PID_NAMESPACES = true\nNO_JOB_NETWORKING = true\nMOUNT_PRIVATE_DEV_SHM = false\nPER_JOB_NAMESPACES = false\nMOUNT_UNDER_SCRATCH =\n"
	if got, want := spaceOf(t, all), (SpaceSettings{PIDs: true, NoNetwork: true, Asked: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Asked is what the owner writes, be it what the defaults say; these alone are not.
func TestSpaceAsked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false,
		"MOUNT_UNDER_SCRATCH = \"/tmp,/var/tmp\"\nMOUNT_PRIVATE_DEV_SHM = true\nPER_JOB_NAMESPACES = true\n": true, // as the defaults, but written
		"PER_JOB_NAMESPACES = True\n":                                     true,
		"MOUNT_UNDER_SCRATCH = \"/tmp\"\n":                                true,
		"MOUNT_UNDER_SCRATCH =\n":                                         false,
		"MOUNT_PRIVATE_DEV_SHM = True\n":                                  true,
		"MOUNT_PRIVATE_DEV_SHM = False\n":                                 false,
		"USE_PID_NAMESPACES = True\n":                                     true,
		"USE_PID_NAMESPACES = False\n":                                    false,
		"NO_JOB_NETWORKING = True\n":                                      true,
		"PER_JOB_NAMESPACES = False\nNO_JOB_NETWORKING = True\n":          true, // no mount is needed for it
		"PER_JOB_NAMESPACES = False\nUSE_PID_NAMESPACES = True\n":         false,
		"PER_JOB_NAMESPACES = False\nMOUNT_UNDER_SCRATCH = \"/tmp\"\n":    false,
		"ENCRYPT_EXECUTE_DIRECTORY = True\n":                              false,
		"STARTER.USE_PID_NAMESPACES = True\nUSE_PID_NAMESPACES = False\n": true,
	} {
		if got := spaceOf(t, text).Asked; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func spaceOf(t testing.TB, text string) SpaceSettings {
	t.Helper()
	startd, err := config.Parse("text", text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Configuration(startd, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{config.Reader{Snapshot: c}}
	set := r.space()
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return set
}

// What a job's ad makes of the expression is a list or an error.
func FuzzDirs(f *testing.F) {
	for _, seed := range []string{"", `"/tmp,/var/tmp"`, "/srv, /media", "7 + 1", `strcat(A, ",/b")`, "(", "A"} {
		f.Add(seed, "/tmp")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		job := classad.NewAd()
		job.SetString("A", value)
		dirs, err := (&SpaceSettings{Under: text}).Dirs(job, classad.NewAd(), time.Time{})
		if err != nil && dirs != nil {
			t.Errorf("%q and %v", dirs, err)
		}
		for _, d := range dirs {
			if d == "" || strings.ContainsAny(d, ", \t\r\n") {
				t.Errorf("%q", d)
			}
		}
	})
}
