// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"slices"
	"strings"
)

// setting is what a line "name = value" said.
type setting struct {
	number int    // counts the settings of the description
	name   string // as written, without + or MY.
	raw    string // not expanded
	line   *line
	at     int  // offset of the value in line.text
	used   bool // somebody looked it up
}

// table holds all settings of a description by name in lower case, for each
// name in the order of the lines. Settings for job attributes (+Name, MY.Name)
// are under "my." and the name.
type table struct {
	settings map[string][]*setting
	count    int
	open     []string // names that begin with my. or request_, each once
}

// add puts s at the end.
func (t *table) add(s *setting) {
	key := strings.ToLower(s.name)
	if t.settings == nil {
		t.settings = map[string][]*setting{}
	}
	if t.settings[key] == nil && (strings.HasPrefix(key, "my.") || strings.HasPrefix(key, "request_")) {
		t.open = append(t.open, key)
	}
	t.count++
	s.number = t.count
	t.settings[key] = append(t.settings[key], s)
}

// view is a table as it was at some line: what a queue statement sees.
type view struct {
	table *table
	upto  int // number of the last setting before that line
}

func (t *table) now() view { return view{t, t.count} }

// find returns the setting in force, nil for none.
func (v view) find(name string) *setting {
	list := v.table.settings[strings.ToLower(name)]
	i, _ := slices.BinarySearchFunc(list, v.upto+1, func(s *setting, n int) int { return s.number - n })
	if i == 0 {
		return nil
	}
	return list[i-1]
}

