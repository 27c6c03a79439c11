// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// bound is one comparison of an attribute with a constant.
type bound struct {
	attr   string // in lower case, with MY. or TARGET.
	sign   string // as if the attribute stood on the left
	number float64
	text   string
	isText bool
	node   *node
}

// turned are the comparisons with their sides exchanged.
var turned = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "=?=": "=?=", "!=": "!=", "=!=": "=!="}

// boundOf reads n as a comparison of an attribute with a constant.
func boundOf(n *node) (b bound, ok bool) {
	sign, known := turned[n.name]
	if n.op != opBinary || !known {
		return bound{}, false
	}
	attr, value := n.args[0], n.args[1]
	if attr.op == opAttr {
		sign = n.name
	} else {
		attr, value = value, attr
	}
	if attr.op != opAttr || !value.isConstant() {
		return bound{}, false
	}
	b = bound{attr: strings.ToLower(attr.scope + "." + attr.name), sign: sign, node: n}
	v := value.value()
	if b.text, b.isText = v.AsString(); b.isText {
		b.text = strings.ToLower(b.text)
		return b, true
	}
	b.number, ok = v.AsNumber()
	return b, ok
}

// joined returns the operands of a chain of && or ||.
func joined(n *node, sign string) []*node {
	if n.op == opBinary && n.name == sign {
		return append(joined(n.args[0], sign), joined(n.args[1], sign)...)
	}
	return []*node{n}
}

// exclusive reports conditions that no value meets, x < 30 && x > 900, and
// those that every value meets, x > 30 || x < 900.
func (c *checker) exclusive(s config.Setting, n *node) {
	n.within("", func(m *node, parent string) {
		if m.op != opBinary || m.name == parent || m.name != "&&" && m.name != "||" {
			return // a longer chain was looked at as a whole
		}
		var bounds []bound
		for _, part := range joined(m, m.name) {
			if b, ok := boundOf(part); ok {
				bounds = append(bounds, b)
			}
		}
		for i, a := range bounds {
			for _, b := range bounds[i+1:] {
				if a.attr != b.attr {
					continue
				}
				if m.name == "&&" && a.excludes(b) {
					c.add(found(NeverMet, s, "asks for "+oneLine(a.node.written())+" and "+oneLine(b.node.written())+", which is never true together", meant(a, b)))
					return
				}
				if m.name == "||" && a.not().excludes(b.not()) && !a.isText {
					c.add(found(NeverMet, s, "asks for "+oneLine(a.node.written())+" or "+oneLine(b.node.written())+", which is true of every number", a.node.written()+" && "+b.node.written()))
					return
				}
			}
		}
	})
}

// within yields n and everything in it with the operator around it.
func (n *node) within(parent string, yield func(n *node, parent string)) {
	yield(n, parent)
	for _, a := range n.args {
		a.within(n.name, yield)
	}
}

// not is the comparison that holds of a number when b does not.
func (b bound) not() bound {
	b.sign = map[string]string{"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "=?=": "!=", "!=": "==", "=!=": "=="}[b.sign]
	return b
}

// excludes reports whether no value meets both.
func (b bound) excludes(o bound) bool {
	same := func(x bound) bool { return x.sign == "==" || x.sign == "=?=" }
	other := func(x bound) bool { return x.sign == "!=" || x.sign == "=!=" }
	if b.isText != o.isText {
		return false
	}
	if b.isText {
		return same(b) && same(o) && b.text != o.text || b.text == o.text && (same(b) && other(o) || other(b) && same(o))
	}
	if other(b) || other(o) {
		return b.number == o.number && (same(b) || same(o))
	}
	low, lowOpen, high, highOpen := math.Inf(-1), false, math.Inf(1), false
	for _, x := range [...]bound{b, o} {
		open := x.sign == "<" || x.sign == ">"
		if up := strings.HasPrefix(x.sign, ">") || same(x); up && (x.number > low || x.number == low && open) {
			low, lowOpen = x.number, open
		}
		if down := strings.HasPrefix(x.sign, "<") || same(x); down && (x.number < high || x.number == high && open) {
			high, highOpen = x.number, open
		}
	}
	return low > high || low == high && (lowOpen || highOpen)
}

// meant is what was probably wanted of two comparisons that exclude each
// other.
func meant(a, b bound) string {
	either := oneLine(a.node.written()) + " || " + oneLine(b.node.written())
	if strings.HasSuffix(a.attr, ".clockmin") || strings.HasSuffix(a.attr, ".clockday") || a.isText {
		return either // over midnight, or the end of the week
	}
	if a.sign == "==" || b.sign == "==" || a.sign == "=?=" || b.sign == "=?=" {
		return either
	}
	return either + ", or the two numbers exchanged"
}

// unquoted reports a word without quotes that an attribute of text is compared
// with: it is the name of an attribute that no ad has.
func (c *checker) unquoted(s config.Setting, n *node) {
	n.all(func(m *node) bool {
		if m.op != opBinary || m.name != "==" && m.name != "!=" && m.name != "=?=" && m.name != "=!=" {
			return true
		}
		for i, word := range m.args {
			if text := m.args[1-i]; c.isText(text) && word.op == opAttr && word.scope == "" && !c.isKnown(word.name) && !c.isResource(word.name) {
				c.add(found(Unquoted, s, "compares "+text.written()+" with "+word.name+", the name of an attribute that no ad has", text.written()+" "+m.name+` "`+word.name+`"`))
			}
		}
		return true
	})
}

// isText reports whether an attribute holds text in the ads that have it.
func (c *checker) isText(n *node) bool {
	if n.op != opAttr || c.isPublished(n.name) {
		return false
	}
	key := strings.ToLower(n.name)
	slot, ofSlot := c.names.slot[key]
	job, ofJob := c.names.job[key]
	return (ofSlot || ofJob) && (!ofSlot || slot.kind == kindString) && (!ofJob || job.kind == kindString)
}

// truthWords are what other configurations write for true and false. In a
// condition they are names of attributes.
var truthWords = map[string]string{
	"yes": "True", "on": "True", "y": "True", "t": "True", "enable": "True", "enabled": "True",
	"no": "False", "off": "False", "n": "False", "f": "False", "disable": "False", "disabled": "False",
}

// truthWord reports a condition that is yes, no or their like.
func (c *checker) truthWord(s config.Setting, n *node) {
	if n.op != opAttr || n.scope != "" || c.isKnown(n.name) {
		return
	}
	if instead, ok := truthWords[strings.ToLower(n.name)]; ok {
		c.add(found(NoCondition, s, "is the name of an attribute, "+n.name+", which no ad has: it counts as false", instead))
	}
}
