// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
)

func FuzzDrainFrom(f *testing.F) {
	for _, text := range []string{"HowFast = 10\nResumeOnCompletion = 1\nDeadline = 1795188544\nDrainReason = \"x\"\nCheckExpr = true\nStartExpr = false",
		"HowFast = -1", "Deadline = 9223372036854775807", "HowFast = \"x\"\nResumeOnCompletion = 5", "DrainReason = DrainReason", "Command = \"CA_UPDATE_MACHINE_AD\""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			return
		}
		ev, err := drainFrom(ad, "somebody")
		if err == nil && (ev.Then > ep.ThenReconfigure || ev.How > ep.DrainFast) {
			t.Errorf("%+v", ev)
		}
	})
}
