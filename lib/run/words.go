// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/policy"
)

// HTCondor's own tests and people's scripts look for these lines word for word.
// docs/logs.md lists them.

// logMove writes the one line of a transition. Its reason stands before it, in
// a line of its own, as HTCondor has it: a decision of the policy ends with a
// full stop, what was asked for or happened does not.
func (n *node) logMove(e ep.Transitioned) {
	why := "State change: " + e.Decision.Reason
	if e.On == policy.Evaluated {
		why += "."
	}
	n.o.Log.Info(why, "slot", e.Name)
	msg := "Changing activity: " + e.From.Activity.String() + " -> " + e.To.Activity.String()
	switch {
	case e.From.State != e.To.State && e.From.Activity != e.To.Activity:
		msg = "Changing state and activity: " + e.From.String() + " -> " + e.To.String()
	case e.From.State != e.To.State:
		msg = "Changing state: " + e.From.State.String() + " -> " + e.To.State.String()
	}
	n.o.Log.LogAttrs(context.Background(), slog.LevelInfo, msg,
		slog.String("slot", e.Name), slog.Int("transition", e.Number), slog.String("why", e.Decision.Reason))
}

// logWaiting writes why a claim has to make room for another.
func (n *node) logWaiting(e ep.ClaimWaits) {
	by := "user priority"
	if e.Why == policy.WaitsByRank {
		by = "machine rank"
	}
	if e.Fetched {
		by += " of fetched work."
	}
	n.o.Log.Info("State change: preempting claim based on "+by, "slot", e.Name)
}

// logAlive writes that the lease of a claim begins anew, where D_PROTOCOL is
// wanted. Without a pool it says nothing: the access point is this program.
func (n *node) logAlive(e ep.KeptAlive) {
	if n.member.pool == nil {
		return
	}
	by := map[ep.Sign]string{
		ep.SignAnswer: " sent to schedd", ep.SignMessage: ", received from schedd",
		ep.SignStarter: " auto refreshed because starter running",
	}[e.By]
	job := e.Job
	if job == "" {
		job = "-1.-1"
	}
	n.o.Log.Info("Keep alive for ClaimId "+e.ID.String()+" job "+job+by, observe.CategoryKey, "D_PROTOCOL", "slot", e.Name)
}

// logDrain writes that a drain begins.
func (n *node) logDrain(e ep.DrainBegun) {
	n.o.Log.Info("Initiating "+e.How.String()+" draining.", "id", e.ID, "then", e.Then.String(), "reason", e.Reason, "by", e.By)
}

// logLate writes that a job is killed since it has not left in its vacate time.
// The slot has the job behind it, as in all that HTCondor's startd says of a
// starter.
func (n *node) logLate(a *activation) {
	n.o.Log.Info("max vacate time expired.  Escalating to a fast shutdown of the job.", "slot", a.start.SlotName+"["+jobName(a.start.Job)+"]")
}

// jobName is what people call a job: "12.0".
func jobName(job *classad.Ad) string {
	cluster, _ := job.EvalInt("ClusterId", nil)
	proc, _ := job.EvalInt("ProcId", nil)
	return fmt.Sprintf("%d.%d", cluster, proc)
}
