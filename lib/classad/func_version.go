// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

func (ev *evaluator) compareVersions(n *call) Value {
	var s [3]string
	if v, ok := ev.texts(n, 2, 0, &s); !ok {
		return v
	}
	c := compareNatural(s[0], s[1])
	switch n.fn {
	case fnVersionLE:
		return Bool(c <= 0)
	case fnVersionLT:
		return Bool(c < 0)
	case fnVersionGE:
		return Bool(c >= 0)
	case fnVersionGT:
		return Bool(c > 0)
	case fnVersionEQ:
		return Bool(c == 0)
	}
	return Int(int64(c))
}

func (ev *evaluator) versionInRange(n *call) Value {
	var s [3]string
	if v, ok := ev.texts(n, 3, 1, &s); !ok {
		return v
	}
	return Bool(compareNatural(s[1], s[0]) <= 0 && compareNatural(s[0], s[2]) <= 0)
}

// compareNatural orders strings with numbers in them by the numbers. Numbers
// with leading zeros are fractions and come before those without. The size of
// the result is part of what versioncmp() returns.
func compareNatural(a, b string) int {
	at := func(s string, i int) int {
		if i < len(s) {
			return int(s[i])
		}
		return 0
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) && i == len(b) {
		return 0
	}
	// start is where the number begins in which they differ.
	start := i
	for start > 0 && isDigit(int(a[start-1])) {
		start--
	}
	ca, cb := at(a, i), at(b, i)
	mismatch := signed(ca) - signed(cb)
	if start == i && (!isDigit(ca) || !isDigit(cb)) {
		return mismatch
	}
	// zeros counts the leading zeros of a number; a number that is all zeros
	// keeps one.
	zeros := func(s string) int {
		k := start
		for at(s, k) == '0' {
			k++
		}
		if k > start && !isDigit(at(s, k)) {
			k--
		}
		return k - start
	}
	za, zb := zeros(a), zeros(b)
	if za != zb {
		return zb - za
	}
	if za > 0 {
		return mismatch
	}
	digits := func(s string) int {
		k := start
		for isDigit(at(s, k)) {
			k++
		}
		return k - start
	}
	if da, db := digits(a), digits(b); da != db {
		return da - db
	}
	return mismatch
}

// signed is a byte as a signed char.
func signed(c int) int { return int(int8(c)) }
