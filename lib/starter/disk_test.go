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
				at := &directory{walk: func() sandbox.Usage {
					time.Sleep(tt.walk)
					walked += tt.walk
					fresh = time.Now()
					return sandbox.Usage{Files: is.Files + 1}
				}}
				for time.Since(began) < 4*time.Hour {
					is = d.look(at)
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

// directory is a scratch directory.
type directory struct {
	walk    func() sandbox.Usage
	counted *sandbox.Usage // nil where the file system does not count
}

func (d *directory) Usage() sandbox.Usage { return d.walk() }
func (d *directory) Counted() (sandbox.Usage, bool) {
	if d.counted == nil {
		return sandbox.Usage{}, false
	}
	return *d.counted, true
}

// Where the file system counts, each figure is fresh, and walks are ten times as rare
// while little changes. What is taken out of the count, or put into it from elsewhere,
// does not stay in the figures.
func TestCountedScratch(t *testing.T) {
	t.Parallel()
	const gib = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		there, counted, walks := sandbox.Usage{KiB: 10 * gib, Files: 100_000}, sandbox.Usage{KiB: 11 * gib, Files: 100_500}, 0
		at := &directory{counted: &counted, walk: func() sandbox.Usage {
			walks++
			time.Sleep(time.Second)
			return there
		}}
		change := func(kib int64, files int) {
			there.KiB, there.Files = there.KiB+kib, there.Files+files
			counted.KiB, counted.Files = counted.KiB+kib, counted.Files+files
		}
		var d diskLooks
		step := func(what string, after time.Duration, want sandbox.Usage, walked int) {
			t.Helper()
			time.Sleep(after)
			walks = 0
			if is := d.look(at); is != want || walks != walked {
				t.Errorf("%s: %+v by %d walks, want %+v by %d", what, is, walks, want, walked)
			}
		}
		step("at first", 0, there, 1)
		change(512*1024, 1000)
		step("some more at once", time.Second, there, 0)
		change(20*gib, 10)
		step("much more at once", time.Second, there, 0)
		step("much more, when it is time", 100*time.Second, there, 1)
		change(100*1024, 0)
		step("little more, when it would be time", 500*time.Second, there, 0)
		change(-30*gib, -100_000)
		step("much less", time.Second, there, 1)
		step("nothing new", 999*time.Second, there, 0)
		step("nothing new for long", 2*time.Second, there, 1)
		// The job's user takes a file out of the count, and writes to it.
		counted.KiB -= counted.KiB / 2
		step("a file hides", 101*time.Second, there, 1)
		there.KiB += 5 * gib
		step("hidden growth", 999*time.Second, sandbox.Usage{KiB: there.KiB - 5*gib, Files: there.Files}, 0)
		step("hidden growth is seen", 2*time.Second, there, 1)
		// Another user has his files counted here.
		counted.KiB += 100 * gib
		step("what others use", 101*time.Second, there, 1)
		counted.KiB -= 110 * gib
		step("never below nothing", time.Second, sandbox.Usage{Files: there.Files}, 0)
		step("it is looked at again", 101*time.Second, there, 1)
		at.counted = nil
		step("the count is not to be had", 100*time.Second+1, there, 1)
	})
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
