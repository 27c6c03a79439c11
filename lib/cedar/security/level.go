// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import "github.com/execpoint/execpoint/lib/cedar/command"

// Level is a level of authorization: what a command demands, and what ALLOW_
// and DENY_ lists are kept for. Which command demands which stands in package
// command.
type Level = command.Level

// The levels.
const (
	Allow           = command.Allow
	Read            = command.Read
	Write           = command.Write
	Negotiator      = command.Negotiator
	Administrator   = command.Administrator
	Config          = command.Config
	Daemon          = command.Daemon
	Default         = command.Default
	ClientLevel     = command.ClientLevel
	AdvertiseStartd = command.AdvertiseStartd
	AdvertiseSchedd = command.AdvertiseSchedd
	AdvertiseMaster = command.AdvertiseMaster

	levels  = command.Levels
	noLevel = command.Levels // ends the chains of levels
)

// fallback returns the level whose settings count where l has none, or
// noLevel behind Default. legacy is LEGACY_ALLOW_SEMANTICS, by which DAEMON
// falls back to WRITE.
func fallback(l Level, legacy bool) Level {
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
