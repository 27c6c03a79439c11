// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strings"
)

// Limits that bound what a text can make of the reader.
const (
	// maxParseDepth is how deep the reader descends: three levels for each
	// parenthesis, list, ad or argument, one for each unary operator.
	maxParseDepth = 500
	// maxHeight bounds the height of a tree that grows sideways, such as
	// 1+1+1+…, so that walking it cannot exhaust the stack. Evaluation gives
	// up far below it.
	maxHeight = 100_000
)

// maxRoom is for how many attributes room is made before they are read.
const maxRoom = 4096

// parser reads one text by recursive descent. A method that reads a part of
// an expression returns nil after it has set err.
type parser struct {
	lex    lexer
	tok    token // lookahead, valid if peeked
	peeked bool
	depth  int
	room   int // attributes to expect in the ad that comes next
	links  int // nodes that made the tree higher without descending
	err    *SyntaxError
}

func newParser(text string, d Dialect) *parser {
	return &parser{lex: lexer{text: text, old: d == Old}}
}

func (p *parser) peek() *token {
	if !p.peeked {
		p.tok = p.lex.next()
		p.peeked = true
	}
	return &p.tok
}

func (p *parser) take() *token {
	t := p.peek()
	p.peeked = false
	return t
}

// fail records the first mistake. A bad token explains itself better than
// what was expected in its place.
func (p *parser) fail(t *token, msg string) {
	if p.err != nil {
		return
	}
	if t.kind == tokBad {
		msg = t.text
	}
	p.err = newSyntaxError(p.lex.text, t.start, msg)
}

// descend counts a level; every caller must ascend.
func (p *parser) descend() bool {
	p.depth++
	if p.depth > maxParseDepth {
		p.fail(p.peek(), "nested too deep: more than 500 levels")
		return false
	}
	return true
}

func (p *parser) ascend() { p.depth-- }

// link counts a node that makes the tree higher without descending.
func (p *parser) link() bool {
	p.links++
	if p.links > maxHeight {
		p.fail(p.peek(), "expression too long")
		return false
	}
	return true
}

// found describes a token for a message.
func (p *parser) found(t *token) string {
	if t.kind == tokEnd {
		return "end of the expression"
	}
	end := p.lex.pos
	if t != &p.tok || end <= t.start {
		end = min(t.start+12, len(p.lex.text))
	}
	s := strings.TrimSpace(p.lex.text[t.start:end])
	if len(s) > 24 {
		s = s[:24] + "..."
	}
	return `"` + s + `"`
}

// expression reads a whole expression. With full it must be followed by the
// end of the text, except behind a conditional: HTCondor does not look
// there, and texts that rely on it exist.
func (p *parser) expression(full bool) node {
	defer p.ascend()
	if !p.descend() {
		return nil
	}
	cond := p.binary(0)
	if cond == nil {
		return nil
	}
	if p.peek().kind == tokQuestion {
		p.take()
		yes := p.expression(false)
		if yes == nil {
			return nil
		}
		if t := p.peek(); t.kind != tokColon {
			p.fail(t, "expected : of the conditional, found "+p.found(t))
			return nil
		}
		p.take()
		no := p.expression(false)
		if no == nil {
			return nil
		}
		return &ternary{cond: cond, yes: yes, no: no}
	}
	if full {
		if t := p.peek(); t.kind != tokEnd {
			p.fail(t, "expected an operator or the end of the expression, found "+p.found(t))
			return nil
		}
	}
	return cond
}

