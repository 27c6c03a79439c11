// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

func TestForms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		form Form
		ads  []string
		want string
	}{
		{JSON, nil, "[\n]\n"},
		{JSON, []string{"A = 1"}, "[\n{\"A\": 1}\n]\n"},
		{JSON, []string{"A = 1", "A = 2"}, "[\n{\"A\": 1}\n,\n{\"A\": 2}\n]\n"},
		{Lines, []string{"A = 1", "A = 2"}, "{\"A\": 1}\n{\"A\": 2}\n"},
		{Long, []string{"A = 1", "A = 2"}, "A = 1\n\nA = 2\n\n"},
		{Table, nil, ""},
		{Table, []string{"A = 1"}, "ID   OWNER  SLOT  ENDED  WALL   END   CMD\n0.0               -      0.0 s  lost  \n"},
		// Others chose these texts: none may move the cursor or begin a line of its own.
		{Table, []string{"Owner = \"a\x1b[2J\"\nCmd = \"/x\u009by\tz\"\nCompletionDate = 86400"},
			"ID   OWNER     SLOT  ENDED                WALL   END   CMD\n0.0  a\\x1b[2J        1970-01-02 00:00:00  0.0 s  lost  /x\\u009by\\tz\n"},
	} {
		var b strings.Builder
		l := NewList(&b, tt.form, time.UTC)
		for _, text := range tt.ads {
			if err := l.Show(parse(t, text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil || b.String() != tt.want {
			t.Errorf("form %d of %q: %v, got %q, want %q", tt.form, tt.ads, err, &b, tt.want)
		}
	}
}

func parse(t *testing.T, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// TestNone says where it was looked, also of many places.
func TestNone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		where  []string
		chosen bool
		want   string
	}{
		{nil, false, "no job has been recorded: no history of this user or of this machine's configuration is known; -file or -config names one"},
		{[]string{"/a"}, false, "no job has been recorded; looked in /a"},
		{[]string{"/a", "/b\x1b"}, true, `no recorded job meets the constraint; looked in /a, /b\x1b`},
		{[]string{"1", "2", "3", "4"}, false, "no job has been recorded; looked in 1, 2, 3 and 1 other file"},
		{[]string{"1", "2", "3", "4", "5"}, false, "no job has been recorded; looked in 1, 2, 3 and 2 other files"},
	} {
		if got := None(tt.where, tt.chosen); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestEndAndWall(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A = 1": "lost 0s",
		"ExitBySignal = false\nExitCode = 3\nRemoteWallClockTime = 7":       "status 3 7s",
		"ExitBySignal = true\nExitSignal = 9\nRemoteWallClockTime = 7":      "signal 9 7s",
		"ExitBySignal = false\nHoldReason = \"x\"\nVacateReason = \"y\"":    "held 0s",
		"VacateReason = \"y\"\nRemoteWallClockTime = 7\nJobDuration = 7.25": "evicted 7.25s",
		"VacateReason = \"y\"\nRemoteWallClockTime = 7\nJobDuration = 8.25": "evicted 7s",
		"VacateReason = \"y\"\nRemoteWallClockTime = 0\nJobDuration = -0.5": "evicted 0s",
	} {
		ad := parse(t, text)
		if got := End(ad) + " " + Wall(ad).String(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
