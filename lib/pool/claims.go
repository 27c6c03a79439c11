// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
)

// Replies of the startd's commands.
const (
	replyNotOK            = 0
	replyOK               = 1
	replyTryAgain         = 2
	replyLeftovers        = 3 // the id as a plain string
	replyLeftoversSecret  = 5
	replySlotAd           = 7
	maxEvicted            = 1 << 12            // claims that one request may end
	maxDynamicSlots       = 1 << 12            // that one request may ask for
	requestClaimPatience  = 1800 * time.Second // for a claim that has to be emptied first
	mostAliveInterval     = 24 * time.Hour
	longestWholeClaimTime = 365 * 24 * time.Hour
)

// claimCommands are those of schedds, shadows and negotiators about claims.
func (p *Pool) claimCommands() []listen.Command {
	daemon := func(n int, name string, h listen.Handler) listen.Command {
		return listen.Command{Number: n, Name: name, Level: security.Daemon, Handle: h}
	}
	lone := func(n int, name string, h listen.Handler) listen.Command {
		c := daemon(n, name, h)
		c.Datagrams = true
		return c
	}
	job := func(n int, name string, h listen.Handler) listen.Command {
		c := daemon(n, name, h)
		c.Message = jobLength
		return c
	}
	return []listen.Command{
		daemon(401, "CONTINUE_CLAIM", p.continueClaim),
		daemon(402, "SUSPEND_CLAIM", p.suspendClaim),
		daemon(403, "DEACTIVATE_CLAIM", p.deactivate),
		daemon(404, "DEACTIVATE_CLAIM_FORCIBLY", p.deactivate),
		daemon(413, "DEACTIVATE_CLAIM_JOB_DONE", p.deactivate),
		daemon(554, "REACTIVATE_CLAIM_CHECK", p.deactivate),
		daemon(561, "DEACTIVATE_CLAIM_FINAL_XFER", p.deactivate),
		{Number: 440, Name: "MATCH_INFO", Level: security.Negotiator, Datagrams: true, Handle: p.matchInfo},
		lone(441, "ALIVE", p.alive),
		job(442, "REQUEST_CLAIM", p.requestClaim),
		lone(443, "RELEASE_CLAIM", p.releaseClaim),
		job(444, "ACTIVATE_CLAIM", p.activateClaim),
	}
}

// How long messages about claims may be: one that is an id or a name, and one
// with a job.
const (
	idLength  = 128 << 10
	jobLength = 8 << 20
)

// bound keeps the message that comes next from being longer than n bytes.
func bound(conn *cedar.Conn, n int) {
	limits := conn.Limits()
	limits.Message = min(limits.Message, n)
	conn.SetLimits(limits)
}

// shown is what a peer calls something, for the log.
func shown(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	return name[:most] + "…"
}

// claimID reads a claim id, which is a whole payload if last is set. An id
// that cannot be read is the zero ID: nobody has it.
func claimID(c *cedar.Conn, last bool) (claim.ID, error) {
	if last {
		bound(c, idLength)
	}
	text, err := c.Secret()
	if err == nil && last {
		err = c.EndOfMessage()
	}
	if err != nil {
		return claim.ID{}, err
	}
	id, _ := claim.ParseID(text.Reveal())
	return id, nil
}

func (p *Pool) matchInfo(ctx context.Context, c *listen.Call) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	var refused error
	err = p.cfg.Owner.Do(ctx, func(t Turn) {
		s, ok := t.Engine.SlotOf(id)
		if !ok {
			refused = errs.E("pool.MATCH_INFO", errs.NotFound, id.String(), nil)
			return
		}
		t.Step(ep.MatchTold{Slot: s})
	})
	if err == nil {
		err = refused
	}
	return err
}

// alive is a schedd's sign of life, of those that send it themselves.
func (p *Pool) alive(ctx context.Context, c *listen.Call) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	return p.cfg.Owner.Do(ctx, func(t Turn) {
		t.Step(ep.LeaseRenewed{Claim: id, By: ep.SignMessage})
		if s, ok := t.Engine.SlotOf(id); ok {
			if v, ok := t.Engine.SlotView(s); ok && v.Claimed && v.Claim.Public == id.Public {
				p.lives.soon(t.Now, id)
			}
		}
	})
}

// told is the answer to a command that has none when it succeeds.
func told(c *listen.Call, r ep.Reply) error {
	if r.Err == nil {
		return nil
	}
	c.Log.Info("refused", "why", r.Err)
	if !errs.Is(r.Err, errs.NotFound) {
		return nil // the claim is there, and is where it cannot be done
	}
	c.Conn.PutInt(replyNotOK)
	return c.Conn.EndMessage()
}

// simple is a command about a claim with nothing but its id.
func (p *Pool) simple(ctx context.Context, c *listen.Call, event func(ref uint64, id claim.ID) ep.Event) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	return p.pass(ctx, c, id, event)
}

func (p *Pool) pass(ctx context.Context, c *listen.Call, id claim.ID, event func(ref uint64, id claim.ID) ep.Event) error {
	r, err := p.ask(ctx, func(ref uint64) ep.Event { return event(ref, id) }, nil)
	if err != nil {
		return err
	}
	return told(c, r)
}

// releaseClaim takes a claim back, or a request that still waits for one.
func (p *Pool) releaseClaim(ctx context.Context, c *listen.Call) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	if p.lives.giveUp(id) {
		return nil
	}
	return p.pass(ctx, c, id, func(ref uint64, id claim.ID) ep.Event { return ep.ReleaseRequested{Ref: ref, Claim: id} })
}

func (p *Pool) suspendClaim(ctx context.Context, c *listen.Call) error {
	return p.simple(ctx, c, func(ref uint64, id claim.ID) ep.Event { return ep.SuspendRequested{Ref: ref, Claim: id} })
}

func (p *Pool) continueClaim(ctx context.Context, c *listen.Call) error {
	return p.simple(ctx, c, func(ref uint64, id claim.ID) ep.Event { return ep.ContinueRequested{Ref: ref, Claim: id} })
}
