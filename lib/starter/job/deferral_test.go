// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// A job waits for its time, comes late within its window or has missed it. A time
// that means nothing is one that was missed, as in HTCondor's starter.
func TestDeferral(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 250_000_000)
	for _, c := range []struct {
		name, ad string
		wait     time.Duration
		missed   bool
	}{
		{"none", "RequestCpus = 1", 0, false},
		{"later", "DeferralTime = 1000060", 59750 * time.Millisecond, false},
		{"an expression", "DeferralTime = CurrentTime + 30\n", 30*time.Second - 250*time.Millisecond, false},
		{"in this second", "DeferralTime = 1000000", 0, false},
		{"just past", "DeferralTime = 999999", 0, true},
		{"past, in its window", "DeferralTime = 999940\nDeferralWindow = 60", 0, false},
		{"past its window", "DeferralTime = 999939\nDeferralWindow = 60", 0, true},
		{"our clock is ahead", "DeferralTime = 999940\nDeferralOffset = 100", 39750 * time.Millisecond, false},
		{"our clock is behind", "DeferralTime = 1000060\nDeferralOffset = -100", 0, true},
		{"no number", `DeferralTime = "soon"`, 0, true},
		{"undefined", "DeferralTime = Nothing", 0, true},
		{"zero", "DeferralTime = 0", 0, true},
		{"negative", "DeferralTime = -5\nDeferralWindow = 100", 0, true},
	} {
		ad, err := classad.ParseAd(c.ad, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		if wait, missed := Deferral(ad, now); wait.Round(time.Millisecond) != c.wait || missed != c.missed {
			t.Errorf("%s: %v, missed %v; want %v, %v", c.name, wait, missed, c.wait, c.missed)
		}
	}
	far, err := classad.ParseAd("DeferralTime = 9223372036854775807", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	if wait, missed := Deferral(far, now); wait <= 0 || missed {
		t.Errorf("the end of time: %v, %v", wait, missed)
	}
}
