// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// Suggest returns the knob that name was probably meant to be: one that
// differs in a letter or two. It returns false for a name that is a knob, and
// for one that is near none.
func Suggest(name string) (string, bool) {
	if _, known := LookupKnob(name); known && !isLooseFamily(name, nil) {
		return "", false
	}
	prefix := ""
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		prefix, name = name[:i+1], name[i+1:]
	}
	near, ok := nearest(name)
	return prefix + near, ok
}

// nearest finds the single knob or family at the smallest distance.
func nearest(name string) (string, bool) {
	allowed := 1
	if len(name) >= 7 {
		allowed = 2
	}
	if len(name) < 4 {
		return "", false // every short name is near something
	}
	best, found := allowed+1, ""
	for i := range knobTable {
		k := &knobTable[i]
		if k.Obsolete != "" || abs(len(k.Name)-len(name)) >= best {
			continue
		}
		if d := distance(name, k.Name, best-1); d < best {
			best, found = d, k.Name
		}
	}
	shape, numbers := numbered(name)
	if len(numbers) > 0 {
		for i := range familyTable {
			pattern := familyTable[i].Name
			if strings.Count(pattern, "<") != strings.Count(pattern, "<N>") || familyTable[i].Obsolete != "" || abs(len(pattern)-len(shape)) >= best {
				continue
			}
			if d := distance(shape, pattern, best-1); d < best {
				best, found = d, withNumbers(pattern, numbers)
			}
		}
	}
	return found, found != ""
}

// numbered replaces the runs of digits in name by <N> and returns them.
func numbered(name string) (shape string, numbers []string) {
	var b strings.Builder
	for i := 0; i < len(name); {
		n := i
		for n < len(name) && '0' <= name[n] && name[n] <= '9' {
			n++
		}
		if n > i {
			numbers = append(numbers, name[i:n])
			b.WriteString("<N>")
			i = n
			continue
		}
		b.WriteByte(name[i])
		i++
	}
	return b.String(), numbers
}

func withNumbers(pattern string, numbers []string) string {
	for _, n := range numbers {
		pattern = strings.Replace(pattern, "<N>", n, 1)
	}
	return pattern
}

// distance counts the letters to add, drop, change or swap with their
// neighbour to get from a to b, without regard to case. It returns most+1 when
// there are more than most.
func distance(a, b string, most int) int {
	if abs(len(a)-len(b)) > most || len(b) > 100 {
		return most + 1
	}
	var rows [3][102]int
	before, last, now := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			x, y := lower(a[i-1]), lower(b[j-1])
			d := last[j-1]
			if x != y {
				d++
			}
			d = min(d, last[j]+1, now[j-1]+1)
			if i > 1 && j > 1 && x == lower(b[j-2]) && y == lower(a[i-2]) {
				d = min(d, before[j-2]+1)
			}
			now[j] = d
			least = min(least, d)
		}
		if least > most {
			return most + 1
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}

func abs(n int) int { return max(n, -n) }

// isLooseFamily reports whether name is known only because it ends like the
// knobs of some daemon, as MY_LOG does, and there is no such daemon.
func isLooseFamily(name string, daemons []string) bool {
	k := findKnob(name)
	if k == nil || !k.IsFamily() {
		return false
	}
	before, after, ok := strings.Cut(k.Name, "<SUBSYS>")
	if !ok {
		return strings.HasPrefix(k.Name, "<")
	}
	if strings.Contains(after, "<") || len(name) < len(before)+len(after) {
		return false
	}
	daemon := name[len(before) : len(name)-len(after)]
	return !isSubsystem(daemon) && !slices.ContainsFunc(daemons, func(d string) bool { return equalFold(d, daemon) })
}

// Warnings returns what is legal in the configuration but hardly meant: names
// that are almost a knob, knobs without effect, and what was met in reading.
func (s *Snapshot) Warnings() []Problem {
	var out []Problem
	for _, p := range s.warnings {
		out = append(out, *p)
	}
	var used map[string]bool
	daemons := s.List("DAEMON_LIST")
	for i := range s.m.table.entries {
		e := &s.m.table.entries[i]
		if e.origin.Kind != File {
			continue
		}
		name := e.name
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			name = name[i+1:]
		}
		k := findKnob(name)
		if k != nil && k.Obsolete != "" {
			out = append(out, *s.warn(e, ObsoleteName, "is obsolete and has no effect", k.Obsolete))
			continue
		}
		if k != nil && !isLooseFamily(name, daemons) {
			continue
		}
		near, ok := nearest(name)
		if !ok || s.m.table.find("", near) != nil {
			continue
		}
		if used == nil {
			used = s.usedNames()
		}
		if !used[strings.ToLower(name)] {
			out = append(out, *s.warn(e, NearMiss, "is no knob and nothing uses it", near))
		}
	}
	return out
}

func (s *Snapshot) warn(e *entry, class Class, message, want string) *Problem {
	return s.m.place(&Problem{Severity: Warning, Class: class, Message: message, Want: want}, e.name, e)
}

// usedNames returns, in lower case, the names that other settings refer to and
// those that are published in the slot ads.
func (s *Snapshot) usedNames() map[string]bool {
	used := map[string]bool{}
	for i := range s.m.table.entries {
		e := &s.m.table.entries[i]
		buf := []byte(e.raw)
		from := 0
		for {
			m, _, ok := nextMacro(buf, from, func(macro) bool { return true })
			if !ok {
				break
			}
			for name := range strings.FieldsFuncSeq(string(m.body(buf)), func(r rune) bool { return r == ':' || r == ',' || r == ' ' }) {
				used[strings.ToLower(name)] = true
			}
			from = m.open + 1
		}
		if bare := strings.ToUpper(e.name); strings.HasSuffix(bare, "STARTD_ATTRS") || strings.HasSuffix(bare, "STARTD_EXPRS") {
			for _, name := range splitList(e.raw) {
				used[strings.ToLower(name)] = true
			}
		}
	}
	return used
}

// suggestTemplate names the template that was probably meant.
func suggestTemplate(category, name string) string {
	best, found := 4, ""
	for t := range templates(category) {
		if d := distance(name, t.name[len(category)+1:], best-1); d < best {
			best, found = d, t.name
		}
	}
	return found
}
