// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// A job of which the kernel killed a process for memory is held if it came to its own
// limit, however its main process ended: what it would give as its result was made
// without what was killed. HTCondor does so too, and sends no output back. If it is
// the victim of a machine that is short of memory it goes back into the queue, and
// may run elsewhere: that is what the documents say. By its default
// (STARTER_ALWAYS_HOLD_ON_OOM) HTCondor holds it all the same, and blames it for a
// limit that it did not come to; only an owner who writes that knob has that here,
// with the true reason.
//
// A job that divides what it has, as a glidein does, and of which a part comes to the
// share that the job gave it, has come to no limit of ours: it goes on, and its record
// tells. HTCondor holds it, for it counts the kills of all groups below the job's.

// machineStarved is what HTCondor's starter says where a job left for the sake of others.
const machineStarved = "Worker node is out of memory"

// outOfMemory says what becomes of a job of which processes were killed for memory; nil
// if there are none, or it does not matter.
func (a *activation) outOfMemory() []duty {
	u := a.record.Usage
	if u.OOMKills == 0 || u.OverMemory == nil || u.OverMemory.Part {
		return nil
	}
	hold := oomHold(u, a.plan.Settings.HoldOnOOM)
	if hold != nil {
		hold = a.holds.From(reason.Code(hold.Code), hold.Subcode, hold.Reason)
	}
	duties := a.life.starved(hold, eviction{
		manner: protocol.MannerVacate, asked: job.AskedByStarter, reason: machineStarved, code: int(reason.StarterError), hard: true,
	})
	if duties != nil && a.log != nil {
		a.logStarved(u, hold)
	}
	return duties
}

// oomHold is why a job that used u is held, nil if it is not. always is the owner's
// wish that it is whoever is to blame.
func oomHold(u host.Usage, always bool) *protocol.Hold {
	over := u.OverMemory
	hold := &protocol.Hold{Code: int(reason.JobOutOfResources), Subcode: reason.OutOfMemory}
	switch limit := over.LimitKiB / 1024; {
	case over.Own:
		used := min(over.PeakKiB/1024, limit)
		if used == 0 { // nobody kept the peak
			used = limit
		}
		// Two blanks, as HTCondor has them.
		hold.Reason = fmt.Sprintf("Job has gone over cgroup memory limit of %d megabytes. Last measured usage: %d megabytes.  Consider resubmitting with a higher request_memory.", limit, used)
	case !always:
		return nil
	default:
		hold.Reason = fmt.Sprintf("Job has encountered an out-of-memory event: the machine was out of memory, the job used %d megabytes.", over.PeakKiB/1024)
	}
	return hold
}

// logStarved writes what HTCondor's starter does.
func (a *activation) logStarved(u host.Usage, hold *protocol.Hold) {
	if hold != nil {
		a.log.Info("Job was held due to OOM event: " + hold.Reason)
		return
	}
	a.log.Info("Evicting job because system is out of memory, even though the job is below requested memory", "used_kib", u.OverMemory.PeakKiB, "limit_kib", u.OverMemory.LimitKiB)
}
