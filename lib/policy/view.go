// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// View is what a decision about one slot may look at. Decide changes nothing
// in it that a caller can see; a View that is used again for the next decision
// makes that decision free of allocations.
type View struct {
	Now  clock.Instant
	Pair Pair
	// Slot is the slot's ad, MY of its expressions. The expressions themselves
	// are seen in it by name.
	Slot *classad.Ad
	// Job is TARGET: the running job, before the first activation of a claim
	// the job of the request, nil without either.
	Job   *classad.Ad
	Exprs *Expressions

	Claim      *claim.Claim      // nil without a claim
	Activation *claim.Activation // nil without a starter
	// Waiting says that a preempting claim waits, and whether the machine's
	// rank or a user's priority brought it.
	Waiting Waiting
	// Commanded is set while the job is suspended by command: CONTINUE is not
	// asked.
	Commanded bool

	Draining bool // the machine is being drained
	// DrainLeft is what the jobs that ran when draining began have left of
	// their retirement, the longest of them; 0 if none is honoured. The drain
	// cannot end before, so no other job has to go earlier.
	DrainLeft time.Duration
	// DrainStart is START while draining, nil if no job is admitted.
	DrainStart *classad.Expr
	// ActivationDelay is for how long a claim may be without a job before
	// draining ends it: MAX_DRAINING_ACTIVATION_DELAY.
	ActivationDelay time.Duration

	AllDrained  bool // every slot is in Drained
	CanBackfill bool // a backfill client is configured
	// CanBenchmark is set when benchmarks could be run in this slot now.
	CanBenchmark bool

	Location *time.Location // local time zone of expressions, nil is UTC
	Rand     func() float64 // for random(), nil: it gives error

	// Warn asks for Warnings, which is appended to: of expressions that gave what
	// was not wanted, and of those in Warned, keys by bit, that gave what is wanted.
	Warn     bool
	Warned   uint64
	Warnings []Warning

	env    classad.Env
	tracer *tracer // nil while no trace is wanted
}

// Waiting says whether a preempting claim waits.
type Waiting uint8

// Why a preempting claim waits.
const (
	NobodyWaits Waiting = iota
	WaitsByRank
	WaitsByPriority
)

// universe returns that of the running job, 0 without one.
func (v *View) universe() int {
	if v.Activation == nil {
		return 0
	}
	return v.Activation.Universe
}

// prepare binds the expressions to the slot and the job.
func (v *View) prepare() {
	v.Exprs.scope.SetParent(v.Slot)
	v.env.My, v.env.Target = v.Exprs.scope, v.Job
	v.env.Now, v.env.Location, v.env.Rand = v.Now.Wall, v.Location, v.Rand
}

// local evaluates k without the job.
func (v *View) local(k Key) classad.Value {
	v.env.Target = nil
	val := v.value(k)
	v.env.Target = v.Job
	return val
}

// value evaluates k; undefined if it is not set.
func (v *View) value(k Key) classad.Value {
	e := v.Exprs.list[k].Expr
	if k == Start && v.Draining {
		return v.drainStart()
	}
	if e == nil {
		return classad.Undefined()
	}
	if v.tracer != nil {
		return v.tracer.value(v, k)
	}
	if v.Exprs.constant[k] {
		return v.Exprs.value[k]
	}
	return e.Eval(&v.env)
}

// drainStart evaluates START as it is while draining.
func (v *View) drainStart() classad.Value {
	const name = "START while draining"
	switch {
	case v.DrainStart == nil:
		v.tracer.derive(name, "not set")
		return classad.Undefined()
	case v.tracer != nil:
		return v.tracer.evaluate(v, v.DrainStart, Trace{Name: name})
	}
	return v.DrainStart.Eval(&v.env)
}

// jobValue evaluates an attribute of the job with the slot as TARGET. ok is
// false if the job does not have it.
func (v *View) jobValue(name string) (val classad.Value, ok bool) {
	if v.Job == nil {
		return classad.Value{}, false
	}
	e, ok := v.Job.Lookup(name)
	if !ok {
		return classad.Value{}, false
	}
	my, target := v.env.My, v.env.Target
	v.env.My, v.env.Target = v.Job, v.Exprs.scope
	if v.tracer != nil {
		val = v.tracer.jobValue(v, name, e)
	} else {
		val = e.Eval(&v.env)
	}
	v.env.My, v.env.Target = my, target
	return val, true
}

// truth reads a value as a condition: a boolean, or a number that is not zero.
// What is not a number (NaN) is neither true nor false.
func truth(val classad.Value) (value, defined bool) {
	if b, ok := val.AsBool(); ok {
		return b, true
	}
	if n, ok := val.AsNumber(); ok && n == n {
		return n != 0, true
	}
	return false, false
}

// whole reads a value as a number of seconds or the like: an integer, a real
// cut towards zero, or a boolean as 0 or 1.
func whole(val classad.Value) (int64, bool) {
	if n, ok := val.AsInt(); ok {
		return n, true
	}
	if f, ok := val.AsNumber(); ok {
		const most = 1 << 62
		if f != f {
			return 0, false
		}
		return int64(min(max(f, -most), most)), true
	}
	return 0, false
}

// condition asks k, or its variant for the job's universe if that is set and
// says something. What is neither true nor false is taken as otherwise.
func (v *View) condition(k Key, otherwise bool) bool {
	if k < numReplaceable {
		variant := numKeys
		switch v.universe() {
		case UniverseVanilla:
			variant = vanillaVariants + k
		case UniverseVM:
			variant = vmVariants + k
		}
		if variant != numKeys && v.Exprs.list[variant].Expr != nil {
			val := v.value(variant)
			b, ok := truth(val)
			if ok {
				v.tracer.took(yes(b))
				v.withdrawWarning(variant)
				return b
			}
			taken := asksPlain[k]
			v.tracer.took(taken)
			v.warn(variant, val, taken)
		}
	}
	val := v.value(k)
	b, ok := truth(val)
	switch {
	case ok:
		v.tracer.took(yes(b))
		v.withdrawWarning(k)
		return b
	case otherwise:
		v.tracer.took(takenTrue)
		v.warn(k, val, takenTrue)
	default:
		v.tracer.took(takenFalse)
		v.warn(k, val, takenFalse)
	}
	return otherwise
}

func yes(b bool) string {
	if b {
		return "TRUE"
	}
	return "FALSE"
}

// owner asks IS_OWNER, with TARGET as HTCondor's daemon has it:
//
//   - A request for the slot is asked about with its own job: the slot's owner
//     can keep it from some jobs and not from others.
//   - An idle claim is asked about with the job of the request, until its first
//     job has begun. The end of a job leaves the claim without one, and with no
//     TARGET IS_OWNER may say otherwise: so the claim ends after each job of a
//     policy that is true without a job.
//   - A partitionable slot that is claimed as a whole never runs a job itself and
//     keeps that of the request. Its dynamic slots are asked about in their own
//     right.
//   - In Owner and Unclaimed there is no job. A slot that goes to Owner for that
//     is matched all the same where START lets the job in.
//
// The owner's wish that cannot be made out is taken to be that the machine is in
// use: no job starts for which that is so and an idle claim ends, until the
// expression says something. HTCondor ends itself then.
func (v *View) owner() bool {
	val := v.value(IsOwner)
	b, ok := truth(val)
	if !ok {
		v.tracer.took(takenTrue)
		v.warn(IsOwner, val, takenTrue)
		return true
	}
	v.tracer.took(yes(b))
	v.withdrawWarning(IsOwner)
	return b
}
