// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"strconv"
	"strings"
)

// constant reads what follows the equals sign of a line if it is nothing but
// a plain constant, which is most lines of most ads. ok is false for
// everything else: that is for the parser.
func constant(s string) (v Value, ok bool) {
	for s != "" && s[0] == ' ' {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\r') {
		s = s[:len(s)-1]
	}
	if s == "" {
		return Value{}, false
	}
	switch c := s[0]; {
	case c == '"':
		return quotedConstant(s)
	case c == '-' || isDigit(int(c)):
		return numberConstant(s)
	}
	switch len(s) {
	case 4:
		if equalNames(s, "true") {
			return Bool(true), true
		}
	case 5:
		if equalNames(s, "false") {
			return Bool(false), true
		}
	case 9:
		if equalNames(s, "undefined") {
			return Value{}, true
		}
	}
	return Value{}, false
}

// quotedConstant reads a string without escapes.
func quotedConstant(s string) (v Value, ok bool) {
	end := strings.IndexByte(s[1:], '"')
	if end < 0 || end != len(s)-2 || strings.IndexByte(s, '\\') >= 0 || strings.IndexByte(s, 0) >= 0 {
		return Value{}, false
	}
	return String(s[1 : len(s)-1]), true
}

// numberConstant reads a decimal integer that is sure to fit, or a plain
// real.
func numberConstant(s string) (v Value, ok bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 18 || digits[0] == '0' && len(digits) > 1 && digits[1] != '.' {
		return Value{}, false
	}
	n, dot := int64(0), 0
	for i := range len(digits) {
		switch c := digits[i]; {
		case isDigit(int(c)):
			n = n*10 + int64(c-'0')
		case c == '.' && dot == 0 && i > 0 && i < len(digits)-1:
			dot = i
		default:
			return Value{}, false
		}
	}
	if dot > 0 {
		f, err := strconv.ParseFloat(s, 64)
		return Real(f), err == nil
	}
	if len(digits) < len(s) {
		n = -n
	}
	return Int(n), true
}
