// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// call evaluates a function macro. One that fails leaves a problem and stands
// for nothing, unless said otherwise; the expansion goes on.
func (x *expansion) call(fn function, name, body string) string {
	switch fn {
	case fnEnv:
		return x.envFunction(body)
	case fnRandomChoice:
		return x.randomChoice(body)
	case fnRandomInteger:
		return x.randomInteger(body)
	case fnChoice:
		return x.choice(body)
	case fnSubstr:
		return x.substr(body)
	case fnInt, fnReal, fnString:
		return x.convert(fn, body)
	case fnEval:
		raw, _, ok := x.raw(body)
		if !ok {
			raw = body
		}
		return evalText(x.argument(body), strings.Contains(raw, "$"))
	case fnBasename, fnDirname, fnFile:
		return x.fileFunction(fn, name, body)
	}
	return ""
}

func (x *expansion) failFunction(fn function, body, message, want string) {
	name := functionNames[fn]
	x.fail(BadFunction, "$"+name+"("+body+")", "$"+name+" "+message, want)
}

// argument returns what an argument stands for: the expanded value of the
// setting of that name, or else its own text, expanded.
func (x *expansion) argument(text string) string {
	if raw, _, ok := x.raw(text); ok {
		if x.via != nil {
			*x.via = append(*x.via, text)
		}
		return x.nested(text, raw)
	}
	return x.expand(text)
}

// nested expands the value of a setting on behalf of a function macro.
func (x *expansion) nested(name, raw string) string {
	for i, n := range x.names {
		if equalFold(n, name) {
			x.fail(Endless, name, "refers to itself: "+strings.Join(append(x.names[i:len(x.names):len(x.names)], name), " → "), "names that do not refer back to themselves")
			return ""
		}
	}
	x.names = append(x.names, name)
	value := x.expand(raw)
	x.names = x.names[:len(x.names)-1]
	return value
}

// envFunction is $ENV(NAME) and $ENV(NAME:default). A variable that is set to
// nothing is set.
func (x *expansion) envFunction(body string) string {
	name, def, hasDefault := strings.Cut(body, ":")
	value, ok := x.getenv(name)
	switch {
	case ok:
		return value
	case hasDefault:
		return def
	}
	return "UNDEFINED"
}

// draw returns a number below n that depends on the seed, the setting and how
// many numbers its value has drawn before, so that a value stays what it is.
func (x *expansion) draw(n uint64) uint64 {
	x.draws++
	return rand.New(rand.NewPCG(x.seed, uint64(hashName("", x.about))<<32|x.draws)).Uint64N(n)
}

func (x *expansion) randomChoice(body string) string {
	items := splitArguments(body)
	if len(items) == 1 {
		if raw, _, ok := x.raw(items[0]); ok {
			items = splitList(x.nested(items[0], raw))
		}
	}
	if len(items) == 0 {
		x.failFunction(fnRandomChoice, body, "has no list", "a list or the name of one")
		return ""
	}
	return items[x.draw(uint64(len(items)))]
}

// randomInteger is $RANDOM_INTEGER(min, max [, step]).
func (x *expansion) randomInteger(body string) string {
	args := splitArguments(body)
	number := func(i int, what string, otherwise int64) int64 {
		if i < len(args) {
			if n, err := strconv.ParseInt(args[i], 10, 64); err == nil {
				return n
			}
		} else if i == 2 {
			return otherwise
		}
		x.failFunction(fnRandomInteger, body, "has no valid "+what, "$RANDOM_INTEGER(min, max, step)")
		return otherwise
	}
	low := number(0, "minimum", 0)
	high := number(1, "maximum", low)
	step := number(2, "step", 1)
	if step < 1 {
		x.failFunction(fnRandomInteger, body, "has no valid step", "a step of 1 or more")
		step = 1
	}
	if low > high {
		x.failFunction(fnRandomInteger, body, "has a minimum above its maximum", "min <= max")
		low = high
	}
	// Unsigned arithmetic: the range of two int64 may not fit in one.
	count := (uint64(high) - uint64(low)) / uint64(step)
	if count == math.MaxUint64 {
		count--
	}
	return strconv.FormatInt(int64(uint64(low)+x.draw(count+1)*uint64(step)), 10)
}

