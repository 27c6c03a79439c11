// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// entry is one setting as stored: text with macros in it, not yet expanded.
type entry struct {
	name    string // as first written
	raw     string
	origin  Origin
	earlier []Origin // of values that raw was built from, oldest first
	at      uint32   // own position in entries

	// departed says that some assignment gave another value than the default.
	// HTCondor keeps no entry for a name before that.
	departed bool
}

// table finds entries by name without regard to case, and "prefix.name"
// without building that string. The zero table is empty and ready.
type table struct {
	entries []entry
	index   []uint32 // hash → position in entries + 1; length a power of two
	dotted  uint64   // bit n: a name with a dot has a length that is n modulo 64
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// hashFold continues an FNV-1a hash over s in lower case.
func hashFold(h uint32, s string) uint32 {
	for i := range len(s) {
		h = (h ^ uint32(lower(s[i]))) * 16777619
	}
	return h
}

func hashName(prefix, name string) uint32 {
	h := uint32(2166136261)
	if prefix != "" {
		h = hashFold(hashFold(h, prefix), ".")
	}
	return hashFold(h, name)
}

// equalFold compares ASCII without regard to case; other bytes must be equal.
func equalFold(a, b string) bool {
	return len(a) == len(b) && hasPrefixFold(a, b)
}

func hasPrefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if s[i] != prefix[i] && lower(s[i]) != lower(prefix[i]) {
			return false
		}
	}
	return true
}

// compareFold orders ASCII strings by their lower-case bytes.
func compareFold(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// find returns the entry for "prefix.name", or for name when prefix is empty.
// The pointer is good until the next add.
func (t *table) find(prefix, name string) *entry {
	if prefix != "" && t.dotted&(1<<((len(prefix)+1+len(name))&63)) == 0 {
		return nil // most configurations have no such names, and every question asks
	}
	return t.findHash(hashName(prefix, name), prefix, name)
}

func (t *table) findHash(hash uint32, prefix, name string) *entry {
	if len(t.index) == 0 {
		return nil
	}
	mask := uint32(len(t.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		at := t.index[i]
		if at == 0 {
			return nil
		}
		e := &t.entries[at-1]
		if prefix == "" {
			if equalFold(e.name, name) {
				return e
			}
		} else if len(e.name) == len(prefix)+1+len(name) && e.name[len(prefix)] == '.' &&
			hasPrefixFold(e.name, prefix) && equalFold(e.name[len(prefix)+1:], name) {
			return e
		}
	}
}

// add returns the entry for name, made if there is none.
func (t *table) add(name string) *entry {
	if e := t.find("", name); e != nil {
		return e
	}
	if 2*(len(t.entries)+1) > len(t.index) {
		t.grow()
	}
	if strings.Contains(name, ".") {
		t.dotted |= 1 << (len(name) & 63)
	}
	t.entries = append(t.entries, entry{name: name, at: uint32(len(t.entries))})
	t.place(len(t.entries))
	return &t.entries[len(t.entries)-1]
}

func (t *table) place(at int) {
	mask := uint32(len(t.index) - 1)
	i := hashName("", t.entries[at-1].name) & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = uint32(at)
}

func (t *table) grow() {
	size := max(256, 2*len(t.index))
	t.index = make([]uint32, size)
	for at := range t.entries {
		t.place(at + 1)
	}
}
