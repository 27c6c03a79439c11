// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strconv"
	"strings"
)

// parseReal reads the number s begins with, as strtod does: blanks, a sign,
// then decimal or hexadecimal digits, inf or nan. ok is false if there is
// none.
func parseReal(s string) (f float64, ok bool) {
	i := 0
	for i < len(s) && isSpace(int(s[i])) {
		i++
	}
	start := i
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	digits := i
	at := func(k int) int {
		if k < len(s) {
			return int(s[k])
		}
		return eof
	}
	for _, word := range [...]string{"infinity", "inf", "nan"} {
		if len(s)-i >= len(word) && equalNames(s[i:i+len(word)], word) {
			f, _ = strconv.ParseFloat(s[start:i+len(word)], 64)
			if word == "nan" {
				f = math.NaN()
			}
			return f, true
		}
	}
	isDigitHere, exponent, suffix := isDigit, "eE", ""
	if at(i) == '0' && (at(i+1) == 'x' || at(i+1) == 'X') && (isHex(at(i+2)) || at(i+2) == '.' && isHex(at(i+3))) {
		isDigitHere, exponent, suffix = isHex, "pP", "p0"
		i += 2
		digits = i
	}
	count := 0
	for isDigitHere(at(i)) {
		i++
		count++
	}
	if at(i) == '.' {
		k := i + 1
		for isDigitHere(at(k)) {
			k++
			count++
		}
		if k > digits+1 || count > 0 {
			i = k
		}
	}
	if count == 0 {
		return 0, false
	}
	if c := at(i); c != eof && strings.IndexByte(exponent, byte(c)) >= 0 {
		k := i + 1
		if at(k) == '+' || at(k) == '-' {
			k++
		}
		if isDigit(at(k)) {
			for isDigit(at(k)) {
				k++
			}
			i, suffix = k, ""
		}
	}
	f, _ = strconv.ParseFloat(s[start:i]+suffix, 64)
	return f, true
}

// asReal converts v to a real; for what cannot be converted it returns
// undefined or error and ok is false.
func asReal(v Value) (f float64, other Value, ok bool) {
	switch v.kind {
	case KindUndefined:
		return 0, v, false
	case KindString:
		f, ok = parseReal(v.str())
		return f, ErrorValue(), ok
	case KindAbsTime:
		return float64(v.int()), Value{}, true
	case KindRelTime:
		return float64(realToInt(v.real())), Value{}, true
	}
	f, ok = v.AsNumber()
	return f, ErrorValue(), ok
}

// asInt converts v to an integer.
func asInt(v Value) (i int64, other Value, ok bool) {
	if isIntegral(v) || v.kind == KindAbsTime {
		return v.int(), Value{}, true
	}
	f, other, ok := asReal(v)
	return realToInt(f), other, ok
}

// evalOne evaluates the only argument of a function and takes the steps for
// looking at its text.
func (ev *evaluator) evalOne(n *call) Value {
	v := ev.eval(n.args[0])
	if v.kind == KindString {
		ev.spend(int(v.num))
	}
	return v
}

// convert is int(), real(), string() and bool().
func (ev *evaluator) convert(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	v := ev.evalOne(n)
	switch n.fn {
	case fnInt:
		if i, other, ok := asInt(v); !ok {
			return other
		} else {
			return Int(i)
		}
	case fnReal:
		if f, other, ok := asReal(v); !ok {
			return other
		} else {
			return Real(f)
		}
	case fnString:
		if s, other, ok := ev.asText(v); !ok {
			return other
		} else {
			return ev.text(s)
		}
	}
	switch v.kind {
	case KindUndefined:
		return v
	case KindString:
		switch {
		case equalNames(v.str(), "true"):
			return Bool(true)
		case equalNames(v.str(), "false"):
			return Bool(false)
		}
		return Undefined()
	case KindRelTime:
		return Bool(realToInt(v.real()) != 0)
	}
	if b, ok := v.truth(); ok {
		return Bool(b)
	}
	return ErrorValue()
}

// convertTime is absTime() and relTime() of anything but a constant string,
// which the parser has converted. A string that comes from elsewhere is not
// read at all.
func (ev *evaluator) convertTime(n *call) Value {
	relative := n.fn == fnRelTime
	if len(n.args) == 0 && !relative {
		return ev.currentTime()
	}
	var a arguments
	if !ev.take(n, 1, 2, &a) {
		return ErrorValue()
	}
	offset, given := 0, a.n == 2
	if given {
		switch w := a.v[1]; {
		case relative:
			return ErrorValue()
		case w.kind == KindInteger:
			offset = int(int32(w.int()))
		case w.kind == KindReal:
			offset = int(wholeSeconds(w.real()))
		case w.kind == KindRelTime:
			offset = int(int32(realToInt(w.real())))
		default:
			return ErrorValue()
		}
	}
	v := a.v[0]
	var sec int64
	switch v.kind {
	case KindUndefined:
		return v
	case KindInteger:
		sec = int64(int32(v.int()))
		if relative {
			return RelTime(float64(sec))
		}
	case KindReal:
		if relative {
			return RelTime(v.real())
		}
		sec = wholeSeconds(v.real())
	case KindRelTime:
		if relative {
			return v
		}
		sec = realToInt(v.real())
	case KindAbsTime:
		if relative {
			return RelTime(float64(v.int()))
		}
		return v
	case KindString:
		if relative {
			return RelTime(0)
		}
		return v
	default:
		return ErrorValue()
	}
	if !given {
		offset, _ = zoneAt(sec, ev.env.Location)
	}
	if offset == -1 && v.kind == KindInteger {
		return ev.fail()
	}
	return AbsTime(sec, offset)
}

