// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// NewSecret returns what makes the secrets of claim ids for an engine
// (ep.Config.NewSecret): 64 hex digits and, in front of them, what a peer has
// to know of the session that comes with the id. version is ours, as
// "25.14.0". Without sessions (SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION is
// false) whoever claims has to authenticate.
func NewSecret(version string, sessions bool) func() claim.Secret {
	info := ""
	if sessions {
		info = security.DefaultInfo(version).String()
	}
	return func() claim.Secret {
		var b [32]byte
		_, _ = rand.Read(b[:]) // never fails
		return claim.Secret(info + hex.EncodeToString(b[:]))
	}
}

// offers are the ids that slots offer, by their public parts.
type offers struct {
	byslot map[slot.ID]string
}

// sessionsOf keeps the sessions of claim ids in step with the engine: there
// before anybody can know the id, and for a while after it is worth nothing.
func (p *Pool) sessionsOf(eff ep.Effect) {
	switch e := eff.(type) {
	case ep.ClaimIDChanged:
		// What was offered until now is taken, or was refused; a claim that
		// was made of it is Granted, which keeps the session.
		if old, ok := p.held.byslot[e.Slot]; ok {
			p.cfg.Sessions.Expire(old, security.ClaimLinger)
		}
		p.held.byslot[e.Slot] = e.ID.Public
		p.addSession(e.ID)
	case ep.Reply:
		if e.Granted == nil {
			return
		}
		p.addSession(e.Granted.Claim)
		for _, g := range e.Granted.More {
			p.addSession(g.Claim)
		}
	case ep.ClaimEnded:
		p.cfg.Sessions.Expire(e.Claim.Public, security.ClaimLinger)
	case ep.AdWithdrawn:
		if old, ok := p.held.byslot[e.Slot]; ok {
			p.cfg.Sessions.Expire(old, security.ClaimLinger)
			delete(p.held.byslot, e.Slot)
		}
	}
}

// addSession makes the session of a claim id. An id without information about
// one has none, and one whose session lives keeps it.
func (p *Pool) addSession(id claim.ID) {
	if id.IsZero() || !p.settings.Load().MatchSessions {
		return
	}
	if _, err := p.cfg.Sessions.AddClaim(id); err != nil && !errs.Is(err, errs.Conflict) {
		p.log.Error("no session for a claim id", "claim", id.String(), "err", err)
	}
}

// capability is the right to administer this EP that is left with collectors
// for those who have the right to ask for it there. It is renewed so that
// what leaks is soon worth nothing.
type capability struct {
	mu   sync.Mutex
	seq  int64
	text string
	made int64 // boot seconds
}

const (
	capabilityLife  = 1800 // seconds
	capabilityReuse = 30   // seconds for which one is handed out
)

// administration returns the capability to be sent now, "" for none.
func (p *Pool) administration(address string) string {
	if p.cfg.AdminCommands == nil {
		return ""
	}
	c := &p.admin
	c.mu.Lock()
	defer c.mu.Unlock()
	now := int64(p.cfg.Clock.Now().Boot.Seconds())
	if c.text != "" && now < c.made+capabilityReuse {
		return c.text
	}
	c.seq++
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	info := security.DefaultInfo("")
	info.ValidCommands = p.cfg.AdminCommands()
	id := security.NewCapabilityID(fmt.Sprintf("admin_%s#%d#%d", address, p.cfg.Start, c.seq), info, hex.EncodeToString(b[:]))
	if _, err := p.cfg.Sessions.AddCapability(id, capabilityLife*1e9); err != nil {
		p.log.Error("no session for remote administration", "err", err)
		return ""
	}
	c.text, c.made = id.Reveal(), now
	return c.text
}
