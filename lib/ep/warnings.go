// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// PolicyWarning says that an expression of the policy gave something that it is
// not asked for, such as undefined where a condition is wanted, and what that
// was taken for. It is given once for all slots of a type: again only after the
// expression gave what it should meanwhile in that slot, gave another kind of
// value, or was configured otherwise.
type PolicyWarning struct {
	Slot  slot.ID
	Name  string // "slot1_1"
	Trace policy.Trace
}

func (PolicyWarning) effect() {}

// evaluation is the view in which the policy sees a slot, and what was warned of
// in what it saw.
type evaluation struct {
	view     policy.View       // used again for every slot
	slot     *slotState        // which it shows
	stepping bool              // Step or New is under way: a mere question gives no warning
	warned   map[int]*warnings // by slot type
}

// warnings are those that were given about the policy of one slot type.
type warnings struct {
	known uint64 // keys by bit
	given map[policy.Key]warning
}

// warning is one of them.
type warning struct {
	slot slot.ID // in which the expression has to give what it should
	text string  // of the expression
	kind uint8   // of the value
}

// kindOf tells the values apart that are worth another warning.
func kindOf(val classad.Value) uint8 {
	_, isString := val.AsString()
	_, isNumber := val.AsNumber()
	switch {
	case val.IsUndefined():
		return 0
	case val.IsError():
		return 1
	case isString:
		return 2
	case isNumber:
		return 3
	}
	return 4
}

// show turns the view to a slot, and has it note what is to be warned of.
func (v *evaluation) show(sl *slotState) {
	v.slot = sl
	v.view.Warn, v.view.Warned = v.stepping, 0
	if w := v.warned[sl.s.TypeID]; w != nil {
		v.view.Warned = w.known
	}
}

// take returns what the view has noted. It must be given back to the view, emptied,
// when that may note again.
func (v *evaluation) take() []policy.Warning {
	list := v.view.Warnings
	v.view.Warnings, v.view.Warn = nil, false
	return list
}

// isNew reports whether the warning is to be given, and keeps account of it.
func (v *evaluation) isNew(found policy.Warning) bool {
	sl := v.slot
	w := v.warned[sl.s.TypeID]
	if w == nil {
		w = &warnings{given: make(map[policy.Key]warning)}
		v.warned[sl.s.TypeID] = w
	}
	was, known := w.given[found.Key]
	switch {
	case found.Withdrawn:
		if known && was.slot == sl.s.ID {
			w.forget(found.Key)
		}
		return false
	case known && (was.slot != sl.s.ID || was.kind == kindOf(found.Value)):
		return false
	}
	w.given[found.Key] = warning{sl.s.ID, sl.exprs.Get(found.Key).Expr.String(), kindOf(found.Value)}
	w.known |= 1 << found.Key
	return true
}

func (w *warnings) forget(k policy.Key) {
	delete(w.given, k)
	w.known &^= 1 << k
}

// reconfigured forgets warnings about expressions that were configured otherwise.
func (v *evaluation) reconfigured(exprs map[int]*policy.Expressions) {
	for typ, w := range v.warned {
		x := exprs[typ]
		for k, was := range w.given {
			if x == nil || x.Get(k).Expr == nil || x.Get(k).Expr.String() != was.text {
				w.forget(k)
			}
		}
	}
}

// emitWarnings gives the warnings about what the view showed last.
func (e *Engine) emitWarnings() {
	v := &e.policy
	if len(v.view.Warnings) == 0 {
		return
	}
	list := v.take()
	for _, found := range list {
		if v.isNew(found) {
			e.emit(PolicyWarning{Slot: v.slot.s.ID, Name: v.slot.name, Trace: policy.TraceWarning(&v.view, found)})
		}
	}
	v.view.Warnings = list[:0]
}
