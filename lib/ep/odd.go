// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// PolicyOdd says that an expression of the policy gave something that it is
// not asked for, such as undefined where a condition is wanted, and what that
// was taken for. It is said once for all slots of a type: again only after the
// expression was right meanwhile in that slot, gave another kind of value, or
// was configured otherwise.
type PolicyOdd struct {
	Slot  slot.ID
	Name  string // "slot1_1"
	Trace policy.Trace
}

func (PolicyOdd) effect() {}

// oddities is what of the policy of one slot type was said to be odd.
type oddities struct {
	known uint64 // keys by bit
	said  map[policy.Key]saidOdd
}

// saidOdd is one report.
type saidOdd struct {
	slot slot.ID // whose look decides whether it is right again
	text string  // of the expression
	kind uint8   // of the value
}

// kindOf tells the values apart that are worth another report.
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

// watch lets the view note what is odd about the slot in it.
func (e *Engine) watch(sl *slotState) {
	e.sayOdd()
	v := &e.view
	v.Watch, v.Known = e.stepping, 0
	if o := e.odd[sl.s.TypeID]; o != nil {
		v.Known = o.known
	}
	e.looked = sl
}

// sayOdd reports what the last looks noted.
func (e *Engine) sayOdd() {
	v := &e.view
	if len(v.Odd) == 0 {
		return
	}
	list := v.Odd
	v.Odd, v.Watch = nil, false
	sl := e.looked
	o := e.odd[sl.s.TypeID]
	if o == nil {
		o = &oddities{said: make(map[policy.Key]saidOdd)}
		e.odd[sl.s.TypeID] = o
	}
	for _, found := range list {
		was, known := o.said[found.Key]
		switch {
		case found.Right:
			if known && was.slot == sl.s.ID {
				delete(o.said, found.Key)
				o.known &^= 1 << found.Key
			}
			continue
		case known && (was.slot != sl.s.ID || was.kind == kindOf(found.Value)):
			continue
		}
		o.said[found.Key] = saidOdd{sl.s.ID, sl.exprs.Get(found.Key).Expr.String(), kindOf(found.Value)}
		o.known |= 1 << found.Key
		e.emit(PolicyOdd{Slot: sl.s.ID, Name: sl.name, Trace: policy.TraceOdd(v, found)})
	}
	v.Odd = list[:0]
}

// forgetOdd forgets reports about expressions that were configured otherwise.
func (e *Engine) forgetOdd(exprs map[int]*policy.Expressions) {
	for typ, o := range e.odd {
		x := exprs[typ]
		for k, was := range o.said {
			if x == nil || x.Get(k).Expr == nil || x.Get(k).Expr.String() != was.text {
				delete(o.said, k)
				o.known &^= 1 << k
			}
		}
	}
}
