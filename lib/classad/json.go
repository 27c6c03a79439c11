// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// In JSON an ad is an object, a list an array, undefined null. What JSON has
// no word for is a string with a mark no other string has: "\/Expr(…)\/",
// where the slashes are escaped.

// JSON prints the ad as JSON on one line, private attributes left out (see
// [IsPrivate]). Strings keep their bytes: the text is only as valid as UTF-8
// as they are.
func (a *Ad) JSON() string { return string(a.AppendJSON(nil)) }

// JSONAll is JSON with private attributes.
func (a *Ad) JSONAll() string {
	p := jsonPrinter{}
	p.attrs(a.sorted())
	return string(p.b)
}

// AppendJSON appends what JSON returns.
func (a *Ad) AppendJSON(b []byte) []byte {
	p := jsonPrinter{b: b}
	p.attrs(withoutPrivate(a.sorted()))
	return p.b
}

// MarshalJSON is JSON for package encoding/json.
func (a *Ad) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil), nil }

// UnmarshalJSON is ParseJSON for package encoding/json.
func (a *Ad) UnmarshalJSON(b []byte) error {
	read, err := ParseJSON(string(b))
	if err != nil {
		return err
	}
	a.layout, a.vals = read.layout, read.vals
	a.shared.Store(false)
	a.forget()
	return nil
}

type jsonPrinter struct{ b []byte }

func (p *jsonPrinter) str(s string) { p.b = append(p.b, s...) }

func (p *jsonPrinter) attrs(attrs []attr) {
	p.str("{")
	for i, at := range attrs {
		if i > 0 {
			p.str(",")
		}
		p.str(`"`)
		p.escape(at.name)
		p.str(`": `)
		p.node(at.node())
	}
	p.str("}")
}

func (p *jsonPrinter) elems(elems []node) {
	p.str("[")
	for i, e := range elems {
		if i > 0 {
			p.str(",")
		}
		p.node(e)
	}
	p.str("]")
}

func (p *jsonPrinter) node(n node) {
	switch n := n.(type) {
	case *literal:
		p.value(n)
	case *listNode:
		p.elems(n.elems)
	case *adNode:
		p.attrs(n.body.sorted())
	default:
		p.expr(n)
	}
}

// expr prints what is an expression to JSON.
func (p *jsonPrinter) expr(n node) {
	text := printer{dialect: New}
	text.node(n)
	p.str(`"\/Expr(`)
	p.escape(string(text.b))
	p.str(`)\/"`)
}

func (p *jsonPrinter) value(n *literal) {
	v := n.v
	switch v.kind {
	case KindUndefined:
		p.str("null")
	case KindString:
		p.str(`"`)
		p.escape(v.str())
		p.str(`"`)
	case KindBoolean, KindInteger:
		p.b = append(p.b, v.Text(New)...)
	case KindReal, KindRelTime:
		if v.kind == KindRelTime && n.form != formSpan || math.IsInf(v.real(), 0) || math.IsNaN(v.real()) {
			p.expr(n)
			return
		}
		p.b = append(p.b, Real(v.real()).Text(Old)...)
	case KindList:
		p.elems(v.list().elems)
	case KindAd:
		p.attrs(v.ad().sorted())
	default:
		p.expr(n)
	}
}

func (p *jsonPrinter) escape(s string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			p.b = append(p.b, '\\', c)
		case c == '\b':
			p.str(`\b`)
		case c == '\f':
			p.str(`\f`)
		case c == '\n':
			p.str(`\n`)
		case c == '\r':
			p.str(`\r`)
		case c == '\t':
			p.str(`\t`)
		case c < ' ':
			p.b = append(p.b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			p.b = append(p.b, c)
		}
	}
}

