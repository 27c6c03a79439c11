// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
)

// endless is longer than anything that is waited for.
const endless = time.Duration(math.MaxInt64 / 4)

// seconds turns whole seconds into a duration; too many are endless.
func seconds(n int64) time.Duration {
	const most = int64(endless / time.Second)
	return time.Duration(min(max(n, -most), most)) * time.Second
}

// inRetirement reports whether the claim is to end as soon as the job's
// retirement allows it.
func (v *View) inRetirement() bool {
	return v.Waiting != NobodyWaits || v.Draining && !v.admitted() || v.Activation != nil && v.Activation.Irrevocable
}

// admitted reports whether the job came in while the machine was already being
// drained. It holds nothing up and goes with the last of the others.
func (v *View) admitted() bool { return v.Draining && v.Activation != nil && v.Activation.Admitted }

// mustLeave reports whether the job has to go once its time is over.
func (v *View) mustLeave() bool { return v.inRetirement() || v.admitted() }

// promised returns for how long the job may still stay. While only draining
// sends it away that is at least as long as the longest of the others may,
// since a slot that is empty earlier is of no use to anybody; the documents
// promise it, and HTCondor does it for some jobs only. A job that came in
// while draining has no time of its own, unless PREEMPT became true for it:
// the slot's policy holds while the machine is drained, and such a job goes
// when its own retirement is over, with the drain at the latest.
func (v *View) promised() time.Duration {
	a := v.Activation
	switch {
	case a == nil || !a.Active():
		return 0
	case v.admitted() && a.PreemptWasTrue:
		return min(v.retirementLeft(), v.drainLeft())
	case v.admitted():
		return v.drainLeft()
	case v.Draining && v.Waiting == NobodyWaits && !a.Irrevocable:
		return max(v.retirementLeft(), v.drainLeft())
	}
	return v.retirementLeft()
}

func (v *View) drainLeft() time.Duration {
	if v.tracer != nil {
		v.tracer.derive("retirement of the machine left", v.DrainLeft.Round(time.Millisecond).String())
	}
	return v.DrainLeft
}

// RetirementLeft returns for how long the running job may still not be
// hard-killed: MAXJOBRETIREMENTTIME, or less if the job wants less, counted
// from its start without the time it was suspended. It is 0 without a job and
// never negative.
func RetirementLeft(v *View) time.Duration {
	v.prepare()
	return v.retirementLeft()
}

func (v *View) retirementLeft() time.Duration {
	a := v.Activation
	if a == nil || !a.Active() {
		return 0
	}
	granted := int64(0)
	val := v.value(MaxJobRetirementTime)
	if n, ok := whole(val); ok {
		granted = n
		v.withdrawWarning(MaxJobRetirementTime)
	} else {
		v.warn(MaxJobRetirementTime, val, "taken as 0 s")
	}
	v.tracer.tookTime(seconds(granted))
	limit := seconds(granted)
	if a.Hurried {
		v.tracer.derive("quick draining", "no retirement")
		return 0
	}
	// A computed -1 ends a job at once even in a peaceful shutdown.
	if a.Peaceful && granted != -1 {
		limit = endless
		v.tracer.derive("peaceful shutdown", "retirement without end")
	}
	if val, ok := v.jobValue("MaxJobRetirementTime"); ok {
		if n, ok := whole(val); ok {
			v.tracer.tookTime(seconds(n))
			limit = min(limit, seconds(n))
		}
	}
	left := max(0, limit-a.RunTime(v.Now))
	if v.tracer != nil {
		v.tracer.derive("retirement left", left.Round(time.Millisecond).String())
	}
	return left
}

// MaxVacate returns how long a soft kill of the running job may take: what the
// machine pledged when the job started, less if the job wants less, more if
// the job wants more and retirement that is left can be turned into it. It is
// 0 without a job.
func MaxVacate(v *View) time.Duration {
	v.prepare()
	return v.maxVacate(v.promised)
}