// binaryOp returns the operator a token stands for between two operands and
// how tight it binds, 0 for none.
func binaryOp(k tokenKind) (op, int) {
	switch k {
	case tokOr:
		return opOr, 1
	case tokAnd:
		return opAnd, 2
	case tokBar:
		return opBitOr, 3
	case tokCaret:
		return opBitXor, 4
	case tokAmpersand:
		return opBitAnd, 5
	case tokEqual:
		return opEqual, 6
	case tokNotEqual:
		return opNotEqual, 6
	case tokIs:
		return opIs, 6
	case tokIsnt:
		return opIsnt, 6
	case tokLess:
		return opLess, 7
	case tokLessEqual:
		return opLessEqual, 7
	case tokGreater:
		return opGreater, 7
	case tokGreaterEqual:
		return opGreaterEqual, 7
	case tokShiftLeft:
		return opShiftLeft, 8
	case tokShiftRight:
		return opShiftRight, 8
	case tokShiftRightZero:
		return opShiftRightZero, 8
	case tokPlus:
		return opAdd, 9
	case tokMinus:
		return opSub, 9
	case tokStar:
		return opMul, 10
	case tokSlash:
		return opDiv, 10
	case tokPercent:
		return opMod, 10
	}
	return opNone, 0
}

// binary reads operands joined by operators that bind tighter than above. All
// of them associate to the left.
func (p *parser) binary(above int) node {
	x := p.unary()
	for x != nil {
		o, level := binaryOp(p.peek().kind)
		if level <= above {
			return x
		}
		p.take()
		if !p.link() {
			return nil
		}
		y := p.binary(level)
		if y == nil {
			return nil
		}
		x = &binary{op: o, x: x, y: y}
	}
	return nil
}

func (p *parser) unary() node {
	defer p.ascend()
	if !p.descend() {
		return nil
	}
	var o op
	switch p.peek().kind {
	case tokMinus:
		o = opMinus
	case tokPlus:
		o = opPlus
	case tokTilde:
		o = opBitNot
	case tokNot:
		o = opNot
	default:
		return p.postfix()
	}
	p.take()
	x := p.unary()
	if x == nil {
		return nil
	}
	return &unary{op: o, x: x}
}

// postfix reads an operand with what hangs behind it: .name, [index] and the
// operator ?:, whose right side is again only such an operand.
func (p *parser) postfix() node {
	defer p.ascend()
	if !p.descend() {
		return nil
	}
	x := p.primary()
	for x != nil {
		switch p.peek().kind {
		case tokOpenBox:
			p.take()
			index := p.expression(false)
			if index == nil {
				return nil
			}
			if t := p.peek(); t.kind != tokCloseBox {
				p.fail(t, "expected ] after the index, found "+p.found(t))
				return nil
			}
			p.take()
			x = &binary{op: opSubscript, x: x, y: index}
		case tokElvis:
			p.take()
			y := p.postfix()
			if y == nil {
				return nil
			}
			x = &binary{op: opElvis, x: x, y: y}
		case tokDot:
			p.take()
			t := p.peek()
			if t.kind != tokIdentifier {
				p.fail(t, "expected a name after the dot, found "+p.found(t))
				return nil
			}
			p.take()
			x = &selection{of: x, name: newName(t.text)}
		default:
			return x
		}
		if !p.link() {
			return nil
		}
	}
	return nil
}

func (p *parser) primary() node {
	t := p.peek()
	switch t.kind {
	case tokIdentifier:
		id := *p.take()
		if p.peek().kind == tokOpenParen {
			return p.call(id)
		}
		return &attrRef{name: newName(id.text)}
	case tokDot:
		p.take()
		t = p.peek()
		if t.kind != tokIdentifier {
			p.fail(t, "expected a name after the dot, found "+p.found(t))
			return nil
		}
		p.take()
		return &attrRef{name: newName(t.text), absolute: true}
	case tokOpenParen:
		p.take()
		x := p.expression(false)
		if x == nil {
			return nil
		}
		if t = p.peek(); t.kind != tokCloseParen {
			p.fail(t, "expected ), found "+p.found(t))
			return nil
		}
		p.take()
		return &paren{x: x}
	case tokOpenBox:
		if ad := p.ad(); ad != nil {
			return &adNode{body: ad}
		}
		return nil
	case tokOpenBrace:
		return p.list()
	case tokUndefined:
		p.take()
		return litUndefined
	case tokError:
		p.take()
		return litError
	case tokBoolean:
		p.take()
		return newLiteral(Bool(t.mark))
	case tokInteger:
		p.take()
		return &literal{v: Int(int64(t.num))}
	case tokReal:
		p.take()
		return &literal{v: Real(math.Float64frombits(t.num))}
	case tokString:
		p.take()
		return &literal{v: String(t.text)}
	}
	p.fail(t, "expected a value, a name or (, found "+p.found(t))
	return nil
}

