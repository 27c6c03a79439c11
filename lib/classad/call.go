// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// function identifies a built-in function.
type function uint8

const (
	fnUnknown function = iota
	fnIfThenElse
	fnIsUndefined
	fnIsError
	fnTime
)

// functions are the built-in functions by lower-case name.
var functions = map[string]function{
	"ifthenelse":  fnIfThenElse,
	"isundefined": fnIsUndefined,
	"iserror":     fnIsError,
	"time":        fnTime,
}

func newCall(spelled string, args []node) *call {
	return &call{fn: functions[foldString(spelled)], spelled: spelled, args: args}
}

// now is the clock of the evaluation.
func (ev *evaluator) now() Value {
	if ev.env.Now.IsZero() {
		return ErrorValue()
	}
	return Int(ev.env.Now.Unix())
}

func (ev *evaluator) call(n *call) Value {
	switch n.fn {
	case fnIfThenElse:
		return ev.ifThenElse(n)
	case fnIsUndefined, fnIsError:
		if len(n.args) != 1 {
			return ErrorValue()
		}
		v := ev.eval(n.args[0])
		if ev.failed {
			return ErrorValue()
		}
		return Bool(v.kind == KindUndefined && n.fn == fnIsUndefined || v.kind == KindError && n.fn == fnIsError)
	case fnTime:
		if len(n.args) != 0 {
			return ErrorValue()
		}
		return ev.now()
	}
	return ErrorValue()
}

func (ev *evaluator) ifThenElse(n *call) Value {
	if len(n.args) != 3 {
		return ErrorValue()
	}
	cond := ev.eval(n.args[0])
	if ev.failed {
		return ErrorValue()
	}
	b, ok := cond.truth()
	switch {
	case ok && b:
		return ev.eval(n.args[1])
	case ok:
		return ev.eval(n.args[2])
	case cond.kind == KindUndefined:
		return cond
	}
	return ErrorValue()
}
