// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "sync/atomic"

// node is one node of an expression tree. Nodes are immutable once built and
// may be shared between expressions, ads and goroutines.
type node interface{ isNode() }

// literal is a constant.
type literal struct {
	v    Value
	form literalForm
}

// literalForm marks the constants that are not simply their value.
type literalForm uint8

const (
	formPlain literalForm = iota
	// formSpan is relTime("…"): it prints as a duration and evaluates to a
	// real number of seconds.
	formSpan
	// formLocal is absTime("…") without a zone: v is the time read as if in
	// UTC, and the zone is that of the evaluation.
	formLocal
)

// attrRef is a bare name; absolute ones are written with a leading dot.
type attrRef struct {
	name     name
	absolute bool
}

// selection is of.name.
type selection struct {
	of   node
	name name
}

type paren struct{ x node }

type unary struct {
	op op
	x  node
}

type binary struct {
	op   op
	x, y node
}

type ternary struct{ cond, yes, no node }

// call is a function call. An unknown function is legal and evaluates to
// error.
type call struct {
	fn      function
	spelled string
	args    []node
	// pattern is the compiled regular expression of the last constant
	// pattern: a cache that changes no answer.
	pattern atomic.Pointer[compiled]
}

type listNode struct {
	elems []node
	fixed *list // the value, if all elements are plain constants
}

// newList returns a list of elements.
func newList(elems []node) *listNode {
	n := &listNode{elems: elems}
	for _, e := range elems {
		if lit, ok := e.(*literal); !ok || lit.form != formPlain || !lit.v.isScalar() {
			return n
		}
	}
	n.fixed = &list{elems: elems}
	return n
}

// adNode is a nested ad. Its body is never changed.
type adNode struct{ body *Ad }

// bound is an expression that carries its own scope, an element of a list
// value put into another list.
type bound struct {
	x     node
	scope *Ad
}

func (*literal) isNode()   {}
func (*attrRef) isNode()   {}
func (*selection) isNode() {}
func (*paren) isNode()     {}
func (*unary) isNode()     {}
func (*binary) isNode()    {}
func (*ternary) isNode()   {}
func (*call) isNode()      {}
func (*listNode) isNode()  {}
func (*adNode) isNode()    {}
func (*bound) isNode()     {}

// Constants that many expressions share.
var (
	litUndefined = &literal{}
	litError     = &literal{v: ErrorValue()}
	litTrue      = &literal{v: Bool(true)}
	litFalse     = &literal{v: Bool(false)}
)

func newLiteral(v Value) node {
	switch v.kind {
	case KindUndefined:
		return litUndefined
	case KindError:
		return litError
	case KindBoolean:
		if v.bool() {
			return litTrue
		}
		return litFalse
	}
	return &literal{v: v}
}

// op is an operator.
type op uint8

const (
	opNone op = iota
	opLess
	opLessEqual
	opNotEqual
	opEqual
	opGreaterEqual
	opGreater
	opIs
	opIsnt
	opPlus // unary
	opMinus
	opAdd
	opSub
	opMul
	opDiv
	opMod
	opNot
	opOr
	opAnd
	opBitNot
	opBitOr
	opBitXor
	opBitAnd
	opShiftLeft
	opShiftRight
	opShiftRightZero
	opSubscript
	opElvis
)

// opText is how an operator prints, blanks included; is and isnt print as =?=
// and =!= in the old dialect.
var opText = [...]string{
	opLess: " < ", opLessEqual: " <= ", opNotEqual: " != ", opEqual: " == ",
	opGreaterEqual: " >= ", opGreater: " > ", opIs: " is ", opIsnt: " isnt ",
	opPlus: " +", opMinus: " -", opAdd: " + ", opSub: " - ", opMul: " * ",
	opDiv: " / ", opMod: " % ", opNot: " !", opOr: " || ", opAnd: " && ",
	opBitNot: " ~", opBitOr: " | ", opBitXor: " ^ ", opBitAnd: " & ",
	opShiftLeft: " << ", opShiftRight: " >> ", opShiftRightZero: " >>> ",
	opElvis: " ?: ",
}
