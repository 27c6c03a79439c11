// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"iter"
	"math"
	"strings"
)

// byteSet is a set of bytes.
type byteSet [4]uint64

func newByteSet(s string) (set byteSet) {
	for i := range len(s) {
		set[s[i]>>6] |= 1 << (s[i] & 63)
	}
	return set
}

func (set *byteSet) has(c byte) bool { return set[c>>6]&(1<<(c&63)) != 0 }

// tokens yields the items of a list in a string, cut at any of the delimiters.
// Blanks around an item are dropped and empty items are skipped.
func tokens(s, delims string) iter.Seq[string] {
	return func(yield func(string) bool) {
		cut := newByteSet(delims)
		i := 0
		for {
			for i < len(s) && (cut.has(s[i]) || isSpace(int(s[i]))) {
				i++
			}
			start := i
			end := i // of the last byte that is no blank
			for i < len(s) && !cut.has(s[i]) {
				if !isSpace(int(s[i])) {
					end = i
				}
				i++
			}
			if i == start || !yield(s[start:end+1]) {
				return
			}
		}
	}
}

// plainDelims are the delimiters of most functions by default.
const plainDelims = ", "

// stringListSummary is stringListSize, Sum, Avg, Min and Max.
func (ev *evaluator) stringListSummary(n *call) Value {
	var a arguments
	if !ev.take(n, 1, 2, &a) || a.v[0].kind != KindString || a.n == 2 && a.v[1].kind != KindString {
		return ErrorValue()
	}
	delims := plainDelims
	if a.n == 2 {
		delims = a.v[1].str()
	}
	s := a.v[0].str()
	if ev.spend(4 * len(s)); ev.failed {
		return ErrorValue()
	}
	// The bounds that the minimum and maximum start from are those of the
	// original: so the maximum of negative numbers is the smallest positive
	// one of single precision.
	var acc float64
	switch n.fn {
	case fnStringListMin:
		acc = math.MaxFloat32
	case fnStringListMax:
		acc = 0x1p-126
	}
	count, isReal := 0, false
	for item := range tokens(s, delims) {
		count++
		if n.fn == fnStringListSize {
			continue
		}
		f, ok := parseReal(item)
		if !ok {
			return ErrorValue()
		}
		if strings.Trim(item, "+-0123456789") != "" {
			isReal = true
		}
		switch n.fn {
		case fnStringListMin:
			if f < acc {
				acc = f
			}
		case fnStringListMax:
			if f > acc {
				acc = f
			}
		default:
			acc += f
		}
	}
	switch {
	case n.fn == fnStringListSize:
		return Int(int64(count))
	case count == 0 && (n.fn == fnStringListSum || n.fn == fnStringListAvg):
		return Real(0)
	case count == 0:
		return Undefined()
	}
	if n.fn == fnStringListAvg {
		acc /= float64(count)
	}
	if isReal {
		return Real(acc)
	}
	return Int(realToInt(acc))
}

// memberArgs evaluates the arguments of the membership functions: an
// undefined one counts as empty, but both are undefined together.
func (ev *evaluator) memberArgs(n *call) (item, in, delims string, v Value, ok bool) {
	delims = ", \t\r\n"
	var a arguments
	if !ev.take(n, 2, 3, &a) {
		return "", "", "", ErrorValue(), false
	}
	for i := range a.n {
		if a.v[i].kind != KindString && a.v[i].kind != KindUndefined {
			return "", "", "", ErrorValue(), false
		}
	}
	if a.v[0].kind == KindUndefined && a.v[1].kind == KindUndefined {
		return "", "", "", Undefined(), false
	}
	get := func(v Value, s string) string {
		if v.kind == KindString {
			return v.str()
		}
		return s
	}
	if a.n == 3 {
		delims = get(a.v[2], delims)
	}
	item, in = get(a.v[0], ""), get(a.v[1], "")
	ev.spend(4 * len(in))
	return item, in, delims, ErrorValue(), !ev.failed
}

func (ev *evaluator) stringListMember(n *call) Value {
	item, in, delims, v, ok := ev.memberArgs(n)
	if !ok {
		return v
	}
	for s := range tokens(in, delims) {
		if s == item || n.fn == fnStringListIMember && equalNames(s, item) {
			return Bool(true)
		}
	}
	return Bool(false)
}

func (ev *evaluator) stringListSubset(n *call) Value {
	sub, in, delims, v, ok := ev.memberArgs(n)
	if !ok {
		return v
	}
	if sub == "" {
		return Bool(true)
	}
	fold := n.fn == fnStringListISubsetMatch
	set := map[string]bool{}
	for s := range tokens(in, delims) {
		if fold {
			s = foldString(s)
		}
		set[s] = true
	}
	all := false // a list of blanks only is a subset of nothing
	for s := range tokens(sub, delims) {
		if fold {
			s = foldString(s)
		}
		if all = set[s]; !all {
			break
		}
	}
	return Bool(all)
}

func (ev *evaluator) stringListRegexpMember(n *call) Value {
	var a arguments
	if !ev.take(n, 2, 4, &a) {
		return ErrorValue()
	}
	for i := range a.n {
		if a.v[i].kind != KindString {
			return ErrorValue()
		}
	}
	delims, flags := plainDelims, patternFlags(0)
	if a.n >= 3 {
		delims = a.v[2].str()
	}
	if a.n == 4 {
		flags = patternOptions(foldString(a.v[3].str()))
	}
	c := ev.pattern(n, a.v[0].str(), flags)
	if !c.usable() {
		return ErrorValue()
	}
	ev.scan(c, int(a.v[1].num))
	if ev.failed {
		return ErrorValue()
	}
	result := Undefined()
	for s := range tokens(a.v[1].str(), delims) {
		if ev.matches(c, s) {
			return Bool(true)
		}
		result = Bool(false)
	}
	return result
}

// stringListsIntersect is the one function of this family that keeps blanks.
func (ev *evaluator) stringListsIntersect(n *call) Value {
	var a arguments
	if !ev.take(n, 2, 3, &a) {
		return ErrorValue()
	}
	if v, done := a.strict(); done {
		return v
	}
	for i := range a.n {
		if a.v[i].kind != KindString {
			return ErrorValue()
		}
	}
	delims := " ,"
	if a.n == 3 && a.v[2].str() != "" {
		delims = a.v[2].str()
	}
	ends := newByteSet(delims)
	cut := func(s string) []string {
		if ev.spend(4 * len(s)); ev.failed {
			return nil
		}
		return strings.FieldsFunc(widen(s), func(r rune) bool {
			return r < 256 && ends.has(byte(r))
		})
	}
	set := map[string]bool{}
	for _, s := range cut(a.v[1].str()) {
		set[s] = true
	}
	for _, s := range cut(a.v[0].str()) {
		if set[s] {
			return Bool(true)
		}
	}
	return Bool(false)
}
