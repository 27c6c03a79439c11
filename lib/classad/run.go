// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// run evaluates compiled code. Every node looks at the steps that are left: an
// attribute on the way may be compiled too, so nothing else would.
func (ev *evaluator) run(c *code) Value {
	ev.steps -= int(c.steps)
	if ev.steps < 0 {
		return ev.fail()
	}
	switch c.op {
	case codeConst:
		return c.v
	case codeName:
		return ev.runName(c)
	case codeMy:
		return ev.runMy(c)
	case codeTarget:
		return ev.runTarget(c)
	case codeChain:
		return ev.runChain(c)
	case codeBinary:
		args := c.args
		_ = args[1]
		x := ev.run(&args[0])
		if y := &args[1]; y.op == codeConst { // most often
			ev.steps -= int(y.steps)
			return ev.operate(c.bin, x, y.v)
		}
		return ev.operate(c.bin, x, ev.run(&args[1]))
	case codeElvis:
		if x := ev.run(&c.args[0]); x.kind != KindUndefined {
			return x
		}
		return ev.run(&c.args[1])
	case codeUnary:
		return applyUnary(c.bin, ev.run(&c.args[0]))
	case codeChoice:
		return ev.runChoice(c)
	case codeKind:
		return Bool(ev.run(&c.args[0]).kind == c.kind)
	case codeCall:
		ev.depth -= int(c.level)
		ev.pending = c
		v := ev.call(c.tree.(*call))
		ev.depth += int(c.level)
		return v
	case codeSplitItem:
		return ev.splitItem(ev.run(&c.args[0]), c.v.int())
	case codeSubscript:
		x, y := ev.run(&c.args[0]), ev.run(&c.args[1])
		ev.depth -= int(c.level) + 1
		v := ev.subscript(x, y)
		ev.depth += int(c.level) + 1
		return v
	}
	return ev.runTree(c)
}

// runTree evaluates what is not compiled.
func (ev *evaluator) runTree(c *code) Value {
	ev.depth -= int(c.level)
	v := ev.eval(c.tree)
	ev.depth += int(c.level)
	return v
}

// operate is applyBinary with the usual cases first.
func (ev *evaluator) operate(o op, x, y Value) Value {
	if x.kind == KindInteger && y.kind == KindInteger {
		switch o {
		case opGreaterEqual:
			return Bool(x.int() >= y.int())
		case opGreater:
			return Bool(x.int() > y.int())
		case opLessEqual:
			return Bool(x.int() <= y.int())
		case opLess:
			return Bool(x.int() < y.int())
		case opEqual, opIs:
			return Bool(x.num == y.num)
		case opSub:
			return Int(x.int() - y.int())
		case opAdd:
			return Int(x.int() + y.int())
		}
	} else if x.kind == KindString && y.kind == KindString {
		ev.spend(int(min(x.num, y.num)))
		switch o {
		case opEqual:
			return Bool(equalNames(x.str(), y.str()))
		case opNotEqual:
			return Bool(!equalNames(x.str(), y.str()))
		}
	}
	return applyBinary(o, x, y)
}

func (ev *evaluator) runChain(c *code) Value {
	args := c.args
	acc := ev.run(&args[0])
	decides := c.bin == opOr
	for i := 1; i < len(args); i++ {
		if b, ok := acc.truth(); ok {
			if b == decides {
				return Bool(b)
			}
		} else if acc.kind == KindError {
			return acc
		}
		y := ev.run(&args[i])
		if acc.kind == KindBoolean && y.kind == KindBoolean {
			acc = y // acc did not decide
			continue
		}
		acc = logical(c.bin, acc, y)
	}
	return acc
}

func (ev *evaluator) runChoice(c *code) Value {
	cond := ev.run(&c.args[0])
	b, ok := cond.truth()
	switch {
	case ok && b:
		return ev.run(&c.args[1])
	case ok:
		return ev.run(&c.args[2])
	case cond.kind == KindUndefined && !ev.failed:
		return cond
	}
	return ErrorValue()
}

// plain returns the scope of names if it is the usual one: one of the two
// ads, not nested in another unless there is a match.
func (ev *evaluator) plain() *Ad {
	cur := ev.cur
	if cur == nil || ev.context != nil || cur != ev.left && cur != ev.right || ev.right == nil && cur.outer != nil {
		return nil
	}
	return cur
}

// look is a.lookup, remembered from k on.
func (ev *evaluator) look(c *code, k int, a *Ad) *Value {
	if p := c.seen.find(k, a.layout, c.name, ev.steps); p >= 0 {
		return &a.vals[p]
	}
	if a = a.parent; a == nil {
		return nil
	}
	if p := c.seen.find(k+1, a.layout, c.name, ev.steps); p >= 0 {
		return &a.vals[p]
	}
	return a.parent.lookup(c.name.text, c.name.hash)
}

// runName looks a name up in the ad it stands in, then in the other one.
func (ev *evaluator) runName(c *code) Value {
	in := ev.plain()
	if in == nil {
		return ev.runTree(c)
	}
	at := c.seen.quick(in)
	if at != nil && at.kind != kindExpr {
		ev.steps--
		return *at
	}
	if at == nil {
		at = ev.look(c, 0, in)
	}
	if at == nil {
		if ev.right == nil {
			return Undefined()
		}
		if in == ev.left {
			in = ev.right
		} else {
			in = ev.left
		}
		if at = ev.look(c, 2, in); at == nil {
			return Undefined()
		}
	}
	return ev.fetch(at, in, c)
}

func (ev *evaluator) runMy(c *code) Value {
	in := ev.plain()
	if in == nil || in.isSpecial() {
		return ev.runTree(c)
	}
	at := c.seen.quick(in)
	if at == nil {
		if at = ev.look(c, 0, in); at == nil {
			return Undefined()
		}
	}
	return ev.fetch(at, in, c)
}

func (ev *evaluator) runTarget(c *code) Value {
	in := ev.plain()
	if in == nil || in.isSpecial() {
		return ev.runTree(c)
	}
	if ev.right == nil {
		return Undefined()
	}
	if in == ev.left {
		in = ev.right
	} else {
		in = ev.left
	}
	at := c.seen.quick(in)
	if at == nil {
		if at = ev.look(c, 0, in); at == nil {
			return Undefined()
		}
	}
	return ev.fetch(at, in, c)
}

// fetch returns the value of an attribute that c refers to.
func (ev *evaluator) fetch(at *Value, in *Ad, c *code) Value {
	ev.steps--
	if at.kind != kindExpr {
		return *at
	}
	ev.depth -= int(c.level)
	v := ev.attribute(at, in)
	ev.depth += int(c.level)
	return v
}
