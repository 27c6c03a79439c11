// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/config"
)

// ClearClaims reports whether the owner has switched encryption off: then claim
// ids go in clear as HTCondor's do, for without them no job would be matched.
// Who has a claim id may run jobs here, so it takes the word NEVER. Where
// encryption is merely not asked for, as by default, it is not needed: HTCondor
// since 9.0 offers a key on every connection and encrypts whenever both sides
// have one. A connection in clear then means a peer that refuses to encrypt, or an
// attacker in between that took its offer out.
func ClearClaims(c *config.Snapshot) bool {
	p, err := security.PolicyFrom(c, security.ClientLevel, false)
	// Without AES the policy's encryption is NEVER whatever the owner said.
	return err == nil && (p.Negotiation == security.Never || p.AES && p.Encryption == security.Never)
}

// secrets says what may be sent to a collector over a connection in clear.
type secrets struct {
	// clearClaims is Settings.ClearClaims.
	clearClaims bool
}

// payload writes the ads. Where nothing is encrypted the public one lacks the
// capability for administration, with which anybody could end the daemon, and
// the private one the claim ids, unless the owner wants them in clear. It is
// sent all the same, so that a collector forgets ids that it was sent before.
func (u *update) payload(conn *cedar.Conn, s secrets) {
	encrypts := conn.SendsEncrypted()
	conn.PutAd(u.public, cedar.AdOptions{NoPrivate: !encrypts})
	if u.private != nil {
		conn.PutAd(u.private, cedar.AdOptions{NoPrivate: !encrypts && !s.clearClaims})
	}
}

// clearness is whether others can read what is sent to a collector.
type clearness uint8

const (
	encrypted clearness = iota
	withheld            // they can, and claim ids are left out
	readable            // they can, and claim ids are not left out
)

// noteClear logs when it changes whether others can read along.
func (s *updater) noteClear(l *link, what secrets) {
	now := encrypted
	switch encrypts := l.post != nil && l.post.Encrypted() || l.post == nil && l.conn.Encrypted(); {
	case encrypts:
	case what.clearClaims:
		now = readable
	default:
		now = withheld
	}
	if now == s.inClear {
		return
	}
	s.inClear = now
	switch now {
	case encrypted:
		s.log.Info("the collector is told claim ids again, since what it is sent is encrypted now")
	case withheld:
		s.log.Warn("the collector is told no claim ids, since what it is sent is not encrypted: no job is matched to this machine through it",
			"want", "SEC_CLIENT_ENCRYPTION = REQUIRED here and SEC_ADVERTISE_STARTD_ENCRYPTION = REQUIRED at the collector, with AES in CRYPTO_METHODS; or SEC_CLIENT_ENCRYPTION = NEVER here, which sends claim ids in clear")
	case readable:
		s.log.Warn("the collector is told claim ids in clear, as SEC_CLIENT_ENCRYPTION or SEC_CLIENT_NEGOTIATION is NEVER: whoever reads along can run jobs here. " +
			"The capability for remote administration is left out")
	}
}
