// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// The types of knobs, as Knob.Type has them.
const (
	TypeBool     = "bool"
	TypeInt      = "int"
	TypeFloat    = "float"
	TypeString   = "string"
	TypePath     = "path"
	TypeList     = "list"
	TypeExpr     = "expr"
	TypeDuration = "duration" // whole seconds
)

// Reconfig says when a change of a knob takes effect.
type Reconfig uint8

// When a change of a knob takes effect.
const (
	ReconfigUnknown  Reconfig = iota
	ReconfigApplies           // at a reconfig; for knobs of the starter at the next job
	ReconfigRestarts          // at a restart of the daemon
)

// Bound is one end of a range.
type Bound struct {
	Set   bool
	Value float64
}

// Knob is one row of the knob table: a setting that means something to an
// Execution Point, or a family of them such as "SLOT_TYPE_<N>_START", where
// <N> stands for a number and any other word in angle brackets for a name.
// The slices of a Knob belong to the table and must not be changed.
type Knob struct {
	Name     string // canonical spelling; names are compared without regard to case
	Type     string
	Platform string // all, linux or windows
	Owner    string // the part that uses it
	Doc      string
	Note     string
	Obsolete string // today's name or meaning; set only for names without effect

	// Macro says that the knob has no meaning of its own, only where another
	// setting says $(NAME) or an ad shows it. Daemon names who reads it if the
	// Execution Point does not. NotYet says what to do instead of it where
	// nothing here reads it and its owner may think so. See Mark.
	Macro  bool
	Daemon string
	NotYet string

	// Default is the text before expansion. Without HasDefault there is none.
	// DefaultWindows replaces it on Windows if HasDefaultWindows.
	Default, DefaultWindows       string
	HasDefault, HasDefaultWindows bool

	// Implied says that the default is what the programs do when nothing
	// sets the knob, and that the macro language does not see it: $(NAME) is
	// empty and "defined NAME" is false. So it is for every family.
	Implied bool

	// Empty says that the macro language knows the name as set to nothing.
	Empty bool

	Min, Max Bound
	// Words are all that a string may be, whatever its case; empty is any text.
	Words    []string
	Reconfig Reconfig
	Aliases  []string // other spellings met in documents
}

// DefaultFor returns the default text on Windows or elsewhere.
func (k *Knob) DefaultFor(windows bool) (text string, ok bool) {
	if windows && k.HasDefaultWindows {
		return k.DefaultWindows, true
	}
	return k.Default, k.HasDefault
}

// Mark says whether a knob has an effect.
type Mark uint8

// The marks.
const (
	InForce      Mark = iota // some code of the Execution Point asks for it
	ForMacros                // other settings refer to it
	ForOthers                // another daemon, or a tool, asks for it
	IsObsolete               // nobody asks any more
	NothingReads             // HTCondor's Execution Point asks for it, this one does not
)

// Mark returns the knob's. What the table says is held to the code by a test.
func (k *Knob) Mark() Mark {
	switch {
	case k.Obsolete != "":
		return IsObsolete
	case k.Macro:
		return ForMacros
	case k.Daemon != "":
		return ForOthers
	case k.NotYet != "":
		return NothingReads
	}
	return InForce
}

// IsFamily reports whether the knob stands for many names.
func (k *Knob) IsFamily() bool { return strings.Contains(k.Name, "<") }

// LookupKnob returns the row for a name, or for the family that the name
// belongs to. The name may carry a SUBSYSTEM. or LOCALNAME. prefix.
func LookupKnob(name string) (Knob, bool) {
	if k := findKnob(name); k != nil {
		return *k, true
	}
	if _, bare, ok := strings.Cut(name, "."); ok {
		return LookupKnob(bare)
	}
	return Knob{}, false
}

// findKnob returns the row of a name without prefix, nil if there is none.
func findKnob(name string) *Knob {
	const most = 200 // no name is longer, and matching takes its time
	if len(name) > most {
		return nil
	}
	if at := knobAt(name); at > len(knobTable) {
		alias := aliasTable[at-len(knobTable)-1]
		if f := familyOf(name); f != nil {
			return f
		}
		return exactKnob(alias.knob)
	} else if at > 0 {
		return &knobTable[at-1]
	}
	return familyOf(name)
}

// familyOf returns the most particular family that name belongs to.
func familyOf(name string) *Knob {
	for i := range familyTable {
		if inFamily(&familyTable[i], name) {
			return &familyTable[i]
		}
	}
	return nil
}

