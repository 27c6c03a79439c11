// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "sync/atomic"

// An expression that is evaluated a second time is compiled: parentheses and
// constant parts are gone, MY.x and TARGET.x are one step, chains of && and
// || are one node, and how deep each part stands is known, so that nothing is
// counted on the way. Whatever is not compiled, and every evaluation that is
// watched or close to a limit, goes through the tree (eval.go), which is the
// definition of the language; code gives the same answers with the same levels
// and about the same steps used up.

// codeOp is what a code node does.
type codeOp uint8

const (
	codeTree      codeOp = iota // evaluates the tree
	codeConst                   // v
	codeName                    // a bare name
	codeMy                      // MY.name
	codeTarget                  // TARGET.name
	codeChain                   // args joined by && or ||
	codeBinary                  // x op y, strict or is/isnt
	codeElvis                   // x ?: y
	codeUnary                   // op x
	codeChoice                  // args[0] ? args[1] : args[2]
	codeKind                    // isX(args[0])
	codeCall                    // any other function
	codeSubscript               // x[y]
	codeSplitItem               // split(args[0])[v]
)

// code is one node of a compiled expression. It is never changed.
type code struct {
	op    codeOp
	bin   op
	kind  Kind  // of codeKind
	steps int32 // what it uses up, parts not included
	level int32 // operators under way around it
	need  int32 // of a root: levels that must be left to run it
	args  []code
	v     Value
	name  *name
	seen  *sightings // of the names
	tree  node
}

// sightings are where a name of an expression was found before, in the two
// uppermost layers of the ad asked first and of the other one: ads of one
// layout have it in the same place. It is a cache that changes no answer.
type sightings [4]atomic.Pointer[sighting]

// sighting says where a layout has a name, -1 for nowhere, as long as it has
// n names.
type sighting struct {
	l   *layout
	n   int
	pos int
}

// quick returns what stands under the name in the uppermost layer of an ad if
// it is known where, else nil.
func (s *sightings) quick(a *Ad) *Value {
	at := s[0].Load()
	if at == nil || at.l != a.layout || at.pos < 0 {
		return nil // names are never taken out of a layout, so a place stays right
	}
	return &a.vals[at.pos]
}

// find is l.find, remembered at k. When many layouts take turns, only now and
// then one is remembered.
func (s *sightings) find(k int, l *layout, nm *name, turn int) int {
	at := s[k].Load()
	if at != nil && at.l == l && l != nil && at.n == len(l.names) {
		return at.pos
	}
	pos := l.find(nm.text, nm.hash)
	if l != nil && (at == nil || turn&63 == 0) {
		s[k].Store(&sighting{l, len(l.names), pos})
	}
	return pos
}

// warm stands in the place of the code of an expression that was evaluated
// once.
var warm = &code{}

// expr evaluates an expression at the level the evaluation has reached.
func (ev *evaluator) expr(e *Expr) Value {
	if ev.env.OnRead != nil {
		return ev.eval(e.n)
	}
	c := e.code.Load()
	switch c {
	case nil:
		e.code.CompareAndSwap(nil, warm)
		return ev.eval(e.n)
	case warm:
		c = compileExpr(e.n)
		e.code.Store(c)
	}
	if ev.depth < int(c.need) || ev.failed {
		return ev.eval(e.n)
	}
	return ev.run(c)
}

// maxCodeLevel is how deep a tree is compiled; what stands deeper stays a
// tree.
const maxCodeLevel = 200

func compileExpr(n node) *code {
	c := new(code)
	var need int32
	compile(c, n, 0, &need)
	c.need = need
	return c
}