func (ev *evaluator) round(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	v := ev.evalOne(n)
	if v.kind == KindInteger {
		return v
	}
	f, _, ok := asReal(v)
	if !ok {
		return ErrorValue()
	}
	switch n.fn {
	case fnFloor:
		f = math.Floor(f)
	case fnCeiling:
		f = math.Ceil(f)
	default:
		f = math.RoundToEven(f)
	}
	return Int(realToInt(f))
}

func (ev *evaluator) pow(n *call) Value {
	var a arguments
	if !ev.take(n, 2, 2, &a) {
		return ErrorValue()
	}
	x, y := a.v[0], a.v[1]
	if x.kind == KindInteger && y.kind == KindInteger && y.int() >= 0 {
		return Int(realToInt(math.Pow(float64(x.int()), float64(y.int())) + 0.5))
	}
	fx, _, okx := asReal(x)
	fy, _, oky := asReal(y)
	if !okx || !oky {
		return ErrorValue()
	}
	return Real(math.Pow(fx, fy))
}

// quantize rounds up to a multiple of the second argument or, given a list, to
// the first of its values that is large enough, or else to a multiple of the
// last.
func (ev *evaluator) quantize(n *call) Value {
	var a arguments
	if !ev.take(n, 2, 2, &a) {
		return ErrorValue()
	}
	x, by := a.v[0], a.v[1]
	fx, _, ok := asReal(x)
	if !ok {
		return ErrorValue()
	}
	var fby float64
	if by.kind == KindList {
		l := by.list()
		by = Real(0) // an empty list leaves x as it is
		for i := range l.elems {
			by = ev.at(l, i)
			if ev.failed {
				return ErrorValue()
			}
			if fby, _, ok = asReal(by); !ok {
				return ErrorValue()
			}
			if fby >= fx {
				return by
			}
		}
	} else if fby, _, ok = asReal(by); !ok {
		return ErrorValue()
	}
	if by.kind == KindInteger {
		base := by.int()
		switch {
		case base == 0:
			return x
		case x.kind == KindInteger:
			q := integerArithmetic(opDiv, x.int()+base-1, base)
			return Int(q.int() * base)
		}
		return Real(math.Ceil(fx/float64(base)) * float64(base))
	}
	const epsilon = 1e-8
	if fby >= -epsilon && fby <= epsilon {
		return x
	}
	return Real(math.Ceil(fx/fby) * fby)
}

// random is a number below its argument: an integer for an integer, else a
// real, by default below 1.
func (ev *evaluator) random(n *call) Value {
	if len(n.args) > 1 {
		return ErrorValue()
	}
	limit := Real(1)
	if len(n.args) == 1 {
		limit = ev.eval(n.args[0])
	}
	switch limit.kind {
	case KindInteger, KindReal:
	default:
		return ErrorValue()
	}
	f, _ := limit.AsNumber()
	switch {
	case limit.kind == KindInteger && int32(limit.int()) <= 0 || limit.kind == KindReal && f <= 0:
		return ev.fail()
	case ev.env.Rand == nil:
		return ErrorValue()
	case limit.kind == KindInteger:
		below := int64(int32(limit.int()))
		return Int(min(int64(ev.env.Rand()*float64(below)), below-1))
	}
	return Real(ev.env.Rand() * f)
}

// interval prints seconds as days+hh:mm:ss.
func (ev *evaluator) interval(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	total, _, ok := asInt(ev.evalOne(n))
	if !ok {
		return ErrorValue()
	}
	t := int(int32(total))
	days, hours, mins, secs := t/86400, t%86400/3600, t%3600/60, t%60
	abs := func(i int) int { return max(i, -i) }
	var b []byte
	switch {
	case days != 0:
		b = append(strconv.AppendInt(b, int64(days), 10), '+')
		b = append(appendTwo(b, abs(hours)), ':')
		b = append(appendTwo(b, abs(mins)), ':')
		b = appendTwo(b, abs(secs))
	case hours != 0:
		b = append(strconv.AppendInt(b, int64(hours), 10), ':')
		b = append(appendTwo(b, abs(mins)), ':')
		b = appendTwo(b, abs(secs))
	case mins != 0:
		b = append(strconv.AppendInt(b, int64(mins), 10), ':')
		b = appendTwo(b, abs(secs))
	default:
		b = strconv.AppendInt(b, int64(secs), 10)
	}
	return String(string(b))
}
