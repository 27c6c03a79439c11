// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package backtrack

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/dlclark/regexp2/v2/syntax"
)

// asserts are the nodes that ask for a place.
var asserts = map[syntax.NodeType]place{
	syntax.NtBol: atLineStart, syntax.NtEol: atLineEnd,
	syntax.NtBoundary: atWord, syntax.NtNonboundary: atNoWord,
	syntax.NtBeginning: atTextStart, syntax.NtEndZ: atTextEnd, syntax.NtEnd: atVeryEnd,
}

// node emits the instructions of a node of the tree.
func (c *compiler) node(n *syntax.RegexNode) {
	if c.err != nil {
		return
	}
	back := n.Options&syntax.RightToLeft != 0
	if at, ok := asserts[n.T]; ok {
		c.emit(instruction{op: opAssert, at: at})
		return
	}
	switch n.T {
	case syntax.NtEmpty, syntax.NtUpdateBumpalong:
	case syntax.NtNothing:
		c.emit(instruction{op: opFail})
	case syntax.NtOne, syntax.NtNotone, syntax.NtSet:
		c.emit(instruction{op: opSet, back: back, set: c.setOf(n)})
	case syntax.NtMulti:
		c.literal(n, back)
	case syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop,
		syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy,
		syntax.NtOneloopatomic, syntax.NtNotoneloopatomic, syntax.NtSetloopatomic:
		c.limited(n)
		lazy := n.T == syntax.NtOnelazy || n.T == syntax.NtNotonelazy || n.T == syntax.NtSetlazy
		c.emit(instruction{op: opRun, back: back, set: c.setOf(n), lo: int32(n.M), hi: int32(n.N), lazy: lazy, atomic: n.IsAtomicloopFamily()})
	case syntax.NtRef:
		if c.behind[n.M] {
			c.err = errors.New("a reference to a group of the same assertion that looks behind is not supported")
			return
		}
		c.emit(instruction{op: opRef, back: back, x: c.group(n.M), ignore: n.Options&syntax.IgnoreCase != 0})
	case syntax.NtConcatenate, syntax.NtGroup:
		for _, child := range n.Children {
			c.node(child)
		}
	case syntax.NtAlternate:
		c.alternate(n)
	case syntax.NtLoop, syntax.NtLazyloop:
		c.loop(n)
	case syntax.NtCapture:
		c.capture(n)
	case syntax.NtPosLook, syntax.NtNegLook:
		c.look(n)
	case syntax.NtAtomic:
		c.part(instruction{op: opAtomic}, n.Children)
	case syntax.NtBackRefCond:
		test := c.emit(instruction{op: opTaken, x: c.group(n.M)})
		c.choice(n.Children, test)
	case syntax.NtExprCond:
		// A condition that fails goes to y instead of back.
		test := c.part(instruction{op: opLook, cond: true}, n.Children[:1])
		c.choice(n.Children[1:], test)
	default:
		c.err = errors.New("the pattern has a construct that is not supported")
	}
}

// look emits an assertion. What looks behind is read backwards, from its end to
// its begin, and PCRE reads it forwards: where the two would differ it is
// refused.
func (c *compiler) look(n *syntax.RegexNode) {
	behind, repeated := c.behind, c.repeated
	defer func() { c.behind, c.repeated = behind, repeated }()
	c.repeated = 0
	if n.Options&syntax.RightToLeft != 0 {
		c.behind = groupsIn(n, maps.Clone(behind))
	}
	c.part(instruction{op: opLook, negate: n.T == syntax.NtNegLook}, n.Children)
}

// groupsIn adds the groups below n to all, which it makes if there is none.
func groupsIn(n *syntax.RegexNode, all map[int]bool) map[int]bool {
	if all == nil {
		all = make(map[int]bool)
	}
	if n.T == syntax.NtCapture {
		all[n.M] = true
	}
	for _, child := range n.Children {
		groupsIn(child, all)
	}
	return all
}

// limited refuses a repetition of more than PCRE takes.
func (c *compiler) limited(n *syntax.RegexNode) {
	if n.M > maxRepeat || n.N > maxRepeat && n.N != math.MaxInt32 {
		c.err = fmt.Errorf("a repetition of more than %d is not supported", maxRepeat)
	}
}

// group checks the number of a group.
func (c *compiler) group(n int) int32 {
	if n < 0 || n >= c.p.groups {
		c.err = errors.New("the pattern names a group that it does not have")
		return 0
	}
	return int32(n)
}