func (v *View) maxVacate(retirementLeft func() time.Duration) time.Duration {
	a := v.Activation
	if a == nil || !a.Active() {
		return 0
	}
	pledge := a.Pledge
	wanted, says := v.jobValue("JobMaxVacateTime")
	if !says {
		wanted, says = v.jobValue("KillSigTimeout")
	}
	if !says {
		return pledge
	}
	n, _ := whole(wanted) // what is no number asks for nothing
	want := max(0, seconds(n))
	v.tracer.tookTime(want)
	if want <= pledge {
		return want
	}
	return max(pledge, min(want, retirementLeft()))
}

// retirementOver reports whether the eviction has to begin, so that a job
// which uses all its vacate time is gone when its retirement ends.
func (v *View) retirementOver() bool {
	left := v.promised()
	if left <= 0 {
		return true
	}
	// The same retirement again costs nothing and is not traced twice.
	vacate := v.maxVacate(func() time.Duration { return left })
	if v.tracer != nil {
		v.tracer.derive("vacate time", vacate.Round(time.Millisecond).String())
	}
	return vacate >= left
}

// Pledge evaluates MachineMaxVacateTime for a job that is about to start. What
// is no number pledges nothing.
func Pledge(v *View) time.Duration {
	v.prepare()
	val := v.value(MachineMaxVacateTime)
	n, ok := whole(val)
	if ok {
		v.withdrawWarning(MachineMaxVacateTime)
	} else {
		v.warn(MachineMaxVacateTime, val, "taken as 0 s")
	}
	return max(0, seconds(n))
}

// RankOf returns what the machine thinks of the job in v: a real, 0 for
// whatever RANK gives that is no number or boolean.
func RankOf(v *View) float64 {
	v.prepare()
	val := v.value(Rank)
	f, ok := val.AsNumber()
	if !ok || math.IsNaN(f) {
		v.warn(Rank, val, "taken as 0")
		return 0
	}
	v.withdrawWarning(Rank)
	return f
}

// worklife evaluates CLAIM_WORKLIFE, which sees no job. What is no number is
// taken to be the default.
func (v *View) worklife() time.Duration {
	val := v.local(ClaimWorklife)
	n, ok := whole(val)
	if ok {
		v.withdrawWarning(ClaimWorklife)
	} else {
		const taken = "undefined, taken as the default of 1200 s"
		n = defaultWorklife
		v.tracer.took(taken)
		v.warn(ClaimWorklife, val, taken)
	}
	if n < 0 {
		v.tracer.took("no limit")
		return claim.NoWorklife
	}
	v.tracer.tookTime(seconds(n))
	return seconds(n)
}

const defaultWorklife = 1200

// Worklife returns how long a claim takes new jobs, claim.NoWorklife if for
// ever.
func Worklife(v *View) time.Duration {
	v.prepare()
	return v.worklife()
}

// Verdict is an answer of the slot's policy about one job.
type Verdict struct {
	OK    bool
	Value classad.Value // of Requirements
	Trace []Trace       // nil if OK
}

// Starts asks START about the job in v, as it is asked for a claim and for
// each activation: only true, or a number other than 0, lets the job in.
func Starts(v *View) Verdict {
	v.prepare()
	val := v.value(Start)
	b, ok := truth(val)
	switch {
	case v.Draining: // it is not START that was asked
	case ok:
		v.withdrawWarning(Start)
	default:
		v.warn(Start, val, takenFalse)
	}
	if b {
		return Verdict{OK: true, Value: val}
	}
	t := tracer{}
	v.tracer = &t
	val = v.value(Start)
	if ok {
		t.took(yes(b))
	} else {
		t.took(takenFalse)
	}
	v.tracer = nil
	return Verdict{OK: b, Value: val, Trace: t.list}
}

// StartIsFalse reports whether START is plainly false for the job in v.
// Undefined is not false: a preempting claim that waited for the slot is let
// in unless it is refused outright.
func StartIsFalse(v *View) bool {
	v.prepare()
	b, ok := truth(v.value(Start))
	return ok && !b
}

// Owned reports whether IS_OWNER keeps the slot for its owner.
func Owned(v *View) bool {
	v.prepare()
	return v.owner()
}