// with lists the names that begin with prefix, sorted.
func (v view) with(prefix string) []string {
	var names []string
	for _, key := range v.table.open {
		if strings.HasPrefix(key, prefix) && v.find(key) != nil {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

// macroText is a macro found in a text.
type macroText struct {
	start, end int    // from the $ to behind the closing parenthesis
	function   string // "" for $(name)
	body       string
}

// scanner finds the macros of a text.
type scanner struct {
	text  string
	close []int32 // for each opening parenthesis its closing one, 0 for none
}

// maxParens is how deep parentheses may stand within each other in a macro.
const maxParens = maxNesting

func newScanner(text string) *scanner {
	s := &scanner{text: text}
	if !strings.Contains(text, "$") {
		return s
	}
	s.close = make([]int32, len(text))
	var open []int32
	for i := range len(text) {
		switch text[i] {
		case '(':
			open = append(open, int32(i))
		case ')':
			if n := len(open); n > 0 {
				if n <= maxParens {
					s.close[open[n-1]] = int32(i)
				}
				open = open[:n-1]
			}
		}
	}
	return s
}

// next returns the first macro at or after from. $$ and what is no macro are
// passed over.
func (s *scanner) next(from int) (macroText, bool) {
	text := s.text
	if s.close == nil {
		return macroText{}, false
	}
	for i := from; i < len(text); i++ {
		if text[i] != '$' {
			continue
		}
		if i+1 < len(text) && text[i+1] == '$' {
			i++
			continue
		}
		open := i + 1
		for open < len(text) && (isLetter(text[open]) || text[open] == '_') {
			open++
		}
		if open == len(text) || text[open] != '(' || s.close[open] == 0 {
			continue
		}
		function := text[i+1 : open]
		if function != "" && !isFunction(function) {
			continue
		}
		end := int(s.close[open])
		m := macroText{start: i, end: end + 1, function: function, body: text[open+1 : end]}
		if name, _, _ := strings.Cut(m.body, ":"); function != "" || isName(name) || strings.Contains(name, "$") || name == "" && m.body != "" {
			return m, true
		}
	}
	return macroText{}, false
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isName reports whether s can be the name of a macro or command.
func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isLetter(c) && c != '_' && c != '.' && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// lookup gives the text of a macro, not expanded.
type lookup func(name string) (raw string, ok bool)

// expander replaces macros by what they stand for. One serves one value.
type expander struct {
	lookup
	cwd     string
	getenv  func(string) (string, bool)
	random  func(n int64) int64 // 0..n-1
	within  []string            // names being expanded, outermost first
	missing []string            // names without a definition and without a default
	size    int                 // bytes made so far, over all levels
	depth   int                 // expansions within expansions
	steps   int                 // macros replaced so far, over all levels
	err     *macroError         // the first mistake
}

// macroError is a mistake in a macro.
type macroError struct{ text, message, want string }

func (x *expander) fail(text, message, want string) string {
	if x.err == nil {
		x.err = &macroError{text, message, want}
	}
	return ""
}

// expand returns text with its macros replaced. After a mistake, which stands
// in err, the result means nothing.
func (x *expander) expand(text string) string {
	scan := newScanner(text)
	m, ok := scan.next(0)
	if !ok || x.err != nil {
		return text
	}
	if x.depth++; x.depth > maxParens {
		return x.fail(text, "macros are nested too deep", "")
	}
	defer func() { x.depth-- }()
	var b strings.Builder
	from := 0
	for ; ok; m, ok = scan.next(from) {
		b.WriteString(text[from:m.start])
		value := x.macro(m)
		x.steps++
		if x.size += len(value); x.size > maxExpansion || x.steps > maxSteps {
			return x.fail(text[m.start:m.end], "the expanded value is too long", "")
		}
		if x.err != nil {
			return ""
		}
		b.WriteString(value)
		from = m.end
	}
	b.WriteString(text[from:])
	return b.String()
}

// macro returns what one macro stands for.
func (x *expander) macro(m macroText) string {
	if m.function != "" {
		return x.call(m)
	}
	name, def := splitDefault(m.body)
	if strings.Contains(name, "$") {
		if name = x.expand(name); name != "" && !isName(name) {
			return x.fail("$("+m.body+")", "a macro's name is put together to "+clip(name), "letters, digits, underscores and dots")
		}
	}
	if strings.EqualFold(name, "DOLLAR") && def == nil {
		return "$"
	}
	value, ok := x.value(name)
	if value != "" {
		return value
	}
	if def != nil {
		return x.expand(*def)
	}
	if !ok && x.err == nil {
		x.missing = append(x.missing, name)
	}
	return ""
}

// splitDefault parts "name:default" at the first colon outside parentheses.
func splitDefault(body string) (name string, def *string) {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ':':
			if depth == 0 {
				rest := body[i+1:]
				return body[:i], &rest
			}
		}
	}
	return body, nil
}

// value returns the expanded value of the macro called name.
func (x *expander) value(name string) (string, bool) {
	raw, ok := x.lookup(name)
	if !ok || !strings.Contains(raw, "$") {
		return raw, ok
	}
	if i := slices.IndexFunc(x.within, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
		chain := strings.Join(append(slices.Clone(x.within[i:]), name), " → ")
		return x.fail("$("+name+")", "refers to itself: "+chain, "names that do not refer back to themselves"), true
	}
	if len(x.within) >= maxNesting {
		return x.fail("$("+name+")", "macros are nested too deep", ""), true
	}
	x.within = append(x.within, name)
	value := x.expand(raw)
	x.within = x.within[:len(x.within)-1]
	return value, true
}

// expandSelf replaces in raw the references to name by its value so far, which
// is how "x = $(x) more" is read; ok is false when that gets longer than limit.
func expandSelf(raw, name, before string, limit int) (text string, ok bool) {
	var b strings.Builder
	from, done := 0, 0
	scan := newScanner(raw)
	for {
		m, found := scan.next(from)
		if !found {
			b.WriteString(raw[done:])
			return b.String(), true
		}
		self, def := splitDefault(m.body)
		if m.function != "" || !strings.EqualFold(self, name) {
			// References may stand inside this macro: in a default, an argument.
			from = m.start + 1
			continue
		}
		value := before
		if value == "" && def != nil {
			value = *def
		}
		if b.Len()+len(value) > limit {
			return "", false
		}
		b.WriteString(raw[done:m.start])
		b.WriteString(value)
		from, done = m.end, m.end
	}
}