// literal emits a text. Read backwards, it comes last byte first.
func (c *compiler) literal(n *syntax.RegexNode, back bool) {
	for i := range n.Str {
		r := n.Str[i]
		if back {
			r = n.Str[len(n.Str)-1-i]
		}
		one := *n
		one.T, one.Ch = syntax.NtOne, r
		c.emit(instruction{op: opSet, back: back, set: c.setOf(&one)})
	}
}

// alternate emits branches that are tried in order.
func (c *compiler) alternate(n *syntax.RegexNode) {
	var ends []int32
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			c.node(child)
			break
		}
		split := c.emit(instruction{op: opSplit})
		c.at(split).x = c.here()
		c.node(child)
		ends = append(ends, c.emit(instruction{op: opJump}))
		c.at(split).y = c.here()
	}
	for _, e := range ends {
		c.at(e).x = c.here()
	}
}

// capture emits a group. Where the text is read backwards the group's end
// comes first; opClose sorts the two.
func (c *compiler) capture(n *syntax.RegexNode) {
	if n.N != -1 {
		c.err = errors.New("groups that take others away are not supported")
		return
	}
	if is, ok := c.nodeOfGroup[n.M]; ok && is != n {
		c.err = errors.New("two groups have the same name")
		return
	}
	c.nodeOfGroup[n.M] = n
	if n.Options&syntax.RightToLeft != 0 && c.repeated > 0 {
		c.err = errors.New("a group in a repetition of an assertion that looks behind is not supported")
		return
	}
	g, r := c.group(n.M), c.register()
	c.emit(instruction{op: opMark, x: r})
	for _, child := range n.Children {
		c.node(child)
	}
	c.emit(instruction{op: opClose, x: g, y: r})
}

// part emits children as a program of their own, which ends with opDone.
func (c *compiler) part(i instruction, children []*syntax.RegexNode) int32 {
	head := c.emit(i)
	for _, child := range children {
		c.node(child)
	}
	c.emit(instruction{op: opDone})
	c.at(head).x = c.here()
	return head
}

// choice emits the branch for a condition that holds, and the one to which
// the instruction test goes when it does not.
func (c *compiler) choice(branches []*syntax.RegexNode, test int32) {
	if len(branches) > 0 {
		c.node(branches[0])
	}
	jump := c.emit(instruction{op: opJump})
	c.at(test).y = c.here()
	if len(branches) > 1 {
		c.node(branches[1])
	}
	c.at(jump).x = c.here()
}

// loop emits a repetition: what must be there, written out, and then what may
// be. As in PCRE only a repetition without an end stops at one that takes
// nothing.
func (c *compiler) loop(n *syntax.RegexNode) {
	c.limited(n)
	c.repeated++
	defer func() { c.repeated-- }()
	lazy, endless := n.T == syntax.NtLazyloop, n.N == math.MaxInt32
	must := n.M
	if endless {
		must = max(0, n.M-1)
	}
	for range must {
		c.node(n.Children[0])
		if c.err != nil {
			return
		}
	}
	if endless {
		c.endless(n, lazy)
		return
	}
	var splits []int32
	for range n.N - n.M {
		splits = append(splits, c.split(lazy))
		c.node(n.Children[0])
		if c.err != nil {
			return
		}
	}
	for _, split := range splits {
		c.leave(split, lazy)
	}
}

// endless emits a repetition without an end: once, and then as often as it takes
// something and may be taken again.
func (c *compiler) endless(n *syntax.RegexNode, lazy bool) {
	var first int32
	if n.M == 0 {
		first = c.split(lazy)
	}
	r := c.register()
	head := c.emit(instruction{op: opMark, x: r})
	c.node(n.Children[0])
	moved := c.emit(instruction{op: opMoved, x: r})
	again := c.split(lazy)
	if lazy {
		c.at(again).y = head
	} else {
		c.at(again).x = head
	}
	c.leave(again, lazy)
	c.at(moved).y = c.here()
	if n.M == 0 {
		c.leave(first, lazy)
	}
}

// split emits the choice to take what follows or to leave it out.
func (c *compiler) split(lazy bool) int32 {
	split := c.emit(instruction{op: opSplit})
	if lazy {
		c.at(split).y = c.here()
	} else {
		c.at(split).x = c.here()
	}
	return split
}

// leave lets the choice at split end the repetition here.
func (c *compiler) leave(split int32, lazy bool) {
	if lazy {
		c.at(split).x = c.here()
	} else {
		c.at(split).y = c.here()
	}
}
