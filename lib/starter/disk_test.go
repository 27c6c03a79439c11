// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// However often an owner wants reports and however many files a job has, the looks
// at its scratch directory take less than 1 % of a core, and each figure is the
// newest there is.
func TestWalksTakeLittle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		every, walk time.Duration
		most        time.Duration // the age of a figure
	}{
		{"a report each second, many files", time.Second, 800 * time.Millisecond, 82 * time.Second},
		{"a report each second, some files", time.Second, 30 * time.Millisecond, 4 * time.Second},
		{"usual reports, some files", 5 * time.Minute, 30 * time.Millisecond, 0},
		{"usual reports, many files", 5 * time.Minute, 2 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d diskLooks
				var is sandbox.Usage
				var walked time.Duration
				var fresh time.Time
				began := time.Now()
				walk := func() sandbox.Usage {
					time.Sleep(tt.walk)
					walked += tt.walk
					fresh = time.Now()
					return sandbox.Usage{Files: is.Files + 1}
				}
				for time.Since(began) < 4*time.Hour {
					is = d.look(walk, is)
					if age := time.Since(fresh); age > tt.most {
						t.Fatalf("the figure is %v old", age)
					}
					time.Sleep(tt.every)
				}
				if all := time.Since(began); walked > all/restOfWalk || is.Files < 40 {
					t.Errorf("%d walks took %v of %v", is.Files, walked, all)
				}
			})
		})
	}
}

// A job has outgrown its volume when it has used its share of it, or when nothing more
// can be written. HTCondor's words name the share.
//
// row: S0-084, S2-045
func TestOutgrown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit int64 // KiB
		is    sandbox.Usage
		want  string
	}{
		{"little", 40140, sandbox.Usage{KiB: 1000}, ""},
		{"just below", 40140, sandbox.Usage{KiB: 40139}, ""},
		{"the share", 40140, sandbox.Usage{KiB: 40140}, "39.20 MB"},
		{"a small volume that is full", 40140, sandbox.Usage{KiB: 36000, Full: true}, "39.20 MB"},
		{"a small share", 1, sandbox.Usage{KiB: 1}, "1.00 KB"},
		{"none", 0, sandbox.Usage{}, "0 B"},
		{"a large share", 3 << 30, sandbox.Usage{KiB: 3 << 30}, "3.00 TB"},
		{"a larger one", 3 << 40, sandbox.Usage{KiB: 3 << 40}, "3072.00 TB"},
	} {
		a := &activation{plan: &protocol.Plan{Volume: &host.Volume{LimitKiB: tt.limit}}}
		a.disk, a.holds = tt.is, job.Holds{Bare: true}
		hold := a.outgrown()
		switch {
		case hold == nil && tt.want != "", hold != nil && tt.want == "":
			t.Errorf("%s: %+v", tt.name, hold)
		case hold != nil && (hold.Reason != "Job has exceeded allocated disk ("+tt.want+"). Consider increasing the value of request_disk." || hold.Code != 34 || hold.Subcode != 104):
			t.Errorf("%s: %+v", tt.name, hold)
		}
	}
}

// A job that leaves for its disk while it runs is killed at once, and its shadow hears
// of the hold first.
func TestOutgrownJobLeaves(t *testing.T) {
	t.Parallel()
	l := life{phase: running, remote: true, ran: true}
	got := l.ordered(protocol.HardKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Asked: job.AskedByStarter, Reason: "full", Code: 34, Subcode: 104}})
	if !slices.Equal(got, []duty{dutyHold, dutyKill}) || l.hold == nil || l.hold.Code != 34 || l.hold.Subcode != 104 {
		t.Errorf("%v, %+v", got, l.hold)
	}
}
