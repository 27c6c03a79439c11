// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"maps"
	"slices"
	"strings"
)

// The functions here read and write the two syntaxes of job arguments and
// environments. In the second one, items are separated by blanks and single
// quotes protect blanks; a quote inside quotes is doubled.

const argBlanks = " \t\n\r"

// splitArgs cuts a string of the second syntax; ok is false for a quote that
// is not closed.
func splitArgs(s string) (args []string, ok bool) {
	var b []byte
	some := false
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\'':
			some = true
			for i++; ; i++ {
				if i >= len(s) {
					return nil, false
				}
				if s[i] == '\'' {
					if i+1 >= len(s) || s[i+1] != '\'' {
						break
					}
					i++
				}
				b = append(b, s[i])
			}
			i++
		case strings.IndexByte(argBlanks, c) >= 0:
			i++
			if some {
				args = append(args, string(b))
				b, some = b[:0], false
			}
		default:
			some = true
			b = append(b, c)
			i++
		}
	}
	if some {
		args = append(args, string(b))
	}
	return args, true
}

// appendArg appends one item in the second syntax.
func appendArg(b []byte, arg string) []byte {
	if len(b) > 0 {
		b = append(b, ' ')
	}
	if arg == "" {
		return append(b, "''"...)
	}
	for i := range len(arg) {
		c := arg[i]
		if c != '\'' && strings.IndexByte(argBlanks, c) < 0 {
			b = append(b, c)
			continue
		}
		// Each such byte is quoted by itself; neighbours share the quotes.
		if n := len(b); n > 0 && b[n-1] == '\'' {
			b = b[:n-1]
		} else {
			b = append(b, '\'')
		}
		if c == '\'' {
			b = append(b, '\'')
		}
		b = append(b, c, '\'')
	}
	return b
}

// argSyntax evaluates the argument that says which syntax is meant.
func (a *arguments) argSyntax() (version int64, ok bool) {
	if a.n < 2 {
		return 2, true
	}
	version, ok = a.v[1].AsInt()
	return version, ok && (version == 1 || version == 2)
}

func (ev *evaluator) argsToList(n *call) Value {
	var a arguments
	if !ev.take(n, 1, 2, &a) {
		return ErrorValue()
	}
	version, ok := a.argSyntax()
	if !ok || a.v[0].kind != KindString {
		return ErrorValue()
	}
	s := a.v[0].str()
	ev.spend(8 * len(s))
	var args []string
	if version == 1 {
		args = strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(argBlanks, r) })
	} else if args, ok = splitArgs(s); !ok {
		return ErrorValue()
	}
	if len(args) > maxElems {
		return ev.fail()
	}
	elems := make([]node, len(args))
	for i, arg := range args {
		elems[i] = newLiteral(String(arg))
	}
	return listValue(elems, nil)
}

func (ev *evaluator) listToArgs(n *call) Value {
	var a arguments
	if !ev.take(n, 1, 2, &a) {
		return ErrorValue()
	}
	version, ok := a.argSyntax()
	if !ok || a.v[0].kind != KindList {
		return ErrorValue()
	}
	var b []byte
	l := a.v[0].list()
	for i := range l.elems {
		v := ev.at(l, i)
		if ev.failed || v.kind != KindString {
			return ErrorValue()
		}
		arg := v.str()
		ev.spend(len(arg))
		if len(b)+len(arg) > maxText {
			return ev.fail()
		}
		if version == 2 {
			b = appendArg(b, arg)
			continue
		}
		// The first syntax has no quotes.
		if arg == "" || strings.ContainsAny(arg, argBlanks) {
			return ErrorValue()
		}
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, arg...)
	}
	return ev.text(string(b))
}

// environment is a set of variables; one without a value is a macro that
// stands for itself.
type environment map[string]*string

// add takes name=value; ok is false without a name or an equals sign.
func (e environment) add(item string) (ok bool) {
	name, value, found := strings.Cut(item, "=")
	if !found {
		if item != "" && strings.Contains(item, "$$") {
			e[item] = nil
			return true
		}
		return false
	}
	if name == "" {
		return false
	}
	e[name] = &value
	return true
}

// text prints the variables in the second syntax, sorted by name.
func (e environment) text() string {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(e)) {
		item := name
		if value := e[name]; value != nil {
			item += "=" + *value
		}
		b = appendArg(b, item)
	}
	return string(b)
}

// addV1 reads the first syntax: items separated by a semicolon, or by the
// punctuation the string begins with, or by newlines.
func (e environment) addV1(s string) (ok bool) {
	delim := byte(';')
	if s != "" && strings.IndexByte("!#$%&*+,-/:;<>?@^`|~\x1F", s[0]) >= 0 {
		delim = s[0]
		s = s[1:]
	}
	for s != "" {
		s = strings.TrimLeft(s, argBlanks)
		end := strings.IndexAny(s, string([]byte{delim, '\n'}))
		item := s
		if end >= 0 {
			item, s = s[:end], s[end+1:]
		} else {
			s = ""
		}
		if item != "" && !e.add(item) {
			return false
		}
	}
	return true
}

func (ev *evaluator) envV1ToV2(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	v := ev.eval(n.args[0])
	switch v.kind {
	case KindUndefined:
		return v
	case KindString:
	default:
		return ErrorValue()
	}
	ev.spend(8 * int(v.num))
	e := environment{}
	if !e.addV1(v.str()) {
		return ErrorValue()
	}
	return ev.text(e.text())
}

// mergeEnvironment puts environments of the second syntax together; a later
// one wins, undefined ones are left out.
func (ev *evaluator) mergeEnvironment(n *call) Value {
	e := environment{}
	for _, arg := range n.args {
		v := ev.eval(arg)
		if ev.failed {
			return ErrorValue()
		}
		switch v.kind {
		case KindUndefined:
			continue
		case KindString:
		default:
			return ErrorValue()
		}
		ev.spend(8 * int(v.num))
		items, ok := splitArgs(v.str())
		if !ok {
			return ErrorValue()
		}
		for _, item := range items {
			if !e.add(item) {
				return ErrorValue()
			}
		}
	}
	return ev.text(e.text())
}
