// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
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
	opts    *Options
	seed    uint64
	within  []string    // names being expanded, outermost first
	missing []string    // names without a definition and without a default
	err     *macroError // the first mistake
}

// macroError is a mistake in a macro.
type macroError struct{ text, message, want string }

// expand returns text with its macros replaced, by the rules of the
// configuration. After a mistake, which stands in err, the result means nothing.
func (x *expander) expand(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	out := x.macros().Expand(text)
	x.missing = append(x.missing, out.Missing...)
	x.note(out.Problems)
	return out.Text
}

func (x *expander) macros() config.Macros {
	return config.Macros{
		Lookup: x.lookup, Env: x.opts.Env, Seed: x.seed, Within: x.within,
		Absolute: func(path string) string { return fullPath(x.opts.Cwd, path) },
	}
}

func (x *expander) note(problems config.Problems) {
	if len(problems) > 0 && x.err == nil {
		p := problems[0]
		x.err = &macroError{p.Value, p.Message, p.Want}
	}
}

// expandSelf replaces in raw the references to name by its value so far, which
// is how "x = $(x) more" is read; ok is false when that gets too long.
func expandSelf(raw, name, before string) (text string, ok bool) {
	m := config.Macros{Lookup: func(n string) (string, bool) { return before, before != "" && strings.EqualFold(n, name) }}
	text, problems := m.ExpandSelf(raw, name)
	return text, len(problems) == 0
}
