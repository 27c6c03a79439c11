// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/spelling"
)

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
		if d := spelling.Distance(name, k.Name, best-1); d < best {
			best, found = d, k.Name
		}
	}
	shape, numbers := numbered(name)
	if rest, ok := strings.CutPrefix(shape, "SLOT<N>_TYPE_"); ok && found == "" {
		return "SLOT_TYPE_" + numbers[0] + "_" + rest, true // the number has moved
	}
	if len(numbers) > 0 {
		for i := range familyTable {
			pattern := familyTable[i].Name
			if strings.Count(pattern, "<") != strings.Count(pattern, "<N>") || familyTable[i].Obsolete != "" || abs(len(pattern)-len(shape)) >= best {
				continue
			}
			if d := spelling.Distance(shape, pattern, best-1); d < best {
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

func abs(n int) int { return max(n, -n) }

// isLooseFamily reports whether name is known only because anything would be:
// it ends like the knobs of some daemon, as MY_LOG does, and there is no such
// daemon, or it begins like the clauses of a slot.
func isLooseFamily(name string, daemons []string) bool {
	k := findKnob(name)
	if k == nil || !k.IsFamily() {
		return false
	}
	if strings.HasPrefix(k.Name, "SLOT") && strings.HasSuffix(k.Name, "_<name>") {
		return true
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

// suggestTemplate names the template that was probably meant.
func suggestTemplate(category, name string) string {
	best, found := 4, ""
	for t := range templates(category) {
		if d := spelling.Distance(name, t.name[len(category)+1:], best-1); d < best {
			best, found = d, t.name
		}
	}
	return found
}