// compile fills c from n, around which level operators are under way, and
// raises need to what n wants.
func compile(c *code, n node, level int32, need *int32) {
	*c = code{op: codeTree, level: level, tree: n}
	if level > maxCodeLevel {
		return
	}
	switch n := n.(type) {
	case *literal:
		if n.form == formPlain && n.v.isScalar() {
			c.op, c.v, c.steps = codeConst, n.v, 1
		}
	case *attrRef:
		if !n.absolute && n.name.role == roleNone {
			c.op, c.name, c.seen, c.steps = codeName, &n.name, new(sightings), 1
			*need = max(*need, level+1)
		}
	case *selection:
		compileSelection(c, n, need)
	case *paren:
		*need = max(*need, level+1)
		compile(c, n.x, level+1, need)
		if c.op == codeTree {
			*c = code{op: codeTree, level: level, tree: n}
		} else {
			c.steps++
		}
	case *unary:
		*need = max(*need, level+1)
		c.op, c.bin, c.steps = codeUnary, n.op, 1
		compileParts(c, level+1, need, n.x)
		if x := &c.args[0]; x.op == codeConst {
			fold(c, applyUnary(n.op, x.v))
		}
	case *binary:
		compileBinary(c, n, need)
	case *ternary:
		*need = max(*need, level+1)
		c.op, c.steps = codeChoice, 1
		compileParts(c, level+1, need, n.cond, n.yes, n.no)
	case *call:
		compileCall(c, n, need)
	}
}

func compileParts(c *code, level int32, need *int32, parts ...node) {
	c.args = make([]code, len(parts))
	for i, n := range parts {
		compile(&c.args[i], n, level, need)
	}
}

// fold makes c the constant v, which costs what computing it would.
func fold(c *code, v Value) {
	for i := range c.args {
		c.steps += c.args[i].steps
	}
	c.op, c.v, c.args = codeConst, v, nil
}

// compileSelection knows MY.x and TARGET.x.
func compileSelection(c *code, n *selection, need *int32) {
	of, ok := n.of.(*attrRef)
	if !ok || of.absolute || n.name.role != roleNone {
		return
	}
	switch of.name.role {
	case roleMy:
		c.op = codeMy
	case roleTarget:
		c.op = codeTarget
	default:
		return
	}
	*need = max(*need, c.level+2)
	c.name, c.seen, c.steps = &n.name, new(sightings), 2
}

func compileBinary(c *code, n *binary, need *int32) {
	if n.op == opSubscript {
		compileSubscript(c, n, need)
		return
	}
	if n.op == opAnd || n.op == opOr {
		compileChain(c, n, need)
		return
	}
	*need = max(*need, c.level+1)
	c.op, c.bin, c.steps = codeBinary, n.op, 1
	compileParts(c, c.level+1, need, n.x, n.y)
	if n.op == opElvis {
		c.op = codeElvis
		return
	}
	if x, y := &c.args[0], &c.args[1]; x.op == codeConst && y.op == codeConst {
		fold(c, applyBinary(n.op, x.v, y.v))
	}
}

func compileSubscript(c *code, n *binary, need *int32) {
	*need = max(*need, c.level+2)
	c.steps = 1
	if split, ok := n.x.(*call); ok && split.fn == fnSplit && len(split.args) == 1 {
		i, ok := n.y.(*literal)
		if ok && i.v.kind == KindInteger && i.v.int() >= 0 && i.v.int() < maxElems {
			c.op, c.v, c.steps = codeSplitItem, i.v, 4
			compileParts(c, c.level+1, need, split.args[0])
			return
		}
	}
	c.op = codeSubscript
	compileParts(c, c.level+1, need, n.x, n.y)
}

// compileChain makes one node of a && b && c, which is ((a && b) && c).
func compileChain(c *code, n *binary, need *int32) {
	c.op, c.bin = codeChain, n.op
	links := int32(1)
	first := n
	for {
		x, ok := first.x.(*binary)
		if !ok || x.op != n.op || c.level+links >= maxCodeLevel {
			break
		}
		first = x
		links++
	}
	c.steps = links
	c.args = make([]code, links+1)
	*need = max(*need, c.level+links)
	level := c.level + 1
	for i := links; i > 0; i-- {
		compile(&c.args[i], n.y, level, need)
		if i == 1 {
			compile(&c.args[0], n.x, level, need)
			return
		}
		n = n.x.(*binary)
		level++
	}
}

func compileCall(c *code, n *call, need *int32) {
	if n.fn == fnUnknown {
		return
	}
	c.steps = 1
	switch {
	case n.fn == fnIfThenElse && len(n.args) == 3:
		c.op = codeChoice
	case n.fn <= fnIsRelTime && len(n.args) == 1:
		c.op, c.kind = codeKind, kindOf[n.fn]
	default:
		c.op = codeCall
	}
	compileParts(c, c.level, need, n.args...)
}
