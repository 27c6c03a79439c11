// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"unsafe"
)

// Value is what an evaluation yields. It is small, immutable and safe to copy
// and to share. The zero Value is undefined.
//
// Lists and ads are held by reference together with the scope in which their
// elements are evaluated; asking for them does not evaluate anything.
type Value struct {
	kind Kind
	zone int32  // absolute times: offset of their zone in seconds east
	num  uint64 // boolean, integer, bits of a real, seconds, length of a string
	ptr  unsafe.Pointer
}

// list is the referent of a list value.
type list struct {
	elems []node
	scope *Ad // where names in elems are looked up; nil: nowhere
}

// Undefined returns the undefined value.
func Undefined() Value { return Value{} }

// ErrorValue returns the error value.
func ErrorValue() Value { return Value{kind: KindError} }

// Bool returns a boolean.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBoolean, num: 1}
	}
	return Value{kind: KindBoolean}
}

// Int returns an integer.
func Int(i int64) Value { return Value{kind: KindInteger, num: uint64(i)} }

// Real returns a real.
func Real(f float64) Value { return Value{kind: KindReal, num: math.Float64bits(f)} }

// String returns a string.
func String(s string) Value {
	return Value{kind: KindString, num: uint64(len(s)), ptr: unsafe.Pointer(unsafe.StringData(s))}
}

// List returns a list that holds the expressions unevaluated.
func List(exprs ...*Expr) Value {
	elems := make([]node, len(exprs))
	for i, e := range exprs {
		elems[i] = e.freeNode()
	}
	return listValue(elems, nil)
}

// AdValue returns an ad as a value. The ad is shared, not copied. A nil ad
// gives undefined.
func AdValue(a *Ad) Value {
	if a == nil {
		return Value{}
	}
	return Value{kind: KindAd, ptr: unsafe.Pointer(a)}
}

// AbsTime returns the point in time sec (Unix seconds), to be shown in a zone
// offset seconds east of Greenwich.
func AbsTime(sec int64, offset int) Value {
	return Value{kind: KindAbsTime, zone: int32(offset), num: uint64(sec)}
}

// RelTime returns a duration in seconds.
func RelTime(sec float64) Value {
	return Value{kind: KindRelTime, num: math.Float64bits(sec)}
}

func listValue(elems []node, scope *Ad) Value {
	return Value{kind: KindList, ptr: unsafe.Pointer(&list{elems: elems, scope: scope})}
}

func (v Value) bool() bool     { return v.num != 0 }
func (v Value) int() int64     { return int64(v.num) }
func (v Value) real() float64  { return math.Float64frombits(v.num) }
func (v Value) str() string    { return unsafe.String((*byte)(v.ptr), int(v.num)) }
func (v Value) list() *list    { return (*list)(v.ptr) }
func (v Value) ad() *Ad        { return (*Ad)(v.ptr) }
func (v Value) isScalar() bool { return v.kind != KindList && v.kind != KindAd }

// Kind returns the type of v.
func (v Value) Kind() Kind { return v.kind }

// IsUndefined reports whether v is undefined.
func (v Value) IsUndefined() bool { return v.kind == KindUndefined }

// IsError reports whether v is error.
func (v Value) IsError() bool { return v.kind == KindError }

// AsBool returns a boolean; ok is false for every other kind.
func (v Value) AsBool() (b, ok bool) { return v.kind == KindBoolean && v.bool(), v.kind == KindBoolean }

// AsInt returns an integer; ok is false for every other kind.
func (v Value) AsInt() (i int64, ok bool) {
	if v.kind != KindInteger {
		return 0, false
	}
	return v.int(), true
}

// AsReal returns a real; ok is false for every other kind.
func (v Value) AsReal() (f float64, ok bool) {
	if v.kind != KindReal {
		return 0, false
	}
	return v.real(), true
}

// AsString returns a string; ok is false for every other kind.
func (v Value) AsString() (s string, ok bool) {
	if v.kind != KindString {
		return "", false
	}
	return v.str(), true
}

// AsNumber returns an integer or real as a real and a boolean as 0 or 1; ok
// is false for every other kind.
func (v Value) AsNumber() (f float64, ok bool) {
	switch v.kind {
	case KindInteger:
		return float64(v.int()), true
	case KindReal:
		return v.real(), true
	case KindBoolean:
		return float64(v.num), true
	}
	return 0, false
}

// AsList returns the expressions a list holds; ok is false for every other
// kind. Each expression remembers the scope of the list: evaluating it looks
// names up where the list was written.
func (v Value) AsList() (elems []*Expr, ok bool) {
	if v.kind != KindList {
		return nil, false
	}
	l := v.list()
	elems = make([]*Expr, len(l.elems))
	for i, n := range l.elems {
		elems[i] = &Expr{n: n, scope: l.scope}
	}
	return elems, true
}

// AsAd returns an ad; ok is false for every other kind.
func (v Value) AsAd() (*Ad, bool) {
	if v.kind != KindAd {
		return nil, false
	}
	return v.ad(), true
}

// AsAbsTime returns a point in time in Unix seconds with the offset of its
// zone in seconds east; ok is false for every other kind.
func (v Value) AsAbsTime() (sec int64, offset int, ok bool) {
	if v.kind != KindAbsTime {
		return 0, 0, false
	}
	return v.int(), int(v.zone), true
}

// AsRelTime returns a duration in seconds; ok is false for every other kind.
func (v Value) AsRelTime() (sec float64, ok bool) {
	if v.kind != KindRelTime {
		return 0, false
	}
	return v.real(), true
}

// IsTrue reports whether v is the boolean true or a number other than zero,
// which is how daemons test an expression. Undefined, error and strings are
// not true.
func (v Value) IsTrue() bool {
	b, ok := v.truth()
	return ok && b
}

// truth returns v as a condition; ok is false for kinds that are none.
func (v Value) truth() (b, ok bool) {
	switch v.kind {
	case KindBoolean, KindInteger:
		return v.num != 0, true
	case KindReal:
		return v.real() != 0, true
	}
	return false, false
}

// Equal reports whether v and w have the same kind and the same content.
// Lists and ads are equal when they hold equal expressions in equal places.
// It is for tests and for noticing change; the language's own comparison is
// the operator =?=.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind {
		return false
	}
	switch v.kind {
	case KindUndefined, KindError:
		return true
	case KindString:
		return v.str() == w.str()
	case KindReal, KindRelTime:
		return v.real() == w.real() || v.num == w.num
	case KindAbsTime:
		return v.num == w.num && v.zone == w.zone
	case KindList:
		return sameNodes(v.list().elems, w.list().elems)
	case KindAd:
		return sameAds(v.ad(), w.ad())
	}
	return v.num == w.num
}
