// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"log/slog"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/pool"
)

// What the engine tells stands in the log word for word as scripts look for it.
func TestWords(t *testing.T) {
	t.Parallel()
	job, err := classad.ParseAd("ClusterId = 12\nProcId = 3\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	id := claim.NewID("<192.0.2.1:9618>", 5, 6, "deepsecret")
	moved := func(from, to policy.Pair, on policy.Class, why string) ep.Transitioned {
		return ep.Transitioned{Name: "slot1_1", From: from, To: to, On: on, Number: 18, Decision: policy.Decision{Reason: why}}
	}
	for _, tt := range []struct {
		eff   ep.Effect
		debug string
		want  string
	}{
		{moved(policy.ClaimedRetiring, policy.PreemptingVacating, policy.Evaluated, "claim retirement ended/expired"), "",
			"slot1_1: State change: claim retirement ended/expired.\nslot1_1: Changing state and activity: Claimed/Retiring -> Preempting/Vacating transition=18 why=\"claim retirement ended/expired\"\n"},
		{moved(policy.ClaimedBusy, policy.ClaimedCleaning, policy.JobGone, "job is gone"), "",
			"slot1_1: State change: job is gone\nslot1_1: Changing activity: Busy -> Cleaning transition=18 why=\"job is gone\"\n"},
		{moved(policy.OwnerIdle, policy.UnclaimedIdle, policy.Evaluated, "IS_OWNER is false"), "",
			"slot1_1: State change: IS_OWNER is false.\nslot1_1: Changing state: Owner -> Unclaimed transition=18 why=\"IS_OWNER is false\"\n"},
		{ep.ClaimWaits{Name: "slot1", Why: policy.WaitsByRank}, "", "slot1: State change: preempting claim based on machine rank\n"},
		{ep.ClaimWaits{Name: "slot1", Why: policy.WaitsByPriority}, "", "slot1: State change: preempting claim based on user priority\n"},
		{ep.DrainBegun{ID: "3", How: ep.DrainQuick, Then: ep.ThenExit, Reason: "new disk", By: "root@h"}, "", "Initiating quick draining. id=3 then=exit reason=\"new disk\" by=root@h\n"},
		{ep.DrainFinal{ID: "3"}, "", "Initiating final draining (all original jobs complete). id=3\n"},
		{ep.KeptAlive{Name: "slot1", ID: id, Job: "12.3", By: ep.SignStarter}, "", ""},
		{ep.KeptAlive{Name: "slot1", ID: id, Job: "12.3", By: ep.SignStarter}, "D_PROTOCOL:1", "slot1: Keep alive for ClaimId <192.0.2.1:9618>#5#6#... job 12.3 auto refreshed because starter running\n"},
		{ep.KeptAlive{Name: "slot1", ID: id, By: ep.SignAnswer}, "D_PROTOCOL", "slot1: Keep alive for ClaimId <192.0.2.1:9618>#5#6#... job -1.-1 sent to schedd\n"},
		{ep.KeptAlive{Name: "slot1", ID: id, Job: "12.3", By: ep.SignMessage}, "D_PROTOCOL", "slot1: Keep alive for ClaimId <192.0.2.1:9618>#5#6#... job 12.3, received from schedd\n"},
		{ep.OrderStarter{Activation: "slot1_1#1", Op: ep.HardKill, Late: true}, "", "slot1_1[12.3]: max vacate time expired.  Escalating to a fast shutdown of the job.\n"},
		{ep.OrderStarter{Activation: "slot1_1#1", Op: ep.HardKill}, "", ""},
	} {
		var text bytes.Buffer
		l := newLaboratory(t, "", nil)
		debug, _ := observe.ParseDebug(tt.debug)
		l.o.Log = slog.New(observe.NewDebugHandler(&text, debug, 1))
		l.starter.live["slot1_1#1"] = &activation{start: ep.StartStarter{SlotName: "slot1_1", Job: job}}
		switch eff := tt.eff.(type) {
		case ep.KeptAlive: // which is told in a pool only
			l.logAlive(eff)
			l.member.pool = new(pool.Pool)
			l.logAlive(eff)
			l.member.pool = nil
		default:
			l.perform(l.clock.Now(), eff)
		}
		delete(l.starter.live, "slot1_1#1")
		got := regexp.MustCompile(`(?m)^\d\d/\d\d/\d\d \d\d:\d\d:\d\d `).ReplaceAllString(text.String(), "")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v: %s", tt.eff, diff)
		}
	}
}
