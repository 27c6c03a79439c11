// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// tracer writes down what an evaluation asked. A nil tracer writes nothing.
type tracer struct {
	list []Trace
	open bool // the last entry has not been told what its value was taken for
}

func (t *tracer) evaluate(v *View, e *classad.Expr, tr Trace) classad.Value {
	v.env.OnRead = func(r classad.Read) { tr.Reads = append(tr.Reads, r) }
	val := e.Eval(&v.env)
	v.env.OnRead = nil
	tr.Text, tr.Value, tr.Taken = e.String(), val, val.String()
	t.list = append(t.list, tr)
	t.open = true
	return val
}

func (t *tracer) value(v *View, k Key) classad.Value {
	x := v.Exprs.list[k]
	return t.evaluate(v, x.Expr, Trace{Name: x.Name, Origin: x.Origin})
}

func (t *tracer) jobValue(v *View, name string, e *classad.Expr) classad.Value {
	return t.evaluate(v, e, Trace{Name: name, OfJob: true})
}

// took notes what the last value was taken for.
func (t *tracer) took(what string) {
	if t == nil || !t.open {
		return
	}
	t.list[len(t.list)-1].Taken = what
	t.open = false
}

// tookTime notes a time.
func (t *tracer) tookTime(d time.Duration) {
	if t != nil {
		t.took(d.String())
	}
}

// derive adds a line that comes from no expression of its own.
func (t *tracer) derive(name, taken string) {
	if t != nil {
		t.list = append(t.list, Trace{Name: name, Taken: taken})
		t.open = false
	}
}
