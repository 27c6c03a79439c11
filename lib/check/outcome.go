// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// outcome is the set of kinds of value that an expression may come to. It is
// never too small: what cannot be told is anything.
type outcome uint8

const (
	isTrue outcome = 1 << iota
	isFalse
	isUndefined
	isError
	isNumber // of which it is not known whether it is zero
	isString
	isOther // lists, ads, times

	anything = isTrue | isFalse | isUndefined | isError | isNumber | isString | isOther
	boolean  = isTrue | isFalse
)

func (o outcome) may(p outcome) bool  { return o&p != 0 }
func (o outcome) only(p outcome) bool { return o != 0 && o&^p == 0 }

// mayHold reports whether a condition with this outcome can be met.
func (o outcome) mayHold() bool { return o.may(isTrue | isNumber) }

// outcomeOf is that of a value that is known.
func outcomeOf(v classad.Value) outcome {
	switch v.Kind() {
	case classad.KindUndefined:
		return isUndefined
	case classad.KindError:
		return isError
	case classad.KindString:
		return isString
	case classad.KindBoolean:
		if v.IsTrue() {
			return isTrue
		}
		return isFalse
	case classad.KindInteger, classad.KindReal:
		return isNumber
	}
	return isOther
}

// meaning is where names in an expression lead.
type meaning struct {
	names *attributes
	defs  map[string]*node // expressions of the slot's ad, by name in lower case; nil where it does not parse
	job   bool             // there is a job to ask
	// present takes attributes that are known to exist as having a value
	// whenever they are asked.
	present bool

	active map[string]bool // definitions being looked into
	steps  int
}

const mostSteps = 20_000

// outcome tells what n may come to.
func (m *meaning) outcome(n *node) outcome {
	if n == nil || m.steps > mostSteps {
		return anything
	}
	m.steps++
	if n.isConstant() {
		return outcomeOf(n.value())
	}
	switch n.op {
	case opAttr:
		return m.attribute(n)
	case opUnary:
		return m.unary(n)
	case opTernary:
		return m.choice(n.args)
	case opCall:
		return m.call(n)
	case opBinary:
		return m.binary(n)
	}
	return anything
}

// condition sorts an outcome by what it means to a logical operator.
func condition(n *node, o outcome) (c struct{ yes, no, undef, err bool }) {
	c.yes, c.no = o.may(isTrue|isNumber), o.may(isFalse|isNumber)
	c.undef, c.err = o.may(isUndefined), o.may(isError|isString|isOther)
	if o == isNumber && n.isConstant() {
		c.yes = n.value().IsTrue()
		c.no = !c.yes
	}
	return c
}

func pick(set bool, o outcome) outcome {
	if set {
		return o
	}
	return 0
}

func (m *meaning) unary(n *node) outcome {
	o := m.outcome(n.args[0])
	if n.name == "!" {
		c := condition(n.args[0], o)
		return pick(c.yes, isFalse) | pick(c.no, isTrue) | pick(c.undef, isUndefined) | pick(c.err, isError)
	}
	return pick(o.may(boolean|isNumber), isNumber) | o&(isUndefined|isError) | pick(o.may(isString), isError) | pick(o.may(isOther), anything)
}

func (m *meaning) choice(args []*node) outcome {
	c := condition(args[0], m.outcome(args[0]))
	out := pick(c.undef, isUndefined) | pick(c.err, isError)
	if c.yes {
		out |= m.outcome(args[1])
	}
	if c.no {
		out |= m.outcome(args[2])
	}
	return out
}

func (m *meaning) call(n *node) outcome {
	switch name := strings.ToLower(n.name); {
	case name == "time" && len(n.args) == 0:
		return isNumber
	case name == "ifthenelse" && len(n.args) == 3:
		return m.choice(n.args)
	case name == "isundefined" && len(n.args) == 1:
		o := m.outcome(n.args[0])
		return pick(o.may(isUndefined), isTrue) | pick(o.may(anything&^isUndefined), isFalse)
	case name == "iserror" && len(n.args) == 1:
		o := m.outcome(n.args[0])
		return pick(o.may(isError), isTrue) | pick(o.may(anything&^isError), isFalse)
	}
	return anything
}

