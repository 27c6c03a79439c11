// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
)

// Warning says that an expression gave something which it is not asked for:
// a condition that is neither true nor false, a time or a rank that is no
// number. What the documents have as ordinary is none: START, RANK and the
// particulars of WANT_HOLD may be undefined.
type Warning struct {
	Key   Key
	Value classad.Value
	Taken string // what it was taken for
	// Withdrawn says the opposite: the expression of an earlier warning gave what
	// it should.
	Withdrawn bool
}

// What a condition that is neither true nor false is taken for.
const (
	takenTrue  = "undefined, taken as TRUE"
	takenFalse = "undefined, taken as FALSE"
)

// asksPlain is what a variant for a universe is taken for.
var asksPlain = [numReplaceable]string{
	WantSuspend:  "undefined, WANT_SUSPEND is asked",
	SuspendExpr:  "undefined, SUSPEND is asked",
	ContinueExpr: "undefined, CONTINUE is asked",
	PreemptExpr:  "undefined, PREEMPT is asked",
	WantVacate:   "undefined, WANT_VACATE is asked",
	KillExpr:     "undefined, KILL is asked",
}

// mayBeUndefined are expressions for which undefined is an ordinary answer.
const mayBeUndefined = 1<<Start | 1<<Rank | 1<<WantHoldReason | 1<<WantHoldSubcode

// warn notes that k gave what is not wanted. An expression that is not set at
// all cannot be wrong.
func (v *View) warn(k Key, val classad.Value, taken string) {
	if !v.Warn || v.Exprs.list[k].Expr == nil || mayBeUndefined&(1<<k) != 0 && val.IsUndefined() {
		return
	}
	v.Warnings = append(v.Warnings, Warning{Key: k, Value: val, Taken: taken})
}

// withdrawWarning notes that k gave what is wanted, if it did not before.
func (v *View) withdrawWarning(k Key) {
	if v.Warn && v.Warned&(1<<k) != 0 {
		v.Warnings = append(v.Warnings, Warning{Key: k, Withdrawn: true})
	}
}

// TraceWarning shows the expression of a warning that v noted, which must still
// be as it was: the values that it read, and where it was configured.
func TraceWarning(v *View, o Warning) Trace {
	v.prepare()
	t := tracer{}
	v.tracer = &t
	switch o.Key {
	case ClaimWorklife:
		v.local(o.Key)
	default:
		v.value(o.Key)
	}
	v.tracer = nil
	x := v.Exprs.list[o.Key]
	tr := Trace{Name: x.Name, Text: x.Expr.String(), Origin: x.Origin}
	// A move may have changed what it reads; then only the value is known.
	if len(t.list) == 1 && t.list[0].Value.String() == o.Value.String() {
		tr = t.list[0]
	}
	tr.Value, tr.Taken = o.Value, o.Taken
	return tr
}

// StartHolds is START without regard to a job, as it stands in the slot's ad:
// whether it is true, and whether it is true or false at all.
func StartHolds(v *View) (value, defined bool) {
	v.prepare()
	return truth(v.local(Start))
}

// WantsCheckpoint asks PERIODIC_CHECKPOINT about the job in v. Only a job of
// the vm universe that asked for checkpoints (vm_checkpoint) takes any.
func WantsCheckpoint(v *View) (bool, []Trace) {
	a := v.Activation
	if a == nil || a.Universe != UniverseVM || a.Phase != claim.Running || (v.Pair != ClaimedBusy && v.Pair != ClaimedRetiring) {
		return false, nil
	}
	if may, ok := v.Job.EvalBool(attrVMCheckpoint, nil); !ok || !may {
		return false, nil
	}
	v.prepare()
	if !v.condition(PeriodicCheckpoint, false) {
		return false, nil
	}
	t := tracer{}
	v.tracer = &t
	v.condition(PeriodicCheckpoint, false)
	v.tracer = nil
	return true, t.list
}

// attrVMCheckpoint is the job's word that it may be checkpointed.
const attrVMCheckpoint = "JobVMCheckpoint"
