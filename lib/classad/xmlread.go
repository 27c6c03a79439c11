// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"strconv"
	"strings"
)

// ParseXML reads an ad in the XML notation of ClassAds, an element <c>; a
// header, <classads> around it and comments are passed over. Unlike the
// original it is strict: an element that is not closed or not known is a
// mistake, not something to guess at. The error is a *[SyntaxError].
func ParseXML(text string) (*Ad, error) {
	x := xmlReader{text: text}
	for {
		t := x.tag()
		switch {
		case x.err != nil:
			return nil, x.err
		case t.name == "classads" && !t.end:
			continue
		case t.name != "c" || t.end:
			x.fail(t.start, "expected <c>, found <"+t.name+">")
			return nil, x.err
		}
		a := x.ad(t)
		for x.err == nil && x.skipSpace() {
			if t := x.tag(); t.name != "classads" || !t.end {
				x.fail(t.start, "expected the end of the text after </c>")
			}
		}
		if x.err != nil {
			return nil, x.err
		}
		return a, nil
	}
}

// xmlReader reads one text. Methods return what they can after a mistake,
// which is in err.
type xmlReader struct {
	text  string
	pos   int
	depth int
	err   *SyntaxError
}

// xmlTag is one tag: <name>, </name> (end) or <name/> (empty).
type xmlTag struct {
	name       string
	attr       string // the value of its only attribute, n or v
	end, empty bool
	start      int
}

func (x *xmlReader) fail(at int, msg string) {
	if x.err == nil {
		x.err = newSyntaxError(x.text, at, msg)
	}
}

// skipSpace passes blanks and reports whether there is more text.
func (x *xmlReader) skipSpace() bool {
	for x.pos < len(x.text) && isSpace(int(x.text[x.pos])) {
		x.pos++
	}
	return x.pos < len(x.text)
}

// tag reads the next tag, passing headers and comments.
func (x *xmlReader) tag() (t xmlTag) {
	for {
		x.skipSpace()
		rest := x.text[x.pos:]
		t.start = x.pos
		close := ">"
		switch {
		case !strings.HasPrefix(rest, "<"):
			x.fail(x.pos, "expected a tag")
			return t
		case strings.HasPrefix(rest, "<!--"):
			close = "-->"
		}
		end := strings.Index(rest, close)
		if end < 0 {
			x.fail(x.pos, "tag is not closed: expected "+close)
			return t
		}
		x.pos += end + len(close)
		if rest[1] != '!' && rest[1] != '?' {
			x.words(&t, rest[1:end])
			return t
		}
	}
}

// words takes a tag apart.
func (x *xmlReader) words(t *xmlTag, s string) {
	s, t.empty = strings.CutSuffix(s, "/")
	s, t.end = strings.CutPrefix(s, "/")
	name, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	t.name = strings.TrimSpace(name)
	_, value, ok := strings.Cut(rest, "=")
	if !ok {
		return
	}
	value = strings.TrimSpace(value)
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		x.fail(t.start, `expected a value in quotes`)
		return
	}
	t.attr = x.plainText(value[1:len(value)-1], t.start)
}

// closed reads the end tag of t.
func (x *xmlReader) closed(t xmlTag) {
	if t.empty {
		return
	}
	if e := x.tag(); x.err == nil && (e.name != t.name || !e.end) {
		x.fail(e.start, "expected </"+t.name+">, found <"+e.name+">")
	}
}

// content reads the text up to the end tag of t.
func (x *xmlReader) content(t xmlTag) string {
	if t.empty {
		return ""
	}
	end := strings.IndexByte(x.text[x.pos:], '<')
	if end < 0 {
		x.fail(t.start, "<"+t.name+"> is not closed")
		return ""
	}
	s := x.text[x.pos : x.pos+end]
	x.pos += end
	x.closed(t)
	return unescapeXML.Replace(s)
}

var unescapeXML = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")

// plainText undoes the escapes of XML and those of strings.
func (x *xmlReader) plainText(s string, at int) string {
	text, ok := unescape([]byte(unescapeXML.Replace(s)))
	if !ok {
		x.fail(at, `text with \0: a string cannot hold a NUL byte`)
	}
	return text
}

// ad reads what stands between <c> and </c>.
func (x *xmlReader) ad(t xmlTag) *Ad {
	a := NewAd()
	for !t.empty && x.err == nil {
		at := x.tag()
		switch {
		case x.err != nil:
		case at.name == "c" && at.end:
			return a
		case at.name != "a" || at.end || at.empty || at.attr == "":
			x.fail(at.start, `expected <a n="name"> or </c>, found <`+at.name+">")
		default:
			n := x.value(x.tag())
			x.closed(at)
			if x.err == nil {
				a.setNode(at.attr, n)
			}
		}
	}
	return a
}

// value reads the element that t begins.
func (x *xmlReader) value(t xmlTag) node {
	x.depth++
	defer func() { x.depth-- }()
	switch {
	case x.err != nil:
		return litError
	case x.depth > maxParseDepth/3:
		x.fail(t.start, "nested too deep")
		return litError
	case t.end:
		x.fail(t.start, "expected a value, found </"+t.name+">")
		return litError
	}
	switch t.name {
	case "c":
		return &adNode{body: x.ad(t)}
	case "l":
		return x.list(t)
	case "b":
		x.closed(t)
		return newLiteral(Bool(t.attr == "t" || t.attr == "T"))
	case "un":
		x.closed(t)
		return litUndefined
	case "er":
		x.closed(t)
		return litError
	case "s":
		return &literal{v: String(x.plainText(x.content(t), t.start))}
	case "e":
		return x.expr(t)
	}
	return x.scalar(t, strings.TrimSpace(x.content(t)))
}

func (x *xmlReader) list(t xmlTag) node {
	var elems []node
	for !t.empty && x.err == nil {
		e := x.tag()
		if e.name == "l" && e.end {
			break
		}
		elems = append(elems, x.value(e))
	}
	return newList(elems)
}

func (x *xmlReader) expr(t xmlTag) node {
	p := newParser(x.content(t), New)
	n := p.expression(true)
	if n == nil {
		x.fail(t.start, "not an expression: "+p.err.Msg)
		return litError
	}
	return n
}

// scalar reads numbers and times. A number that is none is error, as in the
// original.
func (x *xmlReader) scalar(t xmlTag, s string) node {
	switch t.name {
	case "i":
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return &literal{v: Int(i)}
		}
		return litError
	case "r":
		if f, ok := parseReal(s); ok {
			return &literal{v: Real(f)}
		}
		return litError
	case "at":
		if d, ok := parseDate(s); ok {
			return &literal{v: d.in(nil)}
		}
		x.fail(t.start, "not a date: "+quoteForMessage(s))
	case "rt":
		if sec, ok := parseRelTime(s); ok {
			return &literal{v: RelTime(sec)}
		}
		x.fail(t.start, "not a duration: "+quoteForMessage(s))
	default:
		x.fail(t.start, "unknown element <"+t.name+">")
	}
	return litError
}
