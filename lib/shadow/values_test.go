// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/shadow"
)

func TestWaitStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ code, signal, wait int }{
		{0, 0, 0}, {1, 0, 256}, {255, 0, 65280}, {0, 9, 9}, {0, 15, 15}, {0, 64, 64},
	} {
		if got := shadow.WaitStatus(tt.code, tt.signal); got != tt.wait {
			t.Errorf("WaitStatus(%d, %d) = %d, want %d", tt.code, tt.signal, got, tt.wait)
		}
	}
}

func TestExitReasons(t *testing.T) {
	t.Parallel()
	for r, want := range map[shadow.ExitReason]string{
		100: "JOB_EXITED", 102: "JOB_KILLED", 103: "JOB_COREDUMPED", 107: "JOB_SHOULD_REQUEUE", 108: "JOB_NOT_STARTED",
		112: "JOB_SHOULD_HOLD", 114: "JOB_MISSED_DEFERRAL_TIME", 115: "JOB_EXITED_AND_CLAIM_CLOSING", 116: "JOB_RECONNECT_FAILED", 4: "unknown reason",
	} {
		if r.String() != want {
			t.Errorf("%d is %s, want %s", int(r), r, want)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		got  *classad.Ad
		want string
	}{
		{"hold", shadow.HoldEvent("no\nroom\r\n", 34, 104), `EventTypeNumber = 21
MyType = "RemoteErrorEvent"
Daemon = "starter"
ErrorMsg = "no room"
HoldReasonCode = 34
HoldReasonSubCode = 104
`},
		{"subcode 0 goes with a code", shadow.HoldEvent("x", 6, 0), `EventTypeNumber = 21
MyType = "RemoteErrorEvent"
Daemon = "starter"
ErrorMsg = "x"
HoldReasonCode = 6
HoldReasonSubCode = 0
`},
		{"no code", shadow.HoldEvent("", 0, 7), `EventTypeNumber = 21
MyType = "RemoteErrorEvent"
Daemon = "starter"
`},
	} {
		if want := ad(t, tt.want); !tt.got.Equal(want) {
			t.Errorf("%s: got\n%swant\n%s", tt.name, tt.got.Text(classad.Old), want.Text(classad.Old))
		}
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Unix(1795188544, 0))
	l := shadow.Lease{Length: 40 * time.Minute, Contact: c.Now()}
	for _, tt := range []struct{ pass, left time.Duration }{
		{0, 40 * time.Minute}, {10 * time.Minute, 30 * time.Minute}, {30*time.Minute - 1, 1}, {1, 0}, {time.Hour, 0},
	} {
		c.JumpWall(-time.Hour) // the wall says nothing
		if left := l.Left(c.Advance(tt.pass)); left != tt.left {
			t.Errorf("left %s, want %s", left, tt.left)
		}
	}
	for text, want := range map[string]time.Duration{
		"JobLeaseDuration = 2400\n": 40 * time.Minute, "JobLeaseDuration = 1200 * 2\n": 40 * time.Minute, "A = 1\n": 0,
		"JobLeaseDuration = -5\n": 0, "JobLeaseDuration = \"x\"\n": 0,
	} {
		if got := shadow.LeaseLength(ad(t, text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := shadow.LeaseLength(ad(t, "JobLeaseDuration = 9223372036854775807\n")); got <= 0 {
		t.Errorf("a lease without end is %s", got)
	}
}

func TestStatText(t *testing.T) {
	t.Parallel()
	s, err := shadow.ParseStat(statLine + "\n")
	if err != nil || s.String() != statLine {
		t.Errorf("%s, %v", s, err)
	}
	if s, err := shadow.ParseStatfs("18446744073709551615 1 2 3 4 5 6"); err != nil || s.Type != -1 || s.FilesFree != 6 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "1 2", statLine + " 4", "a" + statLine} {
		if s, err := shadow.ParseStat(bad); err == nil {
			t.Errorf("%q reads as %s", bad, s)
		}
	}
}
