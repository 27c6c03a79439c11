// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strconv"
	"strings"
)

// printer prints trees as HTCondor does, to the blank: other programs
// compare and hash what is printed.
type printer struct {
	b       []byte
	dialect Dialect
	// pretty lays lists and ads out over several lines, as unparse() shows
	// them; indent is how far the current one is moved to the right.
	pretty bool
	indent int
	// limit, if set, is how long the text may become: printing ends soon
	// after it.
	limit int
}

// Text prints v in a dialect. Lists and ads show the expressions they hold.
func (v Value) Text(d Dialect) string {
	p := printer{dialect: d}
	p.value(v)
	return string(p.b)
}

// String prints v in the new dialect.
func (v Value) String() string { return v.Text(New) }

func (p *printer) str(s string) { p.b = append(p.b, s...) }

func (p *printer) value(v Value) {
	switch v.kind {
	case KindUndefined:
		p.str("undefined")
	case KindError:
		p.str("error")
	case KindBoolean:
		p.b = strconv.AppendBool(p.b, v.bool())
	case KindInteger:
		p.b = strconv.AppendInt(p.b, v.int(), 10)
	case KindReal:
		p.real(v.real())
	case KindString:
		p.quote(v.str(), '"')
	case KindList:
		p.list(v.list().elems)
	case KindAd:
		p.ad(v.ad())
	case KindAbsTime:
		p.str(`absTime("`)
		p.b = appendAbsTime(p.b, v.int(), int(v.zone))
		p.str(`")`)
	case KindRelTime:
		p.str(`relTime("`)
		p.b = appendRelTime(p.b, v.real())
		p.str(`")`)
	}
}

func (p *printer) real(f float64) {
	switch {
	case f == 0:
		if math.Signbit(f) {
			p.str("-")
		}
		p.str("0.0")
	case math.IsNaN(f):
		p.str(`real("NaN")`)
	case math.IsInf(f, -1):
		p.str(`real("-INF")`)
	case math.IsInf(f, 1):
		p.str(`real("INF")`)
	case p.dialect == New:
		p.b = strconv.AppendFloat(p.b, f, 'E', 15, 64)
	default:
		start := len(p.b)
		p.b = strconv.AppendFloat(p.b, f, 'G', 16, 64)
		for _, c := range p.b[start:] {
			if c == '.' || c == 'E' {
				return
			}
		}
		p.str(".0") // keep it from reading as an integer
	}
}

const octalDigits = "01234567"

// quote prints a string, or a quoted name, without regard to UTF-8: in the
// new dialect every byte that is not printable ASCII is escaped.
func (p *printer) quote(s string, delim byte) {
	p.b = append(p.b, delim)
	p.escape(s, delim)
	p.b = append(p.b, delim)
}

// plainPart returns how many bytes at the start of s print as they are.
func (p *printer) plainPart(s string, delim byte) int {
	if p.dialect == Old {
		if i := strings.IndexByte(s, delim); i >= 0 {
			return i
		}
		return len(s)
	}
	for i := range len(s) {
		if c := s[i]; c == delim || c == '\\' || c < ' ' || c > '~' {
			return i
		}
	}
	return len(s)
}

func (p *printer) escape(s string, delim byte) {
	plain := p.plainPart(s, delim)
	p.b = append(p.b, s[:plain]...)
	for i := plain; i < len(s); i++ {
		c := s[i]
		if c == delim {
			p.b = append(p.b, '\\', c)
			continue
		}
		if p.dialect == New {
			switch {
			case c == '\\':
				p.b = append(p.b, '\\', '\\')
				continue
			case c >= '\a' && c <= '\r':
				p.b = append(p.b, '\\', "abtnvfr"[c-'\a'])
				continue
			case c < ' ' || c > '~':
				p.b = append(p.b, '\\', octalDigits[c>>6], octalDigits[c>>3&7], octalDigits[c&7])
				continue
			}
		}
		p.b = append(p.b, c)
	}
}

