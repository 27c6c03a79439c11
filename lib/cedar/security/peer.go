// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"strings"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
)

// The names that have a meaning of their own.
const (
	Unauthenticated = "unauthenticated@unmapped"
	SubmitSide      = "submit-side@matchsession"    // schedd or shadow, to startd and starter
	ExecuteSide     = "execute-side@matchsession"   // startd or starter, to schedd and shadow
	CollectorSide   = "collector-side@matchsession" // holder of an administration capability
	Family          = "condor@family"               // daemons under the same condor_master
	Parent          = "condor@parent"
	Child           = "condor@child"
)

// Methods of sessions that were never negotiated.
const (
	MethodMatch  = "MATCH"
	MethodFamily = "FAMILY"
)

const unmappedDomain = "unmapped"

// Peer is who is at the other end.
type Peer struct {
	User   string             // canonical user@domain, Unauthenticated if it is not known
	Method string             // FS, IDTOKENS, PASSWORD, SSL, ..., MATCH, FAMILY; "" without authentication
	Name   string             // the authenticated name before it was mapped
	Token  *authn.TokenClaims // set if a token was shown

	// Limited says that only Limit, and what it implies, may be used: the
	// scopes of a token, or the level of CLAIMTOBE.
	Limited bool
	Limit   []Level
}

// unauthenticatedPeer is a peer without authentication.
func unauthenticatedPeer() Peer { return Peer{User: Unauthenticated} }

// Authenticated reports whether the peer's name was proven.
func (p Peer) Authenticated() bool { return p.User != "" && p.User != Unauthenticated }

// Proven reports whether the peer has shown who it is, so that its name cannot
// be anybody's: CLAIMTOBE and ANONYMOUS show nothing.
func (p Peer) Proven() bool {
	return p.Authenticated() && p.Method != authn.ClaimToBe.Recorded() && p.Method != authn.Anonymous.Recorded()
}

// Mapped reports whether the peer has a name that is known here: one with a
// domain other than "unmapped".
func (p Peer) Mapped() bool {
	_, domain := splitUser(p.User)
	return domain != "" && domain != unmappedDomain
}

// HoldsClaim reports whether the peer is known by a claim id alone. It acts for
// that claim: the levels that come with the session are those of the commands
// about claims, and open nothing that concerns the whole daemon.
func (p Peer) HoldsClaim() bool { return p.Method == MethodMatch && p.User == SubmitSide }

// Domain returns what stands behind the last @ of the user.
func (p Peer) Domain() string {
	_, domain := splitUser(p.User)
	return domain
}

// permits reports whether the limits of the session, if any, leave the level.
func (p Peer) permits(l Level) bool {
	if !p.Limited || l == Allow {
		return true
	}
	for _, limit := range p.Limit {
		if limit.Implies(l) {
			return true
		}
	}
	return false
}

// splitUser cuts a name at its last @.
func splitUser(name string) (user, domain string) {
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return name, ""
}

// canonical puts the domain behind a name that has none.
func canonical(name, domain string) string {
	if strings.ContainsRune(name, '@') || domain == "" {
		return name
	}
	return name + "@" + domain
}

// peer makes a peer of who was authenticated: the map file says who that is
// here.
func (s *Settings) peer(id authn.Identity) (Peer, error) {
	name := id.FQU()
	p := Peer{Method: id.Method.Recorded(), Name: id.Name, Token: id.Token}
	if id.Name != "" {
		if mapped, ok := s.Map.Lookup(p.Method, id.Name); ok {
			name = canonical(mapped, s.UIDDomain)
		}
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return Peer{}, errDenied("security.Handshake", p.Method, "the authenticated name is empty, too long or has blanks in it")
	}
	if reserved(name) {
		return Peer{}, errDenied("security.Handshake", clip(name), "the name is reserved for sessions that are handed over")
	}
	p.User = name
	if id.Token != nil {
		if names := id.Token.Limits(); names != nil {
			p.Limited = true
			for _, n := range names {
				if l, ok := command.ParseLevel(n); ok {
					p.Limit = append(p.Limit, l)
				}
			}
		}
	}
	return p, nil
}

// server makes a peer of the server that was authenticated. Methods that prove
// nothing about a server leave it without a name.
func (s *Settings) server(id authn.Identity) (Peer, error) {
	if id.FQU() == "" {
		p := unauthenticatedPeer()
		p.Method = id.Method.Recorded()
		return p, nil
	}
	return s.peer(id)
}
