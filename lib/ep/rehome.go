// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
)

// Rehomed says that the EP moves to another access point: every claim ends at
// once, whatever runs under it.
type Rehomed struct{}

func (Rehomed) event() {}

func (e *Engine) rehomed() {
	const why = "rehome"
	for _, sl := range e.slots.all {
		switch {
		case sl.pair == policy.MatchedIdle:
			e.moveOn(sl, policy.OwnerIdle, policy.Commanded, policy.ByCommand, why)
		case sl.pair.State == policy.Claimed, sl.pair == policy.PreemptingVacating:
			e.kill(sl, int(reason.StartdRehoming), policy.ByCommand, why)
		}
	}
}

// AllSlots reports whether an expression is true of the ad of every slot, and
// there is one. What is neither true nor false is not.
func (e *Engine) AllSlots(x *classad.Expr) bool {
	if x == nil {
		return false
	}
	env := e.env()
	for _, sl := range e.slots.all {
		env.My = sl.ad.Ad()
		if ok, is := x.Eval(env).AsBool(); !is || !ok {
			return false
		}
	}
	return len(e.slots.all) > 0
}

// Empty reports whether no slot has a claim or a starter.
func (e *Engine) Empty() bool {
	for _, sl := range e.slots.all {
		if sl.cur != nil || sl.act != nil {
			return false
		}
	}
	return true
}
