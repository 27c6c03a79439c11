// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// ActivationID names one run of one job on this machine: "slot1_1#3", the name
// of the slot and a number that this EP gives out once.
type ActivationID string

// NewActivationID returns the id of the n-th activation of the EP, in the slot
// of that name.
func NewActivationID(slotName string, n int64) ActivationID {
	return ActivationID(slotName + "#" + strconv.FormatInt(n, 10))
}

// Phase is how far an activation is. The order is that of a job's life.
type Phase uint8

// The phases.
const (
	Starting  Phase = iota // a starter was asked for; the job does not run yet
	Running                // the job runs, or its files are on their way
	Suspended              // the job is stopped
	Vacating               // the starter was told to end the job gently
	Killing                // the starter was told to end the job at once
	Ended                  // the job is gone; the starter is being reaped
)

var phaseNames = [...]string{"starting", "running", "suspended", "vacating", "killing", "ended"}

// String returns the lower-case name.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// phaseMoves[p] has one bit for each phase that may follow p.
var phaseMoves = [...]uint8{
	Starting:  1<<Running | 1<<Suspended | 1<<Vacating | 1<<Killing | 1<<Ended,
	Running:   1<<Suspended | 1<<Vacating | 1<<Killing | 1<<Ended,
	Suspended: 1<<Starting | 1<<Running | 1<<Vacating | 1<<Killing | 1<<Ended,
	Vacating:  1<<Killing | 1<<Ended,
	Killing:   1 << Ended,
	Ended:     0,
}

// Activation is one job run under a claim. The zero Activation is not valid;
// Start makes one. Activations are owned and changed by lib/ep alone.
type Activation struct {
	ID       ActivationID
	Job      *classad.Ad
	Universe int
	Phase    Phase
	Began    clock.Instant // when the activation was granted

	// Pledge is the vacate time that the machine promised at the start. What
	// MachineMaxVacateTime says later does not take it back.
	Pledge time.Duration
	// PreemptWasTrue remembers that PREEMPT was once true for this job.
	PreemptWasTrue bool
	// Irrevocable retirement goes on though its cause has gone away.
	Irrevocable bool
	// Peaceful retirement has no end.
	Peaceful bool
	// Hurried retirement is over before it begins: quick draining.
	Hurried bool
	// Admitted says that the job came in while the machine was being drained.
	Admitted bool

	entered        clock.Instant // when Phase began
	run, suspended time.Duration // of the phases that are over
}

// Start returns the activation of job that begins now.
func Start(id ActivationID, job *classad.Ad, universe int, pledge time.Duration, now clock.Instant) Activation {
	return Activation{ID: id, Job: job, Universe: universe, Pledge: max(pledge, 0), Began: now, entered: now}
}

// Enter moves the activation to phase p. A move that cannot be is refused with
// a Conflict and changes nothing; to stay is no move and always allowed.
func (a *Activation) Enter(p Phase, now clock.Instant) error {
	if p == a.Phase {
		return nil
	}
	if int(p) >= len(phaseMoves) || phaseMoves[a.Phase]&(1<<p) == 0 {
		return errs.E("claim.Enter", errs.Conflict, string(a.ID), fmt.Errorf("%v activation cannot become %v", a.Phase, p))
	}
	a.run, a.suspended = a.RunTime(now), a.SuspendedTime(now)
	a.Phase, a.entered = p, now
	return nil
}

// RunTime returns for how long the job has run, without the time it was
// suspended. Retirement counts in it. It stands still once the job is told to
// leave.
func (a *Activation) RunTime(now clock.Instant) time.Duration {
	if a.Phase == Starting || a.Phase == Running {
		return a.run + now.Sub(a.entered)
	}
	return a.run
}

// SuspendedTime returns for how long the job has been suspended in all.
func (a *Activation) SuspendedTime(now clock.Instant) time.Duration {
	if a.Phase == Suspended {
		return a.suspended + now.Sub(a.entered)
	}
	return a.suspended
}

// Active reports whether the job may still be there.
func (a *Activation) Active() bool { return a.Phase != Ended }
