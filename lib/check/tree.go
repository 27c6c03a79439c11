// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// node is one part of an expression as it is written. The language package
// answers what an expression comes to; the checks here also have to know what
// stands where.
type node struct {
	op    op
	name  string  // of an attribute or a function; the sign of an operator
	scope string  // of an attribute: "", "MY", "TARGET"
	args  []*node // operands
	text  string
}

// op is the sort of a node.
type op uint8

const (
	opLiteral op = iota
	opAttr
	opCall
	opUnary
	opBinary
	opTernary
	opOther // lists, subscripts, nested ads
)

// treeOf returns the tree of an expression, nil for one of a shape that no
// check looks into.
func treeOf(e *classad.Expr) *node {
	if e == nil {
		return nil
	}
	text := e.String()
	p := treeParser{text: text}
	p.next()
	n := p.expression(0)
	if p.failed || p.tok != "" {
		return nil
	}
	return n
}

// all yields n and everything in it, the operands after the operator.
func (n *node) all(yield func(*node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, a := range n.args {
		if !a.all(yield) {
			return false
		}
	}
	return true
}

// isAttr reports whether n is an attribute of this name.
func (n *node) isAttr(name string) bool { return n.op == opAttr && strings.EqualFold(n.name, name) }

// isConstant reports whether n always has the same value.
func (n *node) isConstant() bool {
	constant := true
	n.all(func(m *node) bool {
		constant = m.op != opAttr && (m.op != opCall || !slices.Contains(varying[:], strings.ToLower(m.name)))
		return constant
	})
	return constant
}

// varying are the functions that give another value each time, or look at more
// than their arguments.
var varying = [...]string{"time", "random", "eval", "debug", "daytime", "formattime", "unparse", "usermap", "userhome", "abstime", "gettimezoneoffset"}

// value returns what a constant is.
func (n *node) value() classad.Value {
	e, err := classad.ParseExpr(n.text, classad.Old)
	if err != nil {
		return classad.ErrorValue()
	}
	return e.Eval(nil)
}

// treeParser reads the text that the language package printed, so it may be
// lenient: what it does not know makes it fail.
type treeParser struct {
	text       string
	at, start  int // of what follows tok, of tok
	end        int // of the token before
	tok        string
	failed     bool
	depth      int
	identifier bool
}

const deepestTree = 200

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// next reads a token; "" at the end.
func (p *treeParser) next() {
	s := p.text
	p.end = p.at
	for p.at < len(s) && (s[p.at] == ' ' || s[p.at] == '\t' || s[p.at] == '\n' || s[p.at] == '\r') {
		p.at++
	}
	p.start, p.identifier = p.at, false
	if p.at >= len(s) {
		p.tok = ""
		return
	}
	switch c := s[p.at]; {
	case c == '"' || c == '\'':
		for p.at++; p.at < len(s) && s[p.at] != c; p.at++ {
			if s[p.at] == '\\' && p.at+1 < len(s) && (s[p.at+1] == c || c == '\'') {
				p.at++
			}
		}
		if p.at >= len(s) {
			p.failed = true
			p.tok = ""
			return
		}
		p.at++
	case c >= '0' && c <= '9' || c == '.' && p.at+1 < len(s) && s[p.at+1] >= '0' && s[p.at+1] <= '9':
		for p.at < len(s) && (isWord(s[p.at]) || s[p.at] == '.' || (s[p.at] == '-' || s[p.at] == '+') && (s[p.at-1] == 'E' || s[p.at-1] == 'e')) {
			p.at++
		}
	case isWord(c):
		for p.at < len(s) && isWord(s[p.at]) {
			p.at++
		}
		p.identifier = true
	default:
		p.at++
		for _, sign := range signs {
			if strings.HasPrefix(s[p.start:], sign) {
				p.at = p.start + len(sign)
				break
			}
		}
	}
	p.tok = s[p.start:p.at]
	if p.tok[0] == '\'' {
		p.tok, p.identifier = p.tok[1:len(p.tok)-1], true
	}
}

var signs = [...]string{"=?=", "=!=", ">>>", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>"}

// levels are the binary operators, the loosest first.
var levels = [...][]string{
	{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!=", "=?=", "=!=", "is", "isnt"}, {"<", "<=", ">", ">="}, {"<<", ">>", ">>>"}, {"+", "-"}, {"*", "/", "%"},
}

func (p *treeParser) fail() *node {
	p.failed = true
	return &node{op: opOther}
}

// expression reads what binds at a level or tighter; level 0 is the ternary.
func (p *treeParser) expression(level int) *node {
	if p.depth++; p.depth > deepestTree*len(levels) || p.failed {
		return p.fail()
	}
	defer func() { p.depth-- }()
	start := p.start
	if level == 0 {
		c := p.binary(0)
		if p.tok != "?" {
			return c
		}
		p.next()
		a := p.expression(0)
		if p.tok != ":" {
			return p.fail()
		}
		p.next()
		b := p.expression(0)
		return p.made(start, &node{op: opTernary, args: []*node{c, a, b}})
	}
	return p.binary(level)
}

func (p *treeParser) made(start int, n *node) *node {
	n.text = p.text[start:max(start, p.end)]
	return n
}

func (p *treeParser) binary(level int) *node {
	if level == len(levels) {
		return p.unary()
	}
	start := p.start
	left := p.binary(level + 1)
	for !p.failed && slices.ContainsFunc(levels[level], func(s string) bool { return strings.EqualFold(s, p.tok) }) {
		sign := strings.ToLower(p.tok)
		switch sign {
		case "is":
			sign = "=?="
		case "isnt":
			sign = "=!="
		}
		p.next()
		right := p.binary(level + 1)
		left = p.made(start, &node{op: opBinary, name: sign, args: []*node{left, right}})
	}
	return left
}

func (p *treeParser) unary() *node {
	if p.depth++; p.depth > deepestTree*len(levels) {
		return p.fail()
	}
	defer func() { p.depth-- }()
	start := p.start
	switch p.tok {
	case "-", "+", "!", "~":
		sign := p.tok
		p.next()
		return p.made(start, &node{op: opUnary, name: sign, args: []*node{p.unary()}})
	}
	return p.postfix()
}

func (p *treeParser) postfix() *node {
	start := p.start
	n := p.primary()
	for !p.failed {
		switch p.tok {
		case ".":
			p.next()
			if !p.identifier {
				return p.fail()
			}
			scope := strings.ToUpper(n.name)
			if n.op == opAttr && n.scope == "" && (scope == "MY" || scope == "TARGET") {
				n = &node{op: opAttr, name: p.tok, scope: scope}
			} else {
				n = &node{op: opOther, args: []*node{n}}
			}
			p.next()
			p.made(start, n)
		case "[":
			p.next()
			i := p.expression(0)
			if p.tok != "]" {
				return p.fail()
			}
			p.next()
			n = p.made(start, &node{op: opOther, args: []*node{n, i}})
		case "?":
			// x ?: y, whose sign may hold blanks.
			at := *p
			p.next()
			if p.tok != ":" {
				*p = at
				return n
			}
			p.next()
			n = p.made(start, &node{op: opBinary, name: "?:", args: []*node{n, p.primary()}})
			p.made(start, n)
		default:
			return n
		}
	}
	return n
}

func (p *treeParser) list(closing string) []*node {
	var args []*node
	for p.tok != closing {
		if p.failed || p.tok == "" {
			p.failed = true
			return nil
		}
		args = append(args, p.expression(0))
		if p.tok == "," {
			p.next()
		} else if p.tok != closing {
			p.failed = true
			return nil
		}
	}
	p.next()
	return args
}

func (p *treeParser) primary() *node {
	start, tok := p.start, p.tok
	switch {
	case p.failed || tok == "":
		return p.fail()
	case p.identifier:
		p.next()
		if p.tok == "(" {
			p.next()
			return p.made(start, &node{op: opCall, name: tok, args: p.list(")")})
		}
		switch strings.ToLower(tok) {
		case "true", "false", "undefined", "error":
			return p.made(start, &node{op: opLiteral})
		}
		return p.made(start, &node{op: opAttr, name: tok})
	case tok == "(":
		p.next()
		n := p.expression(0)
		if p.tok != ")" {
			return p.fail()
		}
		p.next()
		return n
	case tok == "{":
		p.next()
		return p.made(start, &node{op: opOther, args: p.list("}")})
	case tok[0] == '"' || tok[0] >= '0' && tok[0] <= '9' || tok[0] == '.' && len(tok) > 1:
		p.next()
		return p.made(start, &node{op: opLiteral})
	}
	return p.fail()
}
