// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// isFunction reports whether $name( ) is a function macro. Apart from the
// letters of $F their case counts.
func isFunction(name string) bool {
	switch name {
	case "ENV", "INT", "REAL", "STRING", "EVAL", "SUBSTR", "CHOICE", "RANDOM_CHOICE", "RANDOM_INTEGER", "DIRNAME", "BASENAME":
		return true
	}
	return name[0] == 'F' && strings.Trim(strings.ToLower(name[1:]), "fpdnxbqawu") == ""
}

// call returns the value of a function macro.
func (x *expander) call(m macroText) string {
	text := "$" + m.function + "(" + m.body + ")"
	args := splitArgs(m.body)
	switch m.function {
	case "ENV":
		name, def := splitDefault(m.body)
		value, ok := x.getenv(x.expand(name))
		switch {
		case ok:
			if len(x.within) >= maxNesting {
				return x.fail(text, "macros are nested too deep", "")
			}
			x.within = append(x.within, "$ENV")
			defer func() { x.within = x.within[:len(x.within)-1] }()
			return x.expand(value)
		case def != nil:
			return x.expand(*def)
		}
		return "UNDEFINED"
	case "INT", "REAL", "STRING", "EVAL":
		return x.evaluate(m.function, m.body, text)
	case "SUBSTR":
		return x.substr(args, text)
	case "CHOICE":
		i, ok := x.integer(args[0])
		list := x.list(args[1:])
		if !ok || i < 0 || i >= int64(len(list)) {
			return x.fail(text, "there is no such choice", fmt.Sprintf("an index from 0 to %d", len(list)-1))
		}
		return list[i]
	case "RANDOM_CHOICE":
		list := x.list(args)
		if len(list) == 0 {
			return x.fail(text, "nothing to choose from", "a list of values")
		}
		return list[x.random(int64(len(list)))]
	case "RANDOM_INTEGER":
		return x.randomInteger(args, text)
	case "DIRNAME":
		return pathPart(x.nameOrText(args[0]), "p", x.cwd)
	case "BASENAME":
		name := pathPart(x.nameOrText(args[0]), "nx", x.cwd)
		if len(args) > 1 {
			name = strings.TrimSuffix(name, x.expand(args[1]))
		}
		return name
	}
	return pathPart(x.nameOrText(m.body), m.function[1:], x.cwd)
}

// splitArgs parts arguments at the commas outside parentheses and quotes. There
// is always a first one.
func splitArgs(body string) []string {
	var list []string
	depth, from, quoted := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '{' || c == '[':
			depth++
		case c == ')' || c == '}' || c == ']':
			depth--
		case c == ',' && depth == 0:
			list = append(list, strings.TrimSpace(body[from:i]))
			from = i + 1
		}
	}
	return append(list, strings.TrimSpace(body[from:]))
}

// nameOrText is how most functions read an argument: the value of the macro of
// that name, or the text itself.
func (x *expander) nameOrText(arg string) string {
	if isName(arg) {
		if value, ok := x.value(arg); ok {
			return value
		}
	}
	return x.expand(arg)
}

// list is how choices are written: as arguments, or the name of one macro that
// holds them.
func (x *expander) list(args []string) []string {
	if len(args) == 1 {
		if isName(args[0]) {
			if value, ok := x.value(args[0]); ok {
				args = splitArgs(value)
			}
		}
		if len(args) == 1 && args[0] == "" {
			return nil
		}
	}
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = x.expand(a)
	}
	return list
}

func (x *expander) integer(arg string) (int64, bool) {
	e, err := classad.ParseExpr(x.nameOrText(arg), classad.Old)
	if err != nil {
		return 0, false
	}
	return e.Eval(nil).AsInt()
}