// inFamily compares both ends of the pattern before all of it.
func inFamily(k *Knob, name string) bool {
	pattern := k.Name
	if c := pattern[0]; c != '<' && (name == "" || lower(c) != lower(name[0])) {
		return false
	}
	tail := pattern[strings.LastIndexByte(pattern, '>')+1:]
	return len(name) > len(tail) && equalFold(name[len(name)-len(tail):], tail) && matchFamily(pattern, name)
}

// knobAt returns the place of a name in knobTable, from 1, or behind that in
// aliasTable; 0 when it is in neither.
func knobAt(name string) int { return knobAtHash(hashName("", name), name) }

func knobAtHash(hash uint32, name string) int {
	const mask = uint32(len(knobIndex) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		at := int(knobIndex[i])
		switch {
		case at == 0:
			return 0
		case at <= len(knobTable):
			if equalFold(knobTable[at-1].Name, name) {
				return at
			}
		case equalFold(aliasTable[at-len(knobTable)-1].name, name):
			return at
		}
	}
}

func exactKnob(name string) *Knob {
	if at := knobAt(name); at > 0 && at <= len(knobTable) {
		return &knobTable[at-1]
	}
	return nil
}

// defaultOf returns the default text of a name as the macro language sees it.
func defaultOf(name string, windows bool) (string, bool) {
	if k := exactKnob(name); k != nil {
		return k.seenDefault(windows)
	}
	return "", false
}

// seenDefault returns the default text as the macro language sees it.
func (k *Knob) seenDefault(windows bool) (string, bool) {
	switch {
	case k.Empty:
		return "", true
	case k.Implied:
		return "", false
	}
	return k.DefaultFor(windows)
}

// impliedOf returns the default text that the macro language does not see.
func impliedOf(name string, windows bool) (string, bool) {
	return impliedAt(knobAt(name), name, windows)
}

// impliedAt is impliedOf for a name whose place is known.
func impliedAt(at int, name string, windows bool) (string, bool) {
	if at > 0 && at <= len(knobTable) {
		if k := &knobTable[at-1]; k.Implied {
			return k.DefaultFor(windows)
		}
		return "", false
	}
	if at == 0 {
		possible := false
		for _, i := range impliedFamilies {
			if inFamily(&familyTable[i], name) {
				possible = true
				break
			}
		}
		if !possible {
			return "", false
		}
	}
	if k := findKnob(name); k != nil && k.Implied {
		return k.DefaultFor(windows)
	}
	return "", false
}

// matchFamily reports whether name fits pattern. A placeholder takes at least
// one character of a name, but no dot; <N> takes digits only.
func matchFamily(pattern, name string) bool {
	for pattern != "" {
		if pattern[0] != '<' {
			if name == "" || lower(pattern[0]) != lower(name[0]) {
				return false
			}
			pattern, name = pattern[1:], name[1:]
			continue
		}
		word, rest, _ := strings.Cut(pattern[1:], ">")
		fits := func(c byte) bool { return isAlnum(c) || c == '_' }
		if word == "N" {
			fits = func(c byte) bool { return '0' <= c && c <= '9' }
		} else if rest == "" && word == "SUBSYS" {
			return isSubsystem(name)
		}
		for n := 0; n < len(name) && fits(name[n]); n++ {
			if matchFamily(rest, name[n+1:]) {
				return true
			}
		}
		return false
	}
	return name == ""
}

// isSubsystem reports whether name is that of a daemon or tool of HTCondor.
func isSubsystem(name string) bool {
	return slices.ContainsFunc(subsystems[:], func(s string) bool { return equalFold(s, name) })
}

var subsystems = [...]string{
	"MASTER", "STARTD", "STARTER", "SCHEDD", "SHADOW", "COLLECTOR", "NEGOTIATOR", "CREDD", "KBDD", "SHARED_PORT", "PROCD",
	"GRIDMANAGER", "HAD", "REPLICATION", "JOB_ROUTER", "ROOSTER", "GANGLIAD", "DEFRAG", "TOOL", "SUBMIT", "VM_GAHP", "C_GAHP",
	"DAGMAN", "TRANSFERER", "TRANSFERD", "CREDMON_OAUTH", "CREDMON_KRB", "ANNEXD", "PLACEMENTD", "DATABASE",
}
