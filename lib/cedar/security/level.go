// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

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
	levels
)

// noLevel ends the chains of levels.
const noLevel = levels

var levelNames = [levels]string{
	Allow: "ALLOW", Read: "READ", Write: "WRITE", Negotiator: "NEGOTIATOR", Administrator: "ADMINISTRATOR",
	Config: "CONFIG", Daemon: "DAEMON", Default: "DEFAULT", ClientLevel: "CLIENT",
	AdvertiseStartd: "ADVERTISE_STARTD", AdvertiseSchedd: "ADVERTISE_SCHEDD", AdvertiseMaster: "ADVERTISE_MASTER",
}

// String returns the field's name, as "DAEMON".
func (l Level) String() string {
	if l < levels {
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
	return noLevel, false
}

// next returns the level that l directly implies, or noLevel.
func (l Level) next() Level {
	switch l {
	case Write, Negotiator, Config, AdvertiseStartd, AdvertiseSchedd, AdvertiseMaster:
		return Read
	case Administrator, Daemon:
		return Write
	}
	return noLevel
}

// Implied returns l and the levels it implies, nearest first: who may act at
// DAEMON may act at WRITE and READ.
func (l Level) Implied() []Level {
	var all []Level
	for ; l < levels; l = l.next() {
		all = append(all, l)
	}
	return all
}

// Implies reports whether being allowed l is being allowed other.
func (l Level) Implies(other Level) bool {
	for ; l < levels; l = l.next() {
		if l == other {
			return true
		}
	}
	return false
}

// impliedBy returns the levels that directly imply l.
func (l Level) impliedBy() []Level {
	var all []Level
	for other := range levels {
		if other.next() == l {
			all = append(all, other)
		}
	}
	return all
}

// fallback returns the level whose settings count where l has none, or
// noLevel behind Default. legacy is LEGACY_ALLOW_SEMANTICS, by which DAEMON
// falls back to WRITE.
func (l Level) fallback(legacy bool) Level {
	switch {
	case l == Default:
		return noLevel
	case l == AdvertiseStartd, l == AdvertiseSchedd, l == AdvertiseMaster:
		return Daemon
	case l == Daemon && legacy:
		return Write
	}
	return Default
}