// ParseJSON reads an ad written as JSON. Like HTCondor it also takes
// comments, commas too many between attributes, adjacent strings as one and
// true and false in any case. The error is a *[SyntaxError].
func ParseJSON(text string) (*Ad, error) {
	p := newParser(text, New)
	p.lex.json = true
	p.room = strings.Count(text, `":`)
	if t := p.peek(); t.kind != tokOpenBrace {
		p.fail(t, "expected {, found "+p.found(t))
		return nil, p.err
	}
	a := p.jsonObject()
	if a == nil {
		return nil, p.err
	}
	if t := p.peek(); t.kind != tokEnd {
		p.fail(t, "expected the end of the text after }, found "+p.found(t))
		return nil, p.err
	}
	return a, nil
}

func (p *parser) jsonValue() node {
	defer p.ascend()
	if !p.descend() {
		return nil
	}
	t := p.peek()
	switch t.kind {
	case tokOpenBrace:
		if a := p.jsonObject(); a != nil {
			return &adNode{body: a}
		}
		return nil
	case tokOpenBox:
		return p.jsonArray()
	case tokUndefined, tokBoolean, tokInteger, tokReal:
		return p.primary()
	case tokString:
		p.take()
		if n := len(t.text) - len(")/"); t.mark && n >= len("/Expr(") &&
			equalNames(t.text[:len("/Expr(")], "/Expr(") && t.text[n:] == ")/" {
			inner := newParser(t.text[len("/Expr("):n], New)
			x := inner.expression(true)
			if x == nil {
				p.fail(t, "not an expression: "+inner.err.Msg)
			}
			return x
		}
		return &literal{v: String(t.text)}
	}
	p.fail(t, "expected a value, found "+p.found(t))
	return nil
}

func (p *parser) jsonObject() *Ad {
	p.take()
	a := p.newAd()
	leading := false
	for p.peek().kind != tokCloseBrace || leading {
		t := p.peek()
		if t.kind == tokComma {
			p.take()
			leading = true
			continue
		}
		leading = false
		if t.kind != tokString || t.text == "" {
			p.fail(t, "expected the name of an attribute in quotes, found "+p.found(t))
			return nil
		}
		attr := p.take().text
		if t = p.peek(); t.kind != tokColon {
			p.fail(t, "expected : after the name, found "+p.found(t))
			return nil
		}
		p.take()
		x := p.jsonValue()
		if x == nil {
			return nil
		}
		a.setNode(attr, x)
		t = p.peek()
		if t.kind != tokComma && t.kind != tokCloseBrace {
			p.fail(t, "expected , or } after the value of "+attr+", found "+p.found(t))
			return nil
		}
		for p.peek().kind == tokComma {
			p.take()
		}
	}
	p.take()
	return a
}

func (p *parser) jsonArray() node {
	p.take()
	var elems []node
	for k := p.peek().kind; k != tokCloseBox; {
		x := p.jsonValue()
		if x == nil {
			return nil
		}
		elems = append(elems, x)
		t := p.peek()
		k = t.kind
		switch k {
		case tokComma:
			p.take()
		case tokCloseBox:
		default:
			p.fail(t, "expected , or ] in a list, found "+p.found(t))
			return nil
		}
	}
	p.take()
	return newList(elems)
}

// unescapeJSON replaces the escapes of a JSON string. ok is false for a \u
// without four digits or for a NUL.
func unescapeJSON(s []byte) (text string, ok bool) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i == len(s)-1 {
			out = append(out, c)
			continue
		}
		i++
		switch c = s[i]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, good := hexRune(s[i+1:])
			if !good || r == 0 {
				return "", false
			}
			i += 4
			if utf16.IsSurrogate(r) && i+2 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
				if low, good := hexRune(s[i+3:]); good {
					if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
						r = whole
						i += 6
					}
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		}
		out = append(out, c)
	}
	return string(out), true
}

func hexRune(s []byte) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range s[:4] {
		if !isHex(int(c)) {
			return 0, false
		}
		d := rune(c - '0')
		if c > '9' {
			d = rune(c|0x20-'a') + 10
		}
		r = r<<4 | d
	}
	return r, true
}
