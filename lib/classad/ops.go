// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strings"
)

func applyUnary(o op, v Value) Value {
	switch o {
	case opPlus:
		switch v.kind {
		case KindBoolean, KindString, KindList, KindAd, KindAbsTime:
			return ErrorValue()
		}
		return v
	case opMinus:
		switch v.kind {
		case KindUndefined:
			return v
		case KindInteger:
			return Int(-v.int())
		case KindReal:
			return Real(-v.real())
		case KindRelTime:
			return RelTime(-v.real())
		}
	case opNot:
		if b, ok := v.truth(); ok {
			return Bool(!b)
		}
		if v.kind == KindUndefined {
			return v
		}
	case opBitNot:
		if v.kind == KindInteger {
			return Int(^v.int())
		}
		if v.kind == KindUndefined {
			return v
		}
	}
	return ErrorValue()
}

// applyBinary computes every operator between two values except ?: and [ ].
func applyBinary(o op, x, y Value) Value {
	switch o {
	case opIs, opIsnt:
		v := identical(x, y)
		if v.kind == KindBoolean && o == opIsnt {
			return Bool(!v.bool())
		}
		return v
	case opAnd, opOr:
		return logical(o, x, y)
	}
	// All others are strict.
	if x.kind == KindError || y.kind == KindError {
		return ErrorValue()
	}
	if x.kind == KindUndefined || y.kind == KindUndefined {
		return Undefined()
	}
	switch o {
	case opLess, opLessEqual, opNotEqual, opEqual, opGreaterEqual, opGreater:
		return compare(o, x, y)
	case opAdd, opSub, opMul, opDiv, opMod:
		return arithmetic(o, x, y)
	}
	return bitwise(o, x, y)
}

// logical is && and || once the left side did not decide alone.
func logical(o op, x, y Value) Value {
	decides := o == opOr // the operand that settles the outcome
	bx, okx := x.truth()
	by, oky := y.truth()
	switch {
	case okx && bx == decides:
		return Bool(decides)
	case x.kind == KindError || !okx && x.kind != KindUndefined:
		return ErrorValue()
	case !oky && y.kind != KindUndefined:
		return ErrorValue()
	case oky && (okx || by == decides):
		return Bool(by)
	}
	return Undefined()
}

// identical is the operator =?=: equal kinds and equal values, without any
// conversion. Lists and ads cannot be compared.
func identical(x, y Value) Value {
	if x.kind != y.kind {
		return Bool(false)
	}
	switch x.kind {
	case KindUndefined, KindError:
		return Bool(true)
	case KindString:
		return Bool(x.str() == y.str())
	case KindReal, KindRelTime:
		return Bool(x.real() == y.real())
	case KindAbsTime:
		return Bool(x.num == y.num && x.zone == y.zone)
	case KindList, KindAd:
		return ErrorValue()
	}
	return Bool(x.num == y.num)
}

// ordered turns the outcome of a comparison into that of an operator.
func ordered(o op, less, equal bool) Value {
	switch o {
	case opLess:
		return Bool(less)
	case opLessEqual:
		return Bool(less || equal)
	case opEqual:
		return Bool(equal)
	case opNotEqual:
		return Bool(!equal)
	case opGreaterEqual:
		return Bool(!less)
	}
	return Bool(!less && !equal)
}

func orderedReals(o op, x, y float64) Value {
	switch o { // each by itself: a NaN is neither less, equal nor greater
	case opLess:
		return Bool(x < y)
	case opLessEqual:
		return Bool(x <= y)
	case opEqual:
		return Bool(x == y)
	case opNotEqual:
		return Bool(x != y)
	case opGreaterEqual:
		return Bool(x >= y)
	}
	return Bool(x > y)
}

func compare(o op, x, y Value) Value {
	switch {
	case x.kind == KindString && y.kind == KindString:
		c := compareFold(x.str(), y.str())
		return ordered(o, c < 0, c == 0)
	case x.kind == KindAbsTime && y.kind == KindAbsTime:
		return ordered(o, x.int() < y.int(), x.int() == y.int())
	case x.kind == KindRelTime && y.kind == KindRelTime:
		return orderedReals(o, x.real(), y.real())
	case isIntegral(x) && isIntegral(y):
		return ordered(o, x.int() < y.int(), x.int() == y.int())
	}
	a, okx := x.AsNumber()
	b, oky := y.AsNumber()
	if okx && oky {
		return orderedReals(o, a, b)
	}
	return ErrorValue()
}

