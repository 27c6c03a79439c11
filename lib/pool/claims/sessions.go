// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"strings"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// NewSecret returns what makes the secrets of claim ids for an engine
// (ep.Config.NewSecret): 64 hex digits and, in front of them, what a peer has
// to know of the session that comes with the id. version is ours, as
// "25.14.0". sessions is asked for each id: without sessions
// (SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION is false) a peer that claims has to
// authenticate.
func NewSecret(version string, sessions func() bool) func() claim.Secret {
	return func() claim.Secret {
		s, err := security.NewKeyText(nil)
		if sessions() {
			s, err = security.NewClaimSecret(version, nil)
		}
		if err != nil {
			panic(err) // crypto/rand never fails
		}
		return s
	}
}

// offers are the ids that slots offer, by their public parts.
type offers struct {
	byslot map[slot.ID]string
}

// sessionsOf keeps the sessions of claim ids in step with the engine: there
// before anybody can know the id, and for a while after it is worth nothing.
func (s *Server) sessionsOf(eff ep.Effect) {
	switch e := eff.(type) {
	case ep.ClaimIDChanged:
		// What was offered until now is taken, or was refused; a claim that
		// was made of it is Granted, which keeps the session.
		if !e.Old.IsZero() {
			s.cfg.Sessions.Expire(e.Old.Public, security.ClaimLinger)
		}
		if !e.Further {
			s.offers.byslot[e.Slot] = e.ID.Public
		}
		s.addSession(e.ID)
	case ep.Reply:
		if e.Granted == nil {
			return
		}
		s.addSession(e.Granted.Claim)
		for _, g := range e.Granted.More {
			s.addSession(g.Claim)
		}
	case ep.ClaimEnded:
		s.cfg.Sessions.Expire(e.Claim.Public, security.ClaimLinger)
	case ep.AdWithdrawn:
		if old, ok := s.offers.byslot[e.Slot]; ok {
			s.cfg.Sessions.Expire(old, security.ClaimLinger)
			delete(s.offers.byslot, e.Slot)
		}
	}
}

// hasSession reports whether a claim id came with a session. The id says it, not
// the setting, which may have changed since the id was made: a peer goes by the id.
func hasSession(id claim.ID) bool { return strings.HasPrefix(id.Secret.Reveal(), "[") }

// MatchSessions reports whether claim ids that are made now carry their sessions.
func (s *Server) MatchSessions() bool { return s.settings.Load().MatchSessions }

// addSession makes the session of a claim id. An id without information about
// one has none, and one whose session lives keeps it.
func (s *Server) addSession(id claim.ID) {
	if !hasSession(id) {
		return
	}
	if _, err := s.cfg.Sessions.AddClaim(id); err != nil && !errs.Is(err, errs.Conflict) {
		s.log.Error("no session for a claim id", "claim", id.String(), "err", err)
	}
}
