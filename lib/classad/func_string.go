// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strings"
)

// maxText bounds a string that a function makes, maxElems a list.
const (
	maxText  = 4 << 20
	maxElems = 1 << 20
)

// text returns a string the evaluation made, after paying for it.
func (ev *evaluator) text(s string) Value {
	ev.spend(len(s))
	if ev.failed || len(s) > maxText {
		return ev.fail()
	}
	return String(s)
}

// room is how long a text may become that is paid for when it is there.
func (ev *evaluator) room() int { return min(maxText, 64*max(ev.steps, 0)+64) }

// asText converts v to a string as strcat and string() do; for undefined and
// error the result is that value and ok is false.
func (ev *evaluator) asText(v Value) (s string, other Value, ok bool) {
	switch v.kind {
	case KindUndefined, KindError:
		return "", v, false
	case KindString:
		return v.str(), Value{}, true
	case KindAbsTime:
		return string(appendAbsTime(nil, v.int(), int(v.zone))), Value{}, true
	case KindRelTime:
		return string(appendRelTime(nil, math.Trunc(v.real()))), Value{}, true
	}
	p := printer{dialect: New, limit: ev.room()}
	p.value(v)
	ev.spend(len(p.b))
	if ev.failed || len(p.b) > maxText {
		return "", ev.fail(), false
	}
	return string(p.b), Value{}, true
}

func (ev *evaluator) strcat(n *call) Value {
	var b []byte
	single := ""
	for i, arg := range n.args {
		if ev.depth <= 0 {
			return ev.fail()
		}
		ev.depth--
		v := ev.eval(arg)
		ev.depth++
		if ev.failed {
			return ErrorValue()
		}
		s, other, ok := ev.asText(v)
		if !ok {
			return other
		}
		if i == 0 {
			single = s
		}
		if ev.spend(len(s)); ev.failed || len(b)+len(s) > maxText {
			return ev.fail()
		}
		b = append(b, s...)
	}
	if len(n.args) == 1 {
		return String(single)
	}
	return ev.text(string(b))
}

// join puts its other arguments together with the first between them. Given
// one or two arguments of which the last is a list, it joins that list.
// Undefined ones are left out.
func (ev *evaluator) join(n *call) Value {
	var l *list
	count := len(n.args)
	if count == 1 || count == 2 {
		if ev.depth <= 0 {
			return ev.fail()
		}
		ev.depth--
		v := ev.eval(n.args[count-1])
		ev.depth++
		if ev.failed {
			return ErrorValue()
		}
		if v.kind == KindList {
			l = v.list()
			count += len(l.elems) - 1
		}
	}
	var sep string
	var b []byte
	undefined, defined := false, false
	for i := range count {
		if ev.depth <= 0 {
			return ev.fail()
		}
		ev.depth--
		var v Value
		switch first := len(n.args) - 1; {
		case l == nil || i < first:
			v = ev.eval(n.args[i])
		default:
			v = ev.at(l, i-first)
		}
		ev.depth++
		if ev.failed {
			return ErrorValue()
		}
		s, other, ok := ev.asText(v)
		if !ok {
			if other.kind == KindError {
				return other
			}
			undefined = true
			continue
		}
		if i == 0 && (l == nil || len(n.args) > 1) {
			sep = s
			continue
		}
		if len(b) > 0 {
			b = append(b, sep...)
		}
		if ev.spend(len(sep) + len(s)); ev.failed || len(b)+len(s) > maxText {
			return ev.fail()
		}
		defined = true
		b = append(b, s...)
	}
	if undefined && !defined {
		return Undefined()
	}
	return ev.text(string(b))
}

func (ev *evaluator) changeCase(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	s, other, ok := ev.asText(ev.eval(n.args[0]))
	if !ok {
		return other
	}
	if n.fn == fnToLower {
		return ev.text(foldString(s))
	}
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - ('a' - 'A')
		}
	}
	return ev.text(string(b))
}