// isIntegral reports whether v counts as an integer in arithmetic.
func isIntegral(v Value) bool { return v.kind == KindInteger || v.kind == KindBoolean }

func arithmetic(o op, x, y Value) Value {
	if isIntegral(x) && isIntegral(y) {
		return integerArithmetic(o, x.int(), y.int())
	}
	a, okx := x.AsNumber()
	b, oky := y.AsNumber()
	if okx && oky {
		return realArithmetic(o, a, b)
	}
	return timeArithmetic(o, x, y)
}

// integerArithmetic wraps around like two's complement. The one quotient that
// does not fit is cut to the largest integer.
func integerArithmetic(o op, a, b int64) Value {
	switch o {
	case opAdd:
		return Int(a + b)
	case opSub:
		return Int(a - b)
	case opMul:
		return Int(a * b)
	}
	switch {
	case b == 0:
		return ErrorValue()
	case a == math.MinInt64 && b == -1:
		if o == opDiv {
			return Int(math.MaxInt64)
		}
		return Int(0)
	case o == opDiv:
		return Int(a / b)
	}
	return Int(a % b)
}

// realArithmetic gives error for plus infinity, and only for that one.
func realArithmetic(o op, a, b float64) Value {
	var r float64
	switch o {
	case opAdd:
		r = a + b
	case opSub:
		r = a - b
	case opMul:
		r = a * b
	case opDiv:
		r = a / b
	default:
		return ErrorValue()
	}
	if math.IsInf(r, 1) {
		return ErrorValue()
	}
	return Real(r)
}

func timeArithmetic(o op, x, y Value) Value {
	xa, xr := x.kind == KindAbsTime, x.kind == KindRelTime
	ya, yr := y.kind == KindAbsTime, y.kind == KindRelTime
	switch {
	case o == opAdd && xa && yr:
		return AbsTime(x.int()+wholeSeconds(y.real()), int(x.zone))
	case o == opAdd && xr && ya:
		return AbsTime(y.int()+wholeSeconds(x.real()), int(y.zone))
	case o == opAdd && xr && yr:
		return RelTime(x.real() + y.real())
	case o == opSub && xa && ya:
		return RelTime(float64(x.int() - y.int()))
	case o == opSub && xa && yr:
		return AbsTime(x.int()-wholeSeconds(y.real()), int(x.zone))
	case o == opSub && xr && yr:
		return RelTime(x.real() - y.real())
	case (o == opMul || o == opDiv) && xr && (y.kind == KindInteger || y.kind == KindReal):
		n, _ := y.AsNumber()
		if o == opMul {
			return RelTime(x.real() * n)
		}
		return RelTime(x.real() / n)
	case o == opMul && yr && (x.kind == KindInteger || x.kind == KindReal):
		n, _ := x.AsNumber()
		return RelTime(n * y.real())
	}
	return ErrorValue()
}

// wholeSeconds cuts a duration to 32 bits of seconds, as HTCondor does.
func wholeSeconds(f float64) int64 {
	if !(f > math.MinInt32-1 && f < math.MaxInt32+1) {
		return math.MinInt32
	}
	return int64(f)
}

// realToInt cuts towards zero; what does not fit is what an x86 processor
// makes of it.
func realToInt(f float64) int64 {
	if !(f >= math.MinInt64 && f < -math.MinInt64) {
		return math.MinInt64
	}
	return int64(f)
}

// bitwise works on integers only. Shift counts are taken modulo 64, as an x86
// processor does.
func bitwise(o op, x, y Value) Value {
	if x.kind != KindInteger || y.kind != KindInteger {
		return ErrorValue()
	}
	a, b := x.int(), y.int()
	switch o {
	case opBitAnd:
		return Int(a & b)
	case opBitOr:
		return Int(a | b)
	case opBitXor:
		return Int(a ^ b)
	case opShiftLeft:
		return Int(a << uint(b&63))
	case opShiftRight:
		if a >= 0 {
			return Int(a >> uint(b&63))
		}
		return Int(a >> uint(min(max(b, 0), 64)))
	case opShiftRightZero:
		if a >= 0 {
			return Int(a >> uint(b&63))
		}
		return Int(int64(uint64(a)>>1) >> uint((b-1)&63))
	}
	return ErrorValue()
}

// foldString returns s in lower case of ASCII.
func foldString(s string) string {
	for i := range len(s) {
		if lower(s[i]) != s[i] {
			return strings.Map(func(r rune) rune {
				if 'A' <= r && r <= 'Z' {
					return r + ('a' - 'A')
				}
				return r
			}, s)
		}
	}
	return s
}
