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
		{Table, nil, "ID  OWNER  SLOT  ENDED  WALL  END  CMD\n"},
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