// substr counts negative offsets and lengths from the end.
func (ev *evaluator) substr(n *call) Value {
	var a arguments
	if !ev.take(n, 2, 3, &a) {
		return ErrorValue()
	}
	for i := range a.n {
		if a.v[i].kind == KindUndefined {
			return Undefined()
		}
	}
	if a.v[0].kind != KindString || a.v[1].kind != KindInteger || a.n == 3 && a.v[2].kind != KindInteger {
		return ErrorValue()
	}
	s := a.v[0].str()
	offset, size := int(int32(a.v[1].int())), 0
	if a.n == 3 {
		size = int(int32(a.v[2].int()))
	}
	if offset < 0 {
		offset = max(0, len(s)+offset)
	}
	offset = min(offset, len(s))
	rest := len(s) - offset
	switch {
	case a.n == 3 && size == 0:
		rest = 0
	case size <= 0:
		rest = max(0, rest+size)
	default:
		rest = min(rest, size)
	}
	return ev.text(s[offset : offset+rest])
}

// texts evaluates all arguments and converts them to strings. An undefined
// argument at or after from makes the result undefined, any other value that
// is no string makes it error.
func (ev *evaluator) texts(n *call, count, from int, s *[3]string) (v Value, ok bool) {
	var a arguments
	if !ev.take(n, count, count, &a) {
		return ErrorValue(), false
	}
	for i := from; i < count; i++ {
		if a.v[i].kind == KindUndefined {
			return Undefined(), false
		}
	}
	for i := range count {
		if s[i], _, ok = ev.asText(a.v[i]); !ok {
			return ErrorValue(), false
		}
	}
	return Value{}, true
}

func (ev *evaluator) strcmp(n *call) Value {
	var s [3]string
	if v, ok := ev.texts(n, 2, 0, &s); !ok {
		return v
	}
	c := 0
	if n.fn == fnStrcmp {
		c = strings.Compare(s[0], s[1])
	} else {
		c = compareFold(s[0], s[1])
	}
	return Int(int64(min(1, max(-1, c))))
}

// splitter cuts a string at any of the separators. Separators in a row count
// once, except the same one twice: that leaves an empty string between.
type splitter struct {
	s       string
	seps    byteSet
	i, last int
	before  int // the last separator that is no blank, -1 for none
}

func newSplitter(s, seps string) splitter {
	return splitter{s: s, seps: newByteSet(seps), before: -1}
}

// next returns the next part.
func (p *splitter) next() (part string, ok bool) {
	for ; p.i < len(p.s); p.i++ {
		if !p.seps.has(p.s[p.i]) {
			continue
		}
		c, last, before := int(p.s[p.i]), p.last, p.before
		if !isSpace(c) {
			p.before = c
		}
		p.last = p.i + 1
		if p.i > last {
			p.i++
			return p.s[last : p.i-1], true
		}
		if !isSpace(before) && before == c {
			p.i++
			return "", true
		}
	}
	if p.last < len(p.s) {
		part, p.last = p.s[p.last:], len(p.s)
		return part, true
	}
	return "", false
}

// plainSeps are the separators of split() by default.
const plainSeps = ", \t"

func (ev *evaluator) split(n *call) Value {
	var a arguments
	if !ev.take(n, 1, 2, &a) {
		return ErrorValue()
	}
	seps := plainSeps
	if a.v[0].kind != KindString || a.n == 2 && a.v[1].kind != KindString {
		return ErrorValue()
	}
	if a.n == 2 {
		seps = a.v[1].str()
	}
	s := a.v[0].str()
	if ev.spend(len(s) * 8); ev.failed {
		return ErrorValue()
	}
	var elems []node
	p := newSplitter(s, seps)
	for part, ok := p.next(); ok; part, ok = p.next() {
		if len(elems) > maxElems {
			return ev.fail()
		}
		elems = append(elems, newLiteral(String(part)))
	}
	return listValue(elems, nil)
}

// splitItem is split(v)[i] without the list.
func (ev *evaluator) splitItem(v Value, i int64) Value {
	if v.kind != KindString {
		return ErrorValue()
	}
	if ev.spend(len(v.str()) * 8); ev.failed {
		return ErrorValue()
	}
	p := newSplitter(v.str(), plainSeps)
	for part, ok := p.next(); ok; part, ok = p.next() {
		if i == 0 {
			return String(part)
		}
		i--
	}
	return ErrorValue()
}

// splitAt cuts user@domain and slot@machine into a list of two strings.
func (ev *evaluator) splitAt(n *call) Value {
	var a arguments
	if !ev.take(n, 1, 1, &a) || a.v[0].kind != KindString {
		return ErrorValue()
	}
	first, second, ok := strings.Cut(a.v[0].str(), "@")
	if !ok && n.fn == fnSplitSlotName {
		first, second = "", first
	}
	return listValue([]node{newLiteral(String(first)), newLiteral(String(second))}, nil)
}