// needsQuotes reports whether a name must be quoted to be read back.
func needsQuotes(s string) bool {
	if s == "" || !isAlpha(int(s[0])) && s[0] != '_' {
		return true
	}
	for i := range len(s) {
		if !isAlnum(int(s[i])) && s[i] != '_' {
			return true
		}
	}
	for _, word := range [...]string{"error", "false", "is", "isnt", "parent", "true", "undefined"} {
		if equalNames(s, word) {
			return true
		}
	}
	return false
}

func (p *printer) name(s string) {
	if needsQuotes(s) {
		p.quote(s, '\'')
	} else {
		p.str(s)
	}
}

func (p *printer) list(elems []node) {
	if p.pretty {
		p.prettyList(elems)
		return
	}
	p.str("{ ")
	for i, e := range elems {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		p.node(e)
	}
	p.str(" }")
}

// ad prints an ad in brackets.
func (p *printer) ad(a *Ad) { p.attrs(a.sorted()) }

func (p *printer) attrs(attrs []attr) {
	if p.pretty {
		p.prettyAttrs(attrs)
		return
	}
	p.str("[ ")
	for i, at := range attrs {
		if i > 0 {
			p.str("; ")
		}
		p.name(at.name)
		p.str(" = ")
		p.attrValue(at.v)
	}
	p.str(" ]")
}

// attrValue prints what stands under a name.
func (p *printer) attrValue(v Value) {
	if v.kind == kindExpr {
		p.node(v.expr().n)
	} else if p.limit <= 0 || len(p.b) <= p.limit {
		p.value(v)
	}
}

func (p *printer) node(n node) {
	if p.limit > 0 && len(p.b) > p.limit {
		return
	}
	switch n := n.(type) {
	case *literal:
		if n.form == formSpan {
			p.value(RelTime(n.v.real()))
		} else {
			p.value(n.v)
		}
	case *attrRef:
		if n.absolute {
			p.b = append(p.b, '.')
		}
		p.name(n.name.text)
	case *selection:
		p.node(n.of)
		p.b = append(p.b, '.')
		p.str(n.name.text)
	case *paren:
		p.b = append(p.b, '(')
		p.node(n.x)
		p.b = append(p.b, ')')
	case *unary:
		p.str(opText[n.op])
		p.node(n.x)
	case *binary:
		p.binary(n)
	case *ternary:
		p.node(n.cond)
		p.str(" ? ")
		p.node(n.yes)
		p.str(" : ")
		p.node(n.no)
	case *call:
		p.str(n.spelled)
		p.b = append(p.b, '(')
		for i, arg := range n.args {
			if i > 0 {
				p.b = append(p.b, ',')
			}
			p.node(arg)
		}
		p.b = append(p.b, ')')
	case *listNode:
		p.list(n.elems)
	case *adNode:
		p.ad(n.body)
	case *bound:
		p.node(n.x)
	}
}

func (p *printer) binary(n *binary) {
	p.node(n.x)
	switch {
	case n.op == opSubscript:
		p.b = append(p.b, '[')
		p.node(n.y)
		p.b = append(p.b, ']')
		return
	case n.op == opIs && p.dialect == Old:
		p.str(" =?= ")
	case n.op == opIsnt && p.dialect == Old:
		p.str(" =!= ")
	default:
		p.str(opText[n.op])
	}
	p.node(n.y)
}

// Steps of indentation of the pretty layout.
const (
	adIndent   = 4
	listIndent = 3
)

func (p *printer) newline() {
	p.b = append(p.b, '\n')
	for range p.indent {
		p.b = append(p.b, ' ')
	}
}

func (p *printer) prettyList(elems []node) {
	p.indent += listIndent
	p.newline()
	p.str("{")
	p.indent += listIndent
	for i, e := range elems {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		p.newline()
		p.node(e)
	}
	p.indent -= listIndent
	p.newline()
	p.str("}")
	p.indent -= listIndent
}

func (p *printer) prettyAttrs(attrs []attr) {
	p.indent += adIndent
	p.newline()
	p.str("[")
	p.indent += adIndent
	for i, at := range attrs {
		if i > 0 {
			p.str("; ")
		}
		p.newline()
		p.name(at.name)
		p.str(" = ")
		p.attrValue(at.v)
	}
	p.indent -= adIndent
	p.newline()
	p.str("]")
	p.indent -= adIndent
}
