// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "sync/atomic"

// memory is what a Snapshot remembers of the questions put to it: which
// settings were asked for, and what they expanded to. It changes no answer.
// There is a place for every entry, and behind those one for every knob.
type memory struct {
	entries int
	places  []place
}

type place struct {
	used  atomic.Bool
	value atomic.Pointer[expanded]
}

// expanded is the value of a name as it was asked for: through another prefix
// the same entry may draw another number by chance.
type expanded struct {
	name, text string
}

func newMemory(entries int) memory {
	return memory{entries: entries, places: make([]place, entries+len(knobTable))}
}

// place returns the place of an entry, or of the knob whose default answers;
// nil for a name that is neither.
func (m *memory) place(e *entry, name string) *place {
	if e != nil {
		return &m.places[e.at]
	}
	return m.knobPlace(knobAt(name))
}

// knobPlace returns the place of the knob at a place of the table, from 1.
func (m *memory) knobPlace(at int) *place {
	if at > 0 && at <= len(knobTable) {
		return &m.places[m.entries+at-1]
	}
	return nil
}

// use notes that a setting was asked for.
func (m *memory) use(e *entry, name string) {
	if p := m.place(e, name); p != nil && !p.used.Load() {
		p.used.Store(true)
	}
}
