// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
)

// Sessions that are not negotiated: both sides know an id and a key because
// a daemon that they trust gave it to both. Their peers are let in at a level of
// their own, without an entry in any list.

// ClaimLinger is how long the session of a claim outlives the claim.
const ClaimLinger = 600 * time.Second

// addNonNegotiated makes a session of an id, in HTCondor's words a non-negotiated
// one. life of 0 is without end unless the info
// says when it expires.
func (t *Sessions) addNonNegotiated(op string, id CapabilityID, peer Peer, address string, life time.Duration) (*Session, error) {
	if !id.HasInfo {
		return nil, errs.E(op, errs.Invalid, id.Session, fmt.Errorf("the id has no session info, so there is no session for it"))
	}
	s := &Session{
		ID: id.Session, Peer: peer, PeerVersion: id.Info.version(), Address: address,
		ValidCommands: id.Info.ValidCommands,
	}
	if len(id.Info.Crypto) > 0 && !known(id.Info.Crypto, "AES") {
		return nil, errs.E(op, errs.Unsupported, id.Session, fmt.Errorf("the session info offers no AES"))
	}
	// An info that names no cipher leaves it to the two sides, which both
	// begin with AES. It encrypts whatever is said of Encryption.
	s.Key, s.old = id.sessionKey(), id.oldKey()
	s.Encryption = id.Info.Encryption
	for _, c := range []cedar.Cipher{cedar.Blowfish, cedar.TripleDES} {
		if len(id.Info.Crypto) == 0 || known(id.Info.Crypto, string(c)) {
			s.Ciphers = append(s.Ciphers, c)
		}
	}
	if !id.Info.Expires.IsZero() {
		left := id.Info.Expires.Sub(t.clock.Now().Wall)
		if left <= 0 {
			return nil, errs.E(op, errs.Expired, id.Session, fmt.Errorf("the session ended %s ago", (-left).Round(time.Second)))
		}
		if life == 0 || left < life {
			life = left
		}
	}
	return s, t.Add(s, life)
}

// AddClaim makes the session of a claim id that we hand out, before it is
// first advertised: a peer that has the whole id may claim, and is SubmitSide.
// Call [Sessions.Expire] with [ClaimLinger] when the claim is gone.
func (t *Sessions) AddClaim(id claim.ID) (*Session, error) {
	c, err := ParseCapabilityID(id.Wire())
	if err != nil {
		return nil, err
	}
	return t.addNonNegotiated("security.Sessions.AddClaim", c, Peer{User: SubmitSide, Method: MethodMatch}, "", 0)
}

// AddExecuteSide makes the session of a claim id as a schedd or shadow has it:
// the peer is the startd at address.
func (t *Sessions) AddExecuteSide(id claim.ID, address string) (*Session, error) {
	c, err := ParseCapabilityID(id.Wire())
	if err != nil {
		return nil, err
	}
	return t.addNonNegotiated("security.Sessions.AddExecuteSide", c, Peer{User: ExecuteSide, Method: MethodMatch}, address, 0)
}

// AddShared makes a session of what a shadow has sent its starter: id, info with
// its brackets and key text, for the transfer of files ("filetrans.<claim>")
// or for reconnecting. The peer is SubmitSide. It fails with Conflict where
// the session is there already, as that of a claim is in the process that made
// the claim id.
func (t *Sessions) AddShared(id, info string, key claim.Secret) (*Session, error) {
	i, err := ParseInfo(info)
	if err != nil {
		return nil, err
	}
	c := NewCapabilityID(id, i, key.Reveal())
	return t.addNonNegotiated("security.Sessions.AddShared", c, Peer{User: SubmitSide, Method: MethodMatch}, "", 0)
}

// AddParent makes the session with the daemon that started us, of the
// SessionKey it handed down; address is the parent's command socket.
func (t *Sessions) AddParent(key CapabilityID, address string) (*Session, error) {
	return t.addNonNegotiated("security.Sessions.AddParent", key, Peer{User: Parent, Method: MethodFamily}, address, 0)
}

// AddFamily makes the session that all daemons under one condor_master share,
// of the FamilySessionKey that was handed down. From now on it is tried for
// daemons on this host that there is no other session for.
func (t *Sessions) AddFamily(key CapabilityID) (*Session, error) {
	s, err := t.addNonNegotiated("security.Sessions.AddFamily", key, Peer{User: Family, Method: MethodFamily}, "", 0)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.family = s.ID
	t.mu.Unlock()
	return s, nil
}

// AddCapability makes the session of an administration capability that we
// advertise for life: a peer to which the collector gives it is CollectorSide.
func (t *Sessions) AddCapability(id CapabilityID, life time.Duration) (*Session, error) {
	return t.addNonNegotiated("security.Sessions.AddCapability", id, Peer{User: CollectorSide, Method: MethodMatch}, "", life)
}

// holes are the levels that come with a session that was handed over, without
// configuration. They go with the session, not with the name: a name alone
// that looks like one of these opens nothing.
func (p Peer) holes() []Level {
	switch {
	case p.Method != MethodMatch && p.Method != MethodFamily:
	case p.User == SubmitSide:
		return []Level{Daemon, ClientLevel}
	case p.User == ExecuteSide:
		return []Level{ClientLevel}
	case p.User == CollectorSide:
		return []Level{Administrator}
	case p.User == Parent, p.User == Child:
		return []Level{Administrator, Daemon, ClientLevel}
	case p.User == Family:
		return []Level{Administrator, Daemon, Negotiator, AdvertiseStartd, AdvertiseSchedd, AdvertiseMaster, ClientLevel}
	}
	return nil
}

// reserved reports whether a name may only come from a session that was
// handed over.
func reserved(user string) bool {
	switch _, domain := splitUser(user); domain {
	case "matchsession", "family", "parent", "child":
		return true
	}
	return false
}
