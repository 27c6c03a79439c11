// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// stillRead are the obsolete knobs that have an effect all the same: what they
// list is added to the list of the modern name.
var stillRead = [...]string{"STARTD_EXPRS", "STARTD_SLOT_EXPRS", "STARTD_JOB_EXPRS", "SLOT<N>_STARTD_EXPRS"}

// oldAttributes are attributes that expressions of the 6.8 manual use, and
// what to write instead. Those that end in _ begin a longer name.
var oldAttributes = [...]struct{ name, modern string }{
	{"CurrentTime", "time()"},
	{"VirtualMachineID", "SlotID"},
	{"TotalVirtualMachines", "TotalSlots"},
	{"TotalVirtualMachineCpus", "TotalSlotCpus"},
	{"TotalVirtualMachineMemory", "TotalSlotMemory"},
	{"CheckpointPlatform", ""},
	{"LastPeriodicCheckpoint", ""},
}

// obsoleteWarning is what to say about a setting whose name is that of an
// obsolete knob. A family names the modern form with the number that was used.
func (s *Snapshot) obsoleteWarning(e *entry, k *Knob) *Problem {
	message := "is obsolete and has no effect"
	for _, name := range stillRead {
		if k.Name == name {
			message = "is the old name of a list and only added to the modern one"
		}
	}
	want := k.Obsolete
	if _, numbers := numbered(bareName(e.name)); len(numbers) > 0 && strings.Count(k.Name, "<N>") == 1 {
		want = withNumbers(want, numbers)
	}
	return s.warn(e, ObsoleteName, message, want)
}

// oldAttributeWarnings finds attributes in an expression that no ad has today.
func (s *Snapshot) oldAttributeWarnings(e *entry) []Problem {
	var out []Problem
	seen := map[string]bool{}
	for word := range words(e.raw) {
		modern, ok := modernAttribute(word)
		if !ok || seen[strings.ToLower(word)] {
			continue
		}
		seen[strings.ToLower(word)] = true
		want := modern
		if want == "" {
			want = "an expression without it"
		}
		p := s.warn(e, ObsoleteName, "refers to "+word+", which is obsolete and undefined", want)
		if modern == "time()" {
			p.Message = "refers to " + word + ", which is obsolete"
		}
		p.Value = e.raw
		out = append(out, *p)
	}
	return out
}

// modernAttribute returns what to write for an obsolete attribute.
func modernAttribute(word string) (string, bool) {
	for _, old := range oldAttributes {
		if equalFold(old.name, word) {
			return old.modern, true
		}
	}
	if hasPrefixFold(word, "vm") {
		digits := strings.TrimLeft(word[2:], "0123456789")
		if n := len(word) - len(digits); n > 2 && strings.HasPrefix(digits, "_") && len(digits) > 1 {
			return "slot" + word[2:n] + digits, true
		}
	}
	return "", false
}

// words yields the names in an expression: runs of letters, digits and _ that
// stand outside of strings and are not the names of macros.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		inString := false
		for i := 0; i < len(text); {
			c := text[i]
			switch {
			case c == '\\' && inString:
				i += 2
				continue
			case c == '"':
				inString = !inString
			case !inString && (isAlnum(c) || c == '_'):
				begin := i
				for i < len(text) && (isAlnum(text[i]) || text[i] == '_') {
					i++
				}
				if begin >= 2 && text[begin-1] == '(' && text[begin-2] == '$' {
					continue
				}
				if !yield(text[begin:i]) {
					return
				}
				continue
			}
			i++
		}
	}
}
