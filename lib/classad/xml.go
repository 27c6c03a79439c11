// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strconv"
)

// XML prints the ad in the XML notation of ClassAds on one line, private
// attributes left out (see [IsPrivate]). [ParseXML] reads it.
func (a *Ad) XML() string {
	p := xmlPrinter{}
	p.attrs(withoutPrivate(a.sorted()))
	return string(p.b)
}

// XMLAll is XML with private attributes.
func (a *Ad) XMLAll() string {
	p := xmlPrinter{}
	p.attrs(a.sorted())
	return string(p.b)
}

type xmlPrinter struct{ b []byte }

func (p *xmlPrinter) str(s string) { p.b = append(p.b, s...) }

// text appends s with the characters XML reserves replaced.
func (p *xmlPrinter) text(s []byte) {
	for _, c := range s {
		switch c {
		case '&':
			p.str("&amp;")
		case '<':
			p.str("&lt;")
		case '>':
			p.str("&gt;")
		default:
			p.b = append(p.b, c)
		}
	}
}

func (p *xmlPrinter) element(tag string, s []byte) {
	p.str("<" + tag + ">")
	p.text(s)
	p.str("</" + tag + ">")
}

func (p *xmlPrinter) attrs(attrs []attr) {
	p.str("<c>")
	for _, at := range attrs {
		name := printer{dialect: New}
		name.escape(at.name, '"')
		p.str(`<a n="`)
		p.text(name.b)
		p.str(`">`)
		p.node(at.node())
		p.str("</a>")
	}
	p.str("</c>")
}

func (p *xmlPrinter) elems(elems []node) {
	p.str("<l>")
	for _, e := range elems {
		p.node(e)
	}
	p.str("</l>")
}

func (p *xmlPrinter) node(n node) {
	switch n := n.(type) {
	case *literal:
		v := n.v
		if n.form == formSpan {
			v = Real(v.real())
		}
		p.value(v)
	case *listNode:
		p.elems(n.elems)
	case *adNode:
		p.attrs(n.body.sorted())
	default:
		text := printer{dialect: New}
		text.node(n)
		p.element("e", text.b)
	}
}

func (p *xmlPrinter) value(v Value) {
	switch v.kind {
	case KindUndefined:
		p.str("<un/>")
	case KindError:
		p.str("<er/>")
	case KindBoolean:
		if v.bool() {
			p.str(`<b v="t"/>`)
		} else {
			p.str(`<b v="f"/>`)
		}
	case KindInteger:
		p.element("i", strconv.AppendInt(nil, v.int(), 10))
	case KindReal:
		p.element("r", xmlReal(v.real()))
	case KindString:
		text := printer{dialect: New}
		text.escape(v.str(), 0)
		p.element("s", text.b)
	case KindAbsTime:
		p.element("at", appendAbsTime(nil, v.int(), int(v.zone)))
	case KindRelTime:
		p.element("rt", appendRelTime(nil, v.real()))
	case KindList:
		p.elems(v.list().elems)
	case KindAd:
		p.attrs(v.ad().sorted())
	}
}

// xmlReal prints a real; zero has no sign.
func xmlReal(f float64) []byte {
	switch {
	case f == 0:
		return []byte("0.0")
	case math.IsNaN(f):
		return []byte("NaN")
	case math.IsInf(f, 1):
		return []byte("INF")
	case math.IsInf(f, -1):
		return []byte("-INF")
	}
	return strconv.AppendFloat(nil, f, 'E', 15, 64)
}
