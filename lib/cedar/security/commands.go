// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"cmp"
	"slices"
)

// The commands that this package answers itself.
const (
	DCAuthenticate = 60010 // begins every handshake; as the real command it only makes a session
	DCSecQuery     = 60040 // asks whether another command would be allowed
)

// Command is what authorization needs to know of a command.
type Command struct {
	Number int
	Name   string // for logs, as "REQUEST_CLAIM"
	Level  Level

	// Alternatives are levels that are as good as Level.
	Alternatives []Level

	// Authenticated demands a mapped user, whatever the policy of the level
	// is.
	Authenticated bool

	// Empty says that the client sends nothing after the handshake, so that it
	// never shows that it has the key of a session that it took up again.
	Empty bool

	// Message is how many bytes one message of its payload may have from a peer
	// that has proven who it is, 0 for 1 MiB. An eighth is taken from others.
	Message int
}

// acts reports whether the command may change something, so that its sender
// has to be proven: all above READ may.
func (c Command) acts() bool { return c.Level != Allow && c.Level != Read }

// Commands is a table of commands by number. It must not change while a
// Server uses it.
type Commands map[int]Command

// Valid returns the commands that a session at a level may be used for: those
// of the level and of what it implies, those that demand a mapped user only
// for one. They are in order of level, nearest first, then by number.
func (t Commands) Valid(l Level, mapped bool) []int {
	var all []int
	for _, level := range l.Implied() {
		from := len(all)
		for n, c := range t {
			if (c.Level == level || slices.Contains(c.Alternatives, level)) && (mapped || !c.Authenticated) && !slices.Contains(all[:from], n) {
				all = append(all, n)
			}
		}
		slices.SortFunc(all[from:], cmp.Compare)
	}
	return all
}
