// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// measure is what a number counts.
type measure uint8

const (
	unknown  measure = iota
	plain            // a constant
	past             // seconds since 1970, of something that happened
	now              // the present, in the same seconds
	elapsed          // seconds since something
	negative         // the same the wrong way round
	lasting          // seconds of something else: KeyboardIdle
)

func (q measure) isPoint() bool { return q == past || q == now }

// points are the attributes that are points in time.
const points = ` currenttime mycurrenttime enteredcurrentstate enteredcurrentactivity jobstart lastperiodiccheckpoint lastheardfrom lastbenchmark
 daemonstarttime jobcurrentstartdate jobcurrentstartexecutingdate jobstartdate qdate enteredcurrentstatus lastsuspensiontime lastdrainstarttime `

// spans are those that are durations.
const spans = ` keyboardidle consoleidle totaljobruntime totalclaimruntime maxjobretirementtime machinemaxvacatetime remotewallclocktime `

// smallest is a number that is no point in time: 1973.
const smallest = 1e8

// times reports comparisons of points in time with durations.
func (c *checker) times(s config.Setting, n *node) {
	n.all(func(m *node) bool {
		if m.op != opBinary || len(m.args) != 2 {
			return true
		}
		a, b := m.args[0], m.args[1]
		qa, qb := c.measure(a), c.measure(b)
		switch m.name {
		case "+":
			if qa.isPoint() && qb.isPoint() {
				c.add(found(TimeMisuse, s, "adds two points in time: "+oneLine(m.written()), "their difference"))
				return false
			}
		case "<", "<=", ">", ">=":
			if f, ok := misused(m, a, b, qa, qb); ok {
				c.add(found(TimeMisuse, s, f.Message, f.Instead))
				return false
			}
			if f, ok := misused(m, b, a, qb, qa); ok {
				c.add(found(TimeMisuse, s, f.Message, f.Instead))
				return false
			}
		}
		return true
	})
}

// misused looks at a comparison from one side.
func misused(m, a, b *node, qa, qb measure) (Finding, bool) {
	small := qb == elapsed || qb == lasting
	positive := small
	if qb == plain {
		v, _ := b.value().AsNumber()
		small = v != 0 && math.Abs(v) < smallest
		positive = v >= 0
	}
	switch {
	case qa.isPoint() && small:
		instead := "(time() - " + oneLine(a.written()) + ") " + m.name + " " + oneLine(b.written())
		if qa == now {
			instead = "the time since something: (time() - EnteredCurrentActivity) " + m.name + " " + oneLine(b.written())
		}
		return Finding{Message: "compares a point in time with a duration: " + oneLine(m.written()), Instead: instead}, true
	case qa == negative && positive && qb != unknown:
		return Finding{Message: "counts time backwards, so that " + oneLine(a.written()) + " is never above zero", Instead: "time() - the earlier point in time"}, true
	}
	return Finding{}, false
}

// measure tells what n counts.
func (c *checker) measure(n *node) measure {
	switch n.op {
	case opLiteral, opUnary:
		if n.isConstant() {
			if _, ok := n.value().AsNumber(); ok {
				return plain
			}
		}
	case opCall:
		if strings.EqualFold(n.name, "time") && len(n.args) == 0 {
			return now
		}
	case opAttr:
		return c.measureOf(n.name)
	case opBinary:
		if n.isConstant() {
			return plain
		}
		a, b := c.measure(n.args[0]), c.measure(n.args[1])
		switch {
		case n.name == "-" && a == now && b == past:
			return elapsed
		case n.name == "-" && a == past && b == now:
			return negative
		case (n.name == "-" || n.name == "+") && a.isPoint() && (b == plain || b == elapsed || b == lasting):
			return past
		}
	}
	return unknown
}

func (c *checker) measureOf(name string) measure {
	key := " " + strings.ToLower(name) + " "
	switch {
	case c.isPublished(name):
		return unknown
	case key == " currenttime " || key == " mycurrenttime ":
		return now
	case strings.Contains(points, key):
		return past
	case strings.Contains(spans, key):
		return lasting
	}
	return unknown
}