// element reads an expression that stands beside others of its kind: their
// heights do not add up.
func (p *parser) element() node {
	links := p.links
	x := p.expression(false)
	p.links = links
	return x
}

// call reads the arguments of a function. Semicolons may separate them as
// well as commas. A time written as a constant is turned into one at once,
// and one that cannot be read is a mistake of the text.
func (p *parser) call(id token) node {
	p.take()
	var args []node
	for k := p.peek().kind; k != tokCloseParen; {
		arg := p.element()
		if arg == nil {
			return nil
		}
		args = append(args, arg)
		t := p.peek()
		k = t.kind
		switch k {
		case tokComma, tokSemicolon:
			p.take()
		case tokCloseParen:
		default:
			p.fail(t, "expected , or ) in the arguments of "+id.text+", found "+p.found(t))
			return nil
		}
	}
	p.take()
	if len(args) == 1 {
		if lit, ok := args[0].(*literal); ok && lit.v.kind == KindString {
			switch {
			case equalNames(id.text, "absTime"):
				d, ok := parseDate(lit.v.str())
				if !ok {
					p.fail(&id, "not a date: "+quoteForMessage(lit.v.str()))
					return nil
				}
				if d.zoned {
					return &literal{v: d.in(nil)}
				}
				return &literal{v: d.in(nil), form: formLocal}
			case equalNames(id.text, "relTime"):
				sec, ok := parseRelTime(lit.v.str())
				if !ok {
					p.fail(&id, "not a duration: "+quoteForMessage(lit.v.str()))
					return nil
				}
				return &literal{v: RelTime(sec), form: formSpan}
			}
		}
	}
	return newCall(id.text, args)
}

func quoteForMessage(s string) string {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return `"` + s + `"`
}

// list reads {a, b}. A comma must be followed by another element.
func (p *parser) list() node {
	p.take()
	var elems []node
	for k := p.peek().kind; k != tokCloseBrace; {
		x := p.element()
		if x == nil {
			return nil
		}
		elems = append(elems, x)
		t := p.peek()
		k = t.kind
		switch k {
		case tokComma:
			p.take()
		case tokCloseBrace:
		default:
			p.fail(t, "expected , or } in a list, found "+p.found(t))
			return nil
		}
	}
	p.take()
	return newList(elems)
}

// newAd returns an empty ad with the room asked for.
func (p *parser) newAd() *Ad {
	a := NewAd()
	if n := min(p.room, maxRoom); n > linearAttrs {
		a.layout = newLayout(n)
		a.vals = make([]Value, 0, n)
	}
	p.room = 0
	return a
}

// ad reads [name = expression; …]. Extra semicolons are allowed once there is
// an attribute.
func (p *parser) ad() *Ad {
	p.take()
	ad := p.newAd()
	leading := false // a semicolon stood where an attribute was due
	for p.peek().kind != tokCloseBox || leading {
		t := p.peek()
		if t.kind == tokSemicolon {
			p.take()
			leading = true
			continue
		}
		leading = false
		if t.kind != tokIdentifier || t.text == "" {
			p.fail(t, "expected the name of an attribute or ], found "+p.found(t))
			return nil
		}
		attr := p.take().text
		if t = p.peek(); t.kind != tokAssign {
			p.fail(t, "expected = after "+attr+", found "+p.found(t))
			return nil
		}
		p.take()
		x := p.element()
		if x == nil {
			return nil
		}
		ad.setNode(attr, x)
		t = p.peek()
		if t.kind != tokSemicolon && t.kind != tokCloseBox {
			p.fail(t, "expected ; or ] after the value of "+attr+", found "+p.found(t))
			return nil
		}
		for p.peek().kind == tokSemicolon {
			p.take()
		}
	}
	p.take()
	return ad
}
