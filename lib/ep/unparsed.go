// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// expressions are what the owner decides by.
type expressions struct {
	byType       map[int]*policy.Expressions
	request      slot.RequestModifiers
	drainDefault *classad.Expr
	unparsed     []error // one for each setting
}

// expressionsFrom reads them for the slots of the ledger. HTCondor's daemon runs
// with a policy that does not parse, without the expression; so does this one.
// The owner must be told: in the log by who drives the engine, and in the
// daemon's ad.
func expressionsFrom(s *config.Snapshot, ledger *slot.Ledger) expressions {
	x := expressions{byType: make(map[int]*policy.Expressions)}
	listed := map[string]bool{}
	for sl := range ledger.Slots() {
		if x.byType[sl.TypeID] == nil {
			x.byType[sl.TypeID], _ = policy.ExpressionsFrom(s, sl.TypeID)
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(x.byType)) {
		for _, u := range x.byType[typ].Unparsed() {
			if !listed[u.Name] {
				listed[u.Name] = true
				x.unparsed = append(x.unparsed, u)
			}
		}
	}
	var err error
	var several config.Problems
	if x.request, err = slot.ModifiersFrom(s); errors.As(err, &several) {
		for _, p := range several {
			x.unparsed = append(x.unparsed, fmt.Errorf("%w: not asked until it is corrected", p))
		}
	}
	if x.drainDefault, err = s.Expr("DEFAULT_DRAINING_START_EXPR"); err != nil {
		x.unparsed = append(x.unparsed, fmt.Errorf("%w: undefined until it is corrected", err))
	}
	return x
}

// NewlyUnparsed says which expressions of another configuration do not parse,
// without those that do not parse in the present one either.
func (e *Engine) NewlyUnparsed(s *config.Snapshot) []error {
	was := map[string]bool{}
	for _, err := range e.exprs.unparsed {
		was[knobOf(err)] = true
	}
	return slices.DeleteFunc(expressionsFrom(s, e.ledger).unparsed, func(err error) bool { return was[knobOf(err)] })
}

// knobOf is the setting that an error of a configuration is about.
func knobOf(err error) string {
	var p *config.Problem
	if errors.As(err, &p) {
		return p.Knob
	}
	return err.Error()
}

// Unparsed says which of the owner's expressions do not parse and what counts
// in their place.
func (e *Engine) Unparsed() []error { return e.exprs.unparsed }
