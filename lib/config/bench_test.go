// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
)

// ordinary is a configuration of about a hundred lines as an execution point
// has it.
func ordinary() string {
	var b strings.Builder
	b.WriteString("CONDOR_HOST = cm.example.org\nuse ROLE : Execute\nuse POLICY : Desktop\nuse FEATURE : PartitionableSlot\n" +
		"LOCAL_DIR = /var/lib/condor\nLOG = /var/log/condor\nSPOOL = $(LOCAL_DIR)/spool\nEXECUTE = $(LOCAL_DIR)/execute\n" +
		"if defined GPU_HOST\n  use FEATURE : GPUs\nendif\nSTARTD_ATTRS = $(STARTD_ATTRS) Site\nSite = \"north\"\n")
	for i := range 85 {
		fmt.Fprintf(&b, "SITE_VALUE_%d = $(LOCAL_DIR)/value/%d\n", i, i)
	}
	return b.String()
}

func BenchmarkParse(b *testing.B) {
	text := ordinary()
	o := Options{Subsystem: "STARTER", Facts: goldenFacts, Env: []string{"PATH=/bin", "_CONDOR_SITE=1"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("/etc/condor/condor_config", text, o); err != nil {
			b.Fatal(err)
		}
	}
}

// large is a configuration of two thousand lines, of which a hundred use
// templates.
func large() string {
	uses := []string{
		"use ROLE : Execute", "use POLICY : Desktop", "use POLICY : Always_Run_Jobs", "use FEATURE : PartitionableSlot(1, cpus=50%)", "use FEATURE : GPUs",
		"use POLICY : Hold_If_Memory_Exceeded", "use POLICY : Preempt_If_Cpus_Exceeded", "use SECURITY : Recommended", "use FEATURE : StartdCronPeriodic(probe, 60, /bin/probe)",
		"use POLICY : UWCS_Desktop",
	}
	var b strings.Builder
	for i := range 1900 {
		switch {
		case i%19 == 0:
			fmt.Fprintln(&b, uses[i/19%len(uses)])
			fmt.Fprintf(&b, "SLOT_TYPE_%d = cpus=1, mem=$(BASE_%d)\n", i, i)
		case i%7 == 0:
			fmt.Fprintf(&b, "SITE_LIST = $(SITE_LIST:none) item%d\n", i%50)
		case i%11 == 0:
			fmt.Fprintf(&b, "SITE_EXPR_%d = (TARGET.RequestMemory > 10 * %d) && $(SITE_EXPR_%d:True)\n", i, i, i-11)
		default:
			fmt.Fprintf(&b, "SITE_VALUE_%d = $(LOCAL_DIR)/value/%d\n", i, i)
		}
	}
	return b.String()
}

func BenchmarkLoadLarge(b *testing.B) {
	text := large()
	if n := strings.Count(text, "\n"); n != 2000 || strings.Count(text, "use ") != 100 {
		b.Fatalf("%d lines, %d uses", n, strings.Count(text, "use "))
	}
	o := Options{Subsystem: "STARTD", Facts: goldenFacts}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("/etc/condor/condor_config", text, o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	s := mustParse(b, ordinary())
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = s.String("CONDOR_HOST")
		}
	})
	b.Run("default", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = s.Int("UPDATE_INTERVAL")
		}
	})
	b.Run("expanded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = s.String("START")
		}
	})
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = s.String("NO_SUCH_NAME_AT_ALL")
		}
	})
}

func BenchmarkWarnings(b *testing.B) {
	s := mustParse(b, ordinary())
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Warnings()
	}
}

func mustParse(t testing.TB, text string) *Snapshot {
	t.Helper()
	s, err := Parse("test.conf", text, Options{Subsystem: "STARTD", Facts: goldenFacts, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
