// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import "strings"

// Level is a level of authorization: what a command demands, and what ALLOW_
// and DENY_ lists are kept for.
type Level uint8

// The levels. Allow is open to everyone; Default is no level of a command but
// where settings fall back to; ClientLevel is what an outgoing connection uses.
const (
	Allow Level = iota
	Read
	Write
	Negotiator
	Administrator
	Config
	Daemon
	Default
	ClientLevel
	AdvertiseStartd
	AdvertiseSchedd
	AdvertiseMaster
	Levels // how many there are; as a Level it is none
)

var levelNames = [Levels]string{
	Allow: "ALLOW", Read: "READ", Write: "WRITE", Negotiator: "NEGOTIATOR", Administrator: "ADMINISTRATOR",
	Config: "CONFIG", Daemon: "DAEMON", Default: "DEFAULT", ClientLevel: "CLIENT",
	AdvertiseStartd: "ADVERTISE_STARTD", AdvertiseSchedd: "ADVERTISE_SCHEDD", AdvertiseMaster: "ADVERTISE_MASTER",
}

// String returns the field's name, as "DAEMON".
func (l Level) String() string {
	if l < Levels {
		return levelNames[l]
	}
	return "unknown level"
}

// ParseLevel reads a level's name in any case.
func ParseLevel(name string) (Level, bool) {
	for l, n := range levelNames {
		if strings.EqualFold(n, name) {
			return Level(l), true
		}
	}
	return Levels, false
}

// next returns the level that l directly implies, or Levels.
func (l Level) next() Level {
	switch l {
	case Write, Negotiator, Config, AdvertiseStartd, AdvertiseSchedd, AdvertiseMaster:
		return Read
	case Administrator, Daemon:
		return Write
	}
	return Levels
}

// Implied returns l and the levels it implies, nearest first: who may act at
// DAEMON may act at WRITE and READ.
func (l Level) Implied() []Level {
	var all []Level
	for ; l < Levels; l = l.next() {
		all = append(all, l)
	}
	return all
}

// Implies reports whether being allowed l is being allowed other.
func (l Level) Implies(other Level) bool {
	for ; l < Levels; l = l.next() {
		if l == other {
			return true
		}
	}
	return false
}

// ImpliedBy returns the levels that directly imply l.
func (l Level) ImpliedBy() []Level {
	var all []Level
	for other := range Levels {
		if other.next() == l {
			all = append(all, other)
		}
	}
	return all
}
