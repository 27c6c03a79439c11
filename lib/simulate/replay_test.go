// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep/eptest"
	"github.com/execpoint/execpoint/lib/machine"
)

func parseText(inv *machine.Inventory, text string) (*config.Snapshot, error) {
	return config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(inv)})
}

// diverging are the runs that do not come out as recorded, and why.
var diverging = map[string]string{
	"policy-claimed-02": "IS_OWNER is undefined at first, which ends the reference daemon; here it keeps the slot for its owner",
	"policy-owner2-07":  "the same",
	"policy-preempt-07": "WANT_VACATE is undefined, which ends the reference daemon; here the job may leave gently",
	"policy-lease3-02":  "the reference daemon waits for its own unanswered calls before the lease counts",
	"policy-killing-04": "the daemon itself is killed, and started again by its master",
	"policy-jobhook-02": "the exit hook held the recorded starter for two more seconds in this run alone",
	"policy-drain2-11":  "the documents promise that all slots end together, so the shorter retirement is stretched; the reference daemon does not do it",
	"policy-drain3-01":  "a job that was let in meanwhile may stay until the drain needs its slot, as the documents have it; the reference daemon evicts it after a tick",
}

// TestReplay plays the recorded runs in virtual time: the same configuration,
// jobs that behave the same, the same commands at the same moments.
func TestReplay(t *testing.T) {
	t.Parallel()
	eptest.Replay(t, eptest.Runs(t), diverging, func(_ *testing.T, run *eptest.Run) ([]eptest.Move, error) {
		var r Record
		if err := json.Unmarshal(run.JSON, &r); err != nil {
			return nil, err
		}
		moves, err := Replay(&r, parseText)
		if err != nil {
			return nil, err
		}
		var got []eptest.Move
		for _, m := range moves {
			got = append(got, eptest.Move(m))
		}
		return got, nil
	})
}