// evaluate is $INT, $REAL, $STRING and $EVAL: an expression, and for the first
// three a format as in C.
func (x *expander) evaluate(function, body, text string) string {
	arg, format := body, ""
	if function != "EVAL" {
		args := splitArgs(body)
		if n := len(args); n > 1 && strings.Contains(args[n-1], "%") {
			format = args[n-1]
			arg = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body[:strings.LastIndexByte(body, ',')]), ","))
		}
	}
	value := x.nameOrText(strings.TrimSpace(arg))
	if x.err != nil {
		return ""
	}
	e, err := classad.ParseExpr(value, classad.Old)
	if function == "STRING" {
		s, isString := value, false
		if err == nil {
			s, isString = e.Eval(nil).AsString()
		}
		if !isString {
			s = value
		}
		return x.format(format, "s", s, text)
	}
	if err != nil {
		return x.fail(text, "cannot be evaluated: "+err.Error(), "an expression")
	}
	v := e.Eval(nil)
	if function == "EVAL" {
		if s, ok := v.AsString(); ok {
			return s
		}
		return v.Text(classad.Old)
	}
	number, ok := v.AsNumber()
	if !ok || math.IsNaN(number) || math.IsInf(number, 0) {
		return x.fail(text, "is "+v.Kind().String(), "a number")
	}
	if function == "REAL" {
		if format == "" {
			return strings.Replace(strconv.FormatFloat(number, 'g', 16, 64), "e", "E", 1)
		}
		return x.format(format, "eEfgG", number, text)
	}
	i, isInt := v.AsInt()
	if !isInt {
		if math.Abs(number) >= 1<<63 {
			return x.fail(text, "is too large for an integer", "")
		}
		i = int64(number)
	}
	if format == "" {
		return strconv.FormatInt(i, 10)
	}
	return x.format(format, "dioxX", i, text)
}

// format prints one value the way C's printf does, for the verbs given.
func (x *expander) format(format, verbs string, value any, text string) string {
	if format == "" {
		return fmt.Sprint(value)
	}
	bad := func() string {
		return x.fail(text, "wrong format "+clip(format), "one % with flags, a width, a precision and one of "+verbs)
	}
	before, rest, _ := strings.Cut(format, "%")
	i := 0
	for i < len(rest) && strings.IndexByte("-+ 0#.123456789l", rest[i]) >= 0 {
		i++
	}
	if i == len(rest) || strings.IndexByte(verbs, rest[i]) < 0 || strings.Contains(rest[i:], "%") || i > 12 {
		return bad()
	}
	flags := strings.ReplaceAll(rest[:i], "l", "")
	width, precision, _ := strings.Cut(strings.Trim(flags, "-+ #"), ".")
	for _, n := range []string{width, precision} {
		if v, err := strconv.Atoi(n); n != "" && (err != nil || v > 1000) {
			return bad()
		}
	}
	verb := strings.Replace(rest[i:i+1], "i", "d", 1)
	return before + fmt.Sprintf("%"+flags+verb, value) + rest[i+1:]
}

// substr is $SUBSTR(name, start[, length]); a negative start counts from the
// end, a negative length leaves that many characters off.
func (x *expander) substr(args []string, text string) string {
	if len(args) < 2 || len(args) > 3 {
		return x.fail(text, "wrong number of arguments", "a name, a start and perhaps a length")
	}
	var s string
	if isName(args[0]) {
		s, _ = x.value(args[0])
	} else {
		s = x.expand(args[0])
	}
	start, ok := x.integer(args[1])
	if !ok {
		return x.fail(text, "the start is no integer", "")
	}
	n := int64(len(s))
	if start < 0 {
		start = max(0, start+n)
	}
	start = min(start, n)
	end := n
	if len(args) == 3 {
		length, ok := x.integer(args[2])
		if !ok {
			return x.fail(text, "the length is no integer", "")
		}
		if length < 0 {
			end = n + max(length, -n)
		} else {
			end = min(n, start+min(length, n))
		}
	}
	return s[start:max(start, end)]
}

// randomInteger is $RANDOM_INTEGER(min, max[, step]).
func (x *expander) randomInteger(args []string, text string) string {
	n := [3]int64{2: 1}
	ok := len(args) == 2 || len(args) == 3
	for i := 0; ok && i < len(args); i++ {
		n[i], ok = x.integer(args[i])
	}
	if !ok || n[1] < n[0] || n[2] < 1 || n[1]-n[0] < 0 {
		return x.fail(text, "wrong arguments", "a smallest and a largest integer and perhaps a step above 0")
	}
	return strconv.FormatInt(n[0]+n[2]*x.random((n[1]-n[0])/n[2]+1), 10)
}
