// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// directive is the one conversion in a C format.
type directive struct {
	before, after    string
	flags            string
	width, precision int // -1: not given
	verb             byte
}

// parseFormat reads a format that holds exactly one conversion. Width and
// precision are limited, so that a format cannot be used to fill the memory.
func parseFormat(format string) (d directive, ok bool) {
	const most = 4096
	d.width, d.precision = -1, -1
	before, rest, found := strings.Cut(format, "%")
	for found && strings.HasPrefix(rest, "%") {
		var next string
		next, rest, found = strings.Cut(rest[1:], "%")
		before += "%" + next
	}
	if !found {
		return d, false
	}
	d.before = before
	n := 0
	for n < len(rest) && strings.IndexByte("-+ #0", rest[n]) >= 0 {
		n++
	}
	d.flags, rest = rest[:n], rest[n:]
	number := func() (int, bool) {
		n := 0
		for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
			n++
		}
		v, err := strconv.Atoi("0" + rest[:n])
		rest = rest[n:]
		if n == 0 {
			v = -1
		}
		return v, err == nil && v <= most
	}
	if d.width, ok = number(); !ok {
		return d, false
	}
	if strings.HasPrefix(rest, ".") {
		rest = rest[1:]
		if d.precision, ok = number(); !ok {
			return d, false
		}
		d.precision = max(d.precision, 0)
	}
	rest = strings.TrimLeft(rest, "lhqjzt")
	if rest == "" {
		return d, false
	}
	d.verb, d.after = rest[0], rest[1:]
	d.after = strings.ReplaceAll(d.after, "%%", "\x00")
	if strings.Contains(d.after, "%") {
		return d, false
	}
	d.after = strings.ReplaceAll(d.after, "\x00", "%")
	return d, true
}

// isFormat reports whether format has one conversion, of one of the verbs.
func isFormat(format, verbs string) bool {
	d, ok := parseFormat(format)
	return ok && strings.IndexByte(verbs, d.verb) >= 0
}

// printf formats one value the way C does: an integer with d, a real with e,
// f or g, a string with s.
func printf(format string, value any) string {
	d, ok := parseFormat(format)
	if !ok {
		return format
	}
	goFormat := "%" + d.flags
	if d.width >= 0 {
		goFormat += strconv.Itoa(d.width)
	}
	if d.precision >= 0 {
		goFormat += "." + strconv.Itoa(d.precision)
	}
	switch d.verb {
	case 'd', 'i':
		goFormat += "d"
	case 'g', 'G':
		f, _ := value.(float64)
		return d.before + pad(shortest(f, d), d) + d.after
	case 'F':
		goFormat += "f"
	default:
		goFormat += string(d.verb)
	}
	return d.before + fmt.Sprintf(goFormat, value) + d.after
}

// shortest is C's %g: Go's %G leaves the exponent form at another place.
func shortest(f float64, d directive) string {
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	precision = max(precision, 1)
	s := ""
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		s = strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	default:
		e := strconv.FormatFloat(f, 'e', precision-1, 64)
		mantissa, exponent, _ := strings.Cut(e, "e")
		x, _ := strconv.Atoi(exponent)
		if x < -4 || x >= precision {
			s = trimZeros(mantissa, d) + "e" + exponent
		} else {
			s = trimZeros(strconv.FormatFloat(f, 'f', precision-1-x, 64), d)
		}
	}
	if !math.Signbit(f) {
		switch {
		case strings.Contains(d.flags, "+"):
			s = "+" + s
		case strings.Contains(d.flags, " "):
			s = " " + s
		}
	}
	if d.verb == 'G' {
		s = strings.ToUpper(s)
	}
	return s
}

func trimZeros(s string, d directive) string {
	if strings.Contains(d.flags, "#") || !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func pad(s string, d directive) string {
	n := d.width - len(s)
	switch {
	case n <= 0:
		return s
	case strings.Contains(d.flags, "-"):
		return s + strings.Repeat(" ", n)
	case strings.Contains(d.flags, "0"):
		sign := len(s) - len(strings.TrimLeft(s, "+- "))
		return s[:sign] + strings.Repeat("0", n) + s[sign:]
	}
	return strings.Repeat(" ", n) + s
}
