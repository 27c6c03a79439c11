// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"
)

// ifStack is the state of the ifs around the present line.
type ifStack struct {
	levels []ifLevel
	begun  []joint
}

type ifLevel struct {
	active bool // this branch is taken
	taken  bool // this or an earlier branch was
	last   bool // else was seen
}

func (st *ifStack) open() bool { return len(st.levels) > 0 }

// active reports whether statements count here.
func (st *ifStack) active() bool {
	for _, lv := range st.levels {
		if !lv.active {
			return false
		}
	}
	return true
}

// condition handles if, elif, else and endif; it returns false for any other
// line. Nothing is looked at in a branch that is not taken.
func (l *loader) condition(s statement, st *ifStack) bool {
	text := s.text
	structure := func(message, want string) {
		p := s.problem(0, IfStructure, message)
		p.Want = want
		l.report(p)
	}
	switch {
	case isWord(text, "if"):
		lv := ifLevel{}
		if len(st.levels) >= maxNestedIf {
			structure("if is nested too deep", "at most "+strconv.Itoa(maxNestedIf)+" levels")
			lv.taken = true
		} else if st.active() {
			lv.active = l.test(s, len("if"))
			lv.taken = lv.active
		} else {
			lv.taken = true
		}
		ln, col := s.at(0)
		st.levels = append(st.levels, lv)
		st.begun = append(st.begun, joint{line: ln, col: col})
	case isWord(text, "elif"):
		if !st.open() {
			structure("elif without if", "if before it")
			break
		}
		lv := &st.levels[len(st.levels)-1]
		if lv.last {
			structure("elif after else", "elif before else")
			break
		}
		lv.active = false
		if !lv.taken {
			lv.active = l.test(s, len("elif"))
			lv.taken = lv.active
		}
	case isWord(text, "else"):
		if !st.open() {
			structure("else without if", "if before it")
			break
		}
		lv := &st.levels[len(st.levels)-1]
		if lv.last {
			structure("a second else", "one else before endif")
			break
		}
		lv.last = true
		lv.active = !lv.taken
		lv.taken = true
	case isWord(text, "endif"):
		if !st.open() {
			structure("endif without if", "if before it")
			break
		}
		st.levels = st.levels[:len(st.levels)-1]
		st.begun = st.begun[:len(st.begun)-1]
	default:
		return false
	}
	return true
}

// test evaluates the condition behind a keyword of length skip, and reports it
// when it is none.
func (l *loader) test(s statement, skip int) bool {
	at := skip + len(s.text[skip:]) - len(trimLeft(s.text[skip:]))
	written := s.text[at:]
	x := l.expansion("")
	expr := trim(x.expand(written))
	l.expandProblems(s, at, "", x)
	result, why := l.evaluateCondition(expr, strings.Contains(written, "$"))
	if why != "" {
		p := s.problem(at, BadCondition, why)
		p.Value, p.Want = expr, "true, false, a number, defined NAME or version >= X.Y.Z"
		if expr == "" {
			p.Value = written
		}
		l.report(p)
	}
	return result
}

// evaluateCondition returns the value of a condition, or why it has none. An
// expression that only came out empty by expanding is false.
func (l *loader) evaluateCondition(expr string, expanded bool) (result bool, why string) {
	expr, inverted := strings.CutPrefix(expr, "!")
	expr = trim(expr)
	if expr == "" && expanded {
		return inverted, ""
	}
	result, why = l.evaluatePositive(expr)
	if why != "" {
		return false, why
	}
	return result != inverted, ""
}

func (l *loader) evaluatePositive(expr string) (result bool, why string) {
	if b, ok := conditionWord(expr); ok {
		return b, ""
	}
	if f, ok := conditionNumber(expr); ok {
		return f != 0, ""
	}
	switch {
	case expr == "":
		return false, "a condition is missing"
	case isWord(expr, "defined"):
		return l.isDefined(trim(expr[len("defined"):]))
	case isWord(expr, "version"):
		return compareVersion(trim(expr[len("version"):]))
	case isValidName(expr):
		return false, "is not a condition"
	}
	return false, "complex conditionals are not supported"
}

// conditionWord reads the words for booleans.
func conditionWord(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "t":
		return true, true
	case "false", "no", "f":
		return false, true
	}
	return false, false
}

// conditionNumber reads a decimal number, with no more than a minus before it.
func conditionNumber(s string) (float64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] != '.' && (digits[0] < '0' || digits[0] > '9') || strings.ContainsAny(digits, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || f != 0
}

// isDefined evaluates what follows the word defined. A name is defined when
// it stands for something other than nothing; booleans and numbers are.
func (l *loader) isDefined(arg string) (result bool, why string) {
	if arg == "" {
		return false, ""
	}
	if _, ok := conditionNumber(arg); ok {
		return true, ""
	}
	if isWord(arg, "use") {
		category, name, named := strings.Cut(trim(arg[len("use"):]), ":")
		if strings.ContainsAny(category+name, " \t") {
			return false, "a template is written CATEGORY:NAME here, without blanks"
		}
		if !named || name == "" {
			return isCategory(category), ""
		}
		_, ok := findTemplate(category, name)
		return ok, ""
	}
	if !isValidName(arg) {
		return false, "defined takes one name"
	}
	raw, _, ok := l.m.raw(arg)
	if !ok {
		_, ok = conditionWord(arg)
		return ok, ""
	}
	return raw != "", ""
}

// compareVersion evaluates "OP X.Y.Z", with this language's version on the
// left. Z may be left out and then does not count.
func compareVersion(s string) (result bool, why string) {
	n := 0
	for n < len(s) && strings.IndexByte("<=>!", s[n]) >= 0 {
		n++
	}
	op, literal := s[:n], trim(s[n:])
	order, ok := versionOrder(literal)
	if !ok {
		return false, "is not a version"
	}
	switch op {
	case "=", "==":
		return order == 0, ""
	case "!=":
		return order != 0, ""
	case "<":
		return order < 0, ""
	case "<=":
		return order <= 0, ""
	case ">":
		return order > 0, ""
	case ">=":
		return order >= 0, ""
	}
	return false, "is not a comparison of versions"
}

// versionOrder compares Version with a literal: negative when Version is older.
func versionOrder(literal string) (int, bool) {
	if literal != "" && lower(literal[0]) == 'v' {
		literal = literal[1:]
	}
	ours, theirs := strings.Split(Version, "."), strings.Split(literal, ".")
	if len(theirs) < 2 || len(theirs) > 3 {
		return 0, false
	}
	order := 0
	for i, field := range theirs {
		a, _ := strconv.Atoi(ours[i])
		b, err := strconv.ParseUint(field, 10, 31)
		if err != nil || i == 0 && b < 6 {
			return 0, false
		}
		if order == 0 {
			order = a - int(b)
		}
	}
	return order, true
}
