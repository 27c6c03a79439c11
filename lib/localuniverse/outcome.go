// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localuniverse

import (
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// The exit statuses by which a schedd knows what becomes of the job. Any other one is
// that of a starter that failed: the job goes back to idle.
const (
	Failed        = 1   // nothing was begun
	Done          = 100 // JOB_EXITED: the job is complete
	Requeue       = 107 // JOB_SHOULD_REQUEUE: it runs again
	ShouldHold    = 112 // JOB_SHOULD_HOLD, for the HoldReason that the starter has written
	ShouldRemove  = 113 // JOB_SHOULD_REMOVE: it was told to go, and is held or removed as the queue says
	MissedItsTime = 114 // JOB_MISSED_DEFERRAL_TIME: it is held, with the schedd's own words
)

// Outcome is what becomes of a job.
type Outcome struct {
	Status int
	Event  eventlog.Event
	Attrs  *classad.Ad // for the queue, before the exit
}

// Ended says what becomes of a job that ended as rec says, where told is true if the
// schedd told it to go because it is held or removed. ad is the job's, with what is in
// the queue of it.
//
// What follows the end of the job's program is the job's own policy, OnExitHold and
// OnExitRemove, with that of every moment before. While it runs the schedd asks
// PeriodicHold and its like of these jobs itself, and the durations.
func Ended(ad *classad.Ad, system *jobpolicy.System, rec *protocol.ExitRecord, told bool, now time.Time) Outcome {
	ad = ad.Clone()
	attrs := measured(rec)
	usage := eventlog.Usage{User: rec.Usage.UserCPU, System: rec.Usage.SysCPU}
	left := eventlog.Evicted{Local: usage}
	switch {
	case rec.Held != nil && rec.Held.Code == int(reason.MissedDeferredTime):
		return Outcome{MissedItsTime, left, attrs}
	case rec.Held != nil:
		hold(attrs, rec.Held.Reason, rec.Held.Code, rec.Held.Subcode)
		return Outcome{ShouldHold, left, attrs}
	case told:
		return Outcome{ShouldRemove, left, attrs}
	case rec.Evicted || !rec.Status.Ended():
		attrs.SetString("VacateReason", rec.Reason)
		attrs.SetInt("VacateReasonCode", int64(rec.Code))
		attrs.SetInt("VacateReasonSubCode", int64(rec.Subcode))
		left.Reason = rec.Reason
		if rec.Status.Ended() {
			left.Requeued = exitOf(rec.Status)
		}
		return Outcome{Requeue, left, attrs}
	}
	ad.Update(attrs)
	jobpolicy.Ended(ad) // max_retries counts by it, for which HTCondor's starter does nothing in this universe
	completions, _ := ad.EvalInt("NumJobCompletions", nil)
	attrs.SetInt("NumJobCompletions", completions)
	how := exitAttrs(rec.Status)
	ad.Update(how)
	v := system.Exit(ad, &classad.Env{My: ad, Now: now})
	switch v.Action {
	case jobpolicy.Hold:
		attrs.Update(how)
		hold(attrs, v.Why, int(v.Code), v.Subcode)
		return Outcome{ShouldHold, left, attrs}
	case jobpolicy.Remove:
		attrs.Update(how)
		return Outcome{Done, eventlog.Terminated{Exit: *exitOf(rec.Status), Local: usage, TotalLocal: usage}, attrs}
	default:
		attrs.SetString("RequeueReason", v.Why)
		left.Requeued, left.Reason = exitOf(rec.Status), v.Why
		return Outcome{Requeue, left, attrs}
	}
}

func hold(attrs *classad.Ad, why string, code, subcode int) {
	attrs.SetString("HoldReason", why)
	attrs.SetInt("HoldReasonCode", int64(code))
	attrs.SetInt("HoldReasonSubCode", int64(subcode))
}

// measured is what the job used.
func measured(rec *protocol.ExitRecord) *classad.Ad {
	ad := classad.NewAd()
	if rec.Started.IsZero() {
		return ad
	}
	used(ad, rec.Usage)
	ad.SetInt("DiskUsage", rec.DiskKiB)
	return ad
}

// used writes a measurement, as the queue has it of every job.
func used(ad *classad.Ad, u host.Usage) {
	ad.SetReal("RemoteUserCpu", float64(u.UserCPU/time.Second))
	ad.SetReal("RemoteSysCpu", float64(u.SysCPU/time.Second))
	ad.SetInt("ImageSize", u.ImageSizeKiB)
	ad.SetInt("ResidentSetSize", u.RSSKiB)
}

// exitAttrs say how the job's program ended.
func exitAttrs(s host.ExitStatus) *classad.Ad {
	ad := classad.NewAd()
	ad.SetBool("ExitBySignal", s.Signal != 0)
	ad.SetBool("JobCoreDumped", s.Core)
	if s.Signal != 0 {
		ad.SetInt("ExitSignal", int64(s.Signal))
		ad.SetString("ExitReason", "died on "+job.SignalText(s.Signal))
		return ad
	}
	ad.SetInt("ExitCode", int64(s.Code))
	ad.SetInt("ExitStatus", int64(s.Code))
	return ad
}

func exitOf(s host.ExitStatus) *eventlog.Exit {
	return &eventlog.Exit{Signal: s.Signal, Status: s.Code}
}
