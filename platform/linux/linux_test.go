// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The boot clock must agree with the kernel's own account of its uptime, which
// is CLOCK_BOOTTIME as well, and must not stand still or go back.
func TestClockIsBootTime(t *testing.T) {
	t.Parallel()
	c := Clock()
	before := c.Now()
	text, err := os.ReadFile(filepath.Join(DefaultRoot().Proc, "uptime"))
	if err != nil {
		t.Skip("this machine shows no uptime: ", err)
	}
	after := c.Now()
	seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	up := time.Duration(seconds * float64(time.Second))
	const tick = 20 * time.Millisecond // the file has two decimals
	if up < before.Boot-tick || up > after.Boot+tick {
		t.Errorf("uptime %v lies outside [%v, %v]", up, before.Boot, after.Boot)
	}
	if after.Sub(before) <= 0 {
		t.Errorf("a system call took %v", after.Sub(before))
	}
	if time.Since(before.Wall) < 0 || time.Since(before.Wall) > time.Minute {
		t.Errorf("wall time %v", before.Wall)
	}
}

func TestRootAt(t *testing.T) {
	t.Parallel()
	if got, want := RootAt("/"), DefaultRoot(); got != want {
		t.Errorf("RootAt(/) = %+v, DefaultRoot %+v", got, want)
	}
	if got := RootAt("/m").Cgroup; got != "/m/sys/fs/cgroup" {
		t.Errorf("Cgroup = %s", got)
	}
}

func BenchmarkClock(b *testing.B) {
	c := Clock()
	b.ReportAllocs()
	for b.Loop() {
		if c.Now().Boot == 0 {
			b.Fatal("no boot time")
		}
	}
}
