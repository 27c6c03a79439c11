// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "bytes"

// function is what stands between $ and ( of a macro.
type function uint8

const (
	fnNone function = iota
	fnName          // $(X)
	fnEnv
	fnRandomChoice
	fnRandomInteger
	fnChoice
	fnSubstr
	fnInt
	fnReal
	fnString
	fnEval
	fnBasename
	fnDirname
	fnFile // $F with any of its letters
)

var functionNames = [...]string{
	fnEnv: "ENV", fnRandomChoice: "RANDOM_CHOICE", fnRandomInteger: "RANDOM_INTEGER", fnChoice: "CHOICE", fnSubstr: "SUBSTR",
	fnInt: "INT", fnReal: "REAL", fnString: "STRING", fnEval: "EVAL", fnBasename: "BASENAME", fnDirname: "DIRNAME",
}

// macro is one macro within a text.
type macro struct {
	fn     function
	dollar int // of the $
	open   int // of the (
	end    int // behind the )
}

// body returns what stands between the parentheses.
func (m macro) body(text []byte) []byte { return text[m.open+1 : m.end-1] }

// isNameByte reports whether c may stand in the name of a setting.
func isNameByte(c byte) bool {
	return isAlnum(c) || c == '_' || c == '.' || c == '/'
}

func isAlnum(c byte) bool {
	return 'a' <= lower(c) && lower(c) <= 'z' || '0' <= c && c <= '9'
}

// functionOf returns the function whose name stands between $ and (. Names
// are in capitals; only the letters of $F come in either case.
func functionOf(name []byte) function {
	if len(name) == 0 {
		return fnName
	}
	if name[0] == 'F' && len(bytes.Trim(name[1:], "pnxdqabfwuPNXDQABFWU")) == 0 {
		return fnFile
	}
	for fn, s := range functionNames {
		if s != "" && string(name) == s {
			return function(fn)
		}
	}
	return fnNone
}

// nextMacro finds the first macro in text that begins at or after from and is
// wanted. first is the offset of the first $ seen, -1 for none: what stands
// before it can never become part of a macro, whatever is put in later.
func nextMacro(text []byte, from int, want func(macro) bool) (m macro, first int, ok bool) {
	first = -1
	for i := from; ; {
		d := bytes.IndexByte(text[i:], '$')
		if d < 0 {
			return macro{}, first, false
		}
		d += i
		if first < 0 {
			first = d
		}
		p := d + 1
		twice := p < len(text) && text[p] == '$' // $$(X) belongs to the job, not to us
		if twice {
			p++
		}
		for p < len(text) && (isAlnum(text[p]) || text[p] == '_') {
			p++
		}
		if p >= len(text) || text[p] != '(' || twice {
			i = p
			continue
		}
		fn := functionOf(text[d+1 : p])
		if fn == fnNone {
			i = p
			continue
		}
		end := closing(text, p+1, fn)
		if end < 0 {
			i = p + 1
			continue
		}
		m = macro{fn: fn, dollar: d, open: p, end: end + 1}
		if !want(m) {
			i = end
			continue
		}
		return m, first, true
	}
}

// closing returns the offset of the ) that ends a macro body starting at i, or
// -1 if the text there is no body. The body of a function ends at the first ),
// whatever stands in it. A name may be followed by a colon and a default,
// which may hold more kinds of characters, and parentheses one level deep.
func closing(text []byte, i int, fn function) int {
	if fn != fnName && fn != fnEnv {
		if n := bytes.IndexByte(text[i:], ')'); n >= 0 {
			return i + n
		}
		return -1
	}
	inDefault := false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == ')':
			return i
		case isNameByte(c):
		case c == ':' && !inDefault:
			inDefault = true
		case !inDefault:
			return -1
		case c == '(':
			n := bytes.IndexByte(text[i:], ')')
			if n < 0 {
				return -1
			}
			i += n
		case c != '$' && c != ' ' && c != ',' && c != '\\' && c != ':':
			return -1
		}
	}
	return -1
}

const dollarName = "DOLLAR"

// isDollar reports whether m is $(DOLLAR), which stands for a $ that takes no
// part in expansion.
func isDollar(m macro, text []byte) bool {
	return m.fn == fnName && equalFold(string(m.body(text)), dollarName)
}