func (m *meaning) binary(n *node) outcome {
	a, b := m.outcome(n.args[0]), m.outcome(n.args[1])
	ca, cb := condition(n.args[0], a), condition(n.args[1], b)
	switch n.name {
	case "&&":
		out := pick(ca.no, isFalse) | pick(ca.err, isError)
		if ca.yes {
			out |= pick(cb.yes, isTrue) | pick(cb.no, isFalse) | pick(cb.undef, isUndefined) | pick(cb.err, isError)
		}
		if ca.undef {
			out |= pick(cb.yes || cb.undef, isUndefined) | pick(cb.no, isFalse) | pick(cb.err, isError)
		}
		return out
	case "||":
		out := pick(ca.yes, isTrue) | pick(ca.err, isError)
		if ca.no {
			out |= pick(cb.yes, isTrue) | pick(cb.no, isFalse) | pick(cb.undef, isUndefined) | pick(cb.err, isError)
		}
		if ca.undef {
			out |= pick(cb.no || cb.undef, isUndefined) | pick(cb.yes, isTrue) | pick(cb.err, isError)
		}
		return out
	case "?:":
		if a.may(isUndefined) {
			return a&^isUndefined | b
		}
		return a
	case "=?=":
		return identical(a, b)
	case "=!=":
		o := identical(a, b)
		return pick(o.may(isTrue), isFalse) | pick(o.may(isFalse), isTrue) | o&isError
	case "==", "!=", "<", "<=", ">", ">=":
		return compared(a, b)
	}
	out := (a | b) & (isUndefined | isError)
	if a.may(isOther) || b.may(isOther) {
		return anything
	}
	if a.may(isString) || b.may(isString) {
		out |= isError
	}
	if a.may(boolean|isNumber) && b.may(boolean|isNumber) {
		out |= isNumber
		if n.name == "/" || n.name == "%" {
			out |= isError
		}
	}
	return out
}

// identical is =?=: always a boolean, except for lists and ads.
func identical(a, b outcome) outcome {
	out := pick(a.may(isOther) && b.may(isOther), isError)
	single := func(o outcome) bool { return o == isTrue || o == isFalse || o == isUndefined || o == isError }
	switch {
	case a&b == 0:
		return out | isFalse
	case a == b && single(a):
		return out | isTrue
	}
	return out | boolean
}

// compared is a comparison that knows undefined.
func compared(a, b outcome) outcome {
	if a.may(isOther) || b.may(isOther) {
		return anything &^ (isNumber | isString | isOther)
	}
	out := (a | b) & (isUndefined | isError)
	number := boolean | isNumber
	if a.may(number) && b.may(number) || a.may(isString) && b.may(isString) {
		out |= boolean
	}
	if a.may(number) && b.may(isString) || a.may(isString) && b.may(number) {
		out |= isError
	}
	if a.only(isUndefined) && !b.may(isError) || b.only(isUndefined) && !a.may(isError) {
		return isUndefined
	}
	return out
}

// attribute tells what a name may stand for.
func (m *meaning) attribute(n *node) outcome {
	key := strings.ToLower(n.name)
	if n.scope != "TARGET" {
		if def, ok := m.defs[key]; ok {
			return m.definition(key, def)
		}
		if a, ok := m.names.slot[key]; ok {
			o := a.kind.outcome()
			if !a.always && !m.present {
				o |= isUndefined
			}
			return o
		}
		_, ofJob := m.names.job[key]
		if n.scope == "MY" {
			if ofJob {
				return isUndefined
			}
			return anything
		}
		if !m.job && ofJob {
			return isUndefined
		}
		if !ofJob {
			return anything
		}
	}
	if !m.job {
		return isUndefined
	}
	a, ok := m.names.job[key]
	if !ok {
		return anything
	}
	o := a.kind.outcome()
	if !m.present {
		o |= isUndefined
	}
	return o
}

func (m *meaning) definition(key string, def *node) outcome {
	if m.active[key] {
		return anything
	}
	if m.active == nil {
		m.active = map[string]bool{}
	}
	m.active[key] = true
	defer delete(m.active, key)
	return m.outcome(def)
}