// choice is $CHOICE(index, LISTNAME) or $CHOICE(index, item, item...). An
// index that is no number counts as 0, and leaves a problem.
func (x *expansion) choice(body string) string {
	first, list, more := strings.Cut(body, ",")
	index, ok := evalInt(x.argument(trim(first)))
	if !ok || index < 0 || index >= math.MaxInt32 {
		x.failFunction(fnChoice, body, "has no valid index", "a number from 0")
		index = 0
	}
	if !more {
		x.failFunction(fnChoice, body, "has no list", "$CHOICE(index, list)")
		return ""
	}
	if !strings.Contains(list, ",") {
		name := trim(list)
		raw, _, ok := x.raw(name)
		if !ok {
			x.failFunction(fnChoice, body, "finds no list named "+name, "the name of a list, or more than one item")
			return ""
		}
		list = x.nested(name, raw)
	}
	items := strings.Split(list, ",")
	if index >= int64(len(items)) {
		x.failFunction(fnChoice, body, fmt.Sprintf("has no item %d", index), fmt.Sprintf("an index below %d", len(items)))
		return ""
	}
	return trim(items[index])
}

// substr is $SUBSTR(NAME, start [, length]); negative numbers count from the
// end.
func (x *expansion) substr(body string) string {
	name, rest, ok := strings.Cut(body, ",")
	if !ok {
		x.failFunction(fnSubstr, body, "has no start", "$SUBSTR(NAME, start, length)")
		return ""
	}
	startArg, lengthArg, hasLength := strings.Cut(rest, ",")
	bounded := func(arg, what string) (int, bool) {
		n, ok := evalInt(x.argument(arg))
		if !ok || n < math.MinInt32 || n > math.MaxInt32 {
			x.failFunction(fnSubstr, body, "has no valid "+what, "a number")
			return 0, false
		}
		return int(n), true
	}
	start, ok := bounded(startArg, "start")
	if !ok {
		return ""
	}
	length := math.MaxInt32
	if hasLength {
		if length, ok = bounded(lengthArg, "length"); !ok {
			return ""
		}
	}
	raw, _, ok := x.raw(name)
	if !ok {
		return ""
	}
	text := x.nested(name, raw)
	if start < 0 {
		start = max(0, len(text)+start)
	}
	text = text[min(start, len(text)):]
	if length < 0 {
		length = max(0, len(text)+length)
	}
	return text[:min(length, len(text))]
}

// convert is $INT, $REAL and $STRING: (NAME) or (NAME,format). A format that
// does not fit stands for itself, and leaves a problem.
func (x *expansion) convert(fn function, body string) string {
	name, format, hasFormat := strings.Cut(body, ",")
	verbs := map[function]string{fnInt: "di", fnReal: "eEfFgG", fnString: "s"}[fn]
	if hasFormat && !isFormat(format, verbs) {
		x.failFunction(fn, body, "cannot use this format", "one % with one of "+verbs)
		return format
	}
	text := x.argument(name)
	switch fn {
	case fnInt:
		n, ok := evalInt(text)
		if !ok {
			x.failFunction(fn, body, "of "+strconv.Quote(clip(text))+" is no integer", "an expression that is an integer")
			return ""
		}
		if !hasFormat {
			return strconv.FormatInt(n, 10)
		}
		return printf(format, n)
	case fnReal:
		f, ok := evalReal(text)
		if !ok {
			x.failFunction(fn, body, "of "+strconv.Quote(clip(text))+" is no number", "an expression that is a number")
			return ""
		}
		if !hasFormat {
			return printf("%.16G", f)
		}
		s := printf(format, f)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	default:
		if s, ok := evalString(text); ok {
			text = s
		}
		if !hasFormat {
			return text
		}
		return printf(format, text)
	}
}
