// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
)

// Bounds of what is asked about claims.
const (
	maxEvicted            = 1 << 12            // claims that one request may end
	maxDynamicSlots       = 1 << 12            // that one request may ask for
	requestClaimPatience  = 1800 * time.Second // for a claim that has to be emptied first
	mostAliveInterval     = 24 * time.Hour
	longestWholeClaimTime = 365 * 24 * time.Hour
)

// claimCommands are those of schedds, shadows and negotiators about claims.
func (p *Pool) claimCommands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.ContinueClaim:            p.continueClaim,
		command.SuspendClaim:             p.suspendClaim,
		command.DeactivateClaim:          p.deactivate,
		command.DeactivateClaimForcibly:  p.deactivate,
		command.DeactivateClaimJobDone:   p.deactivate,
		command.ReactivateClaimCheck:     p.deactivate,
		command.DeactivateClaimFinalXfer: p.deactivate,
		command.MatchInfo:                p.matchInfo,
		command.Alive:                    p.alive,
		command.RequestClaim:             p.requestClaim,
		command.ReleaseClaim:             p.releaseClaim,
		command.ActivateClaim:            p.activateClaim,
	})
}

// How long messages about claims may be: one that is an id or a name, and one
// with a job.
const (
	idLength  = 128 << 10
	jobLength = command.JobMessage
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
	c.Conn.PutInt(command.NotOK)
	return c.Conn.EndMessage()
}

// simple is a command about a claim with nothing but its id.
func (p *Pool) simple(ctx context.Context, c *listen.Call, event func(ref ep.Ref, id claim.ID) ep.Event) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	return p.pass(ctx, c, id, event)
}

func (p *Pool) pass(ctx context.Context, c *listen.Call, id claim.ID, event func(ref ep.Ref, id claim.ID) ep.Event) error {
	r, err := p.ask(ctx, func(ref ep.Ref) ep.Event { return event(ref, id) }, nil)
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
	return p.pass(ctx, c, id, func(ref ep.Ref, id claim.ID) ep.Event { return ep.ReleaseRequested{Ref: ref, Claim: id} })
}

func (p *Pool) suspendClaim(ctx context.Context, c *listen.Call) error {
	return p.simple(ctx, c, func(ref ep.Ref, id claim.ID) ep.Event { return ep.SuspendRequested{Ref: ref, Claim: id} })
}

func (p *Pool) continueClaim(ctx context.Context, c *listen.Call) error {
	return p.simple(ctx, c, func(ref ep.Ref, id claim.ID) ep.Event { return ep.ContinueRequested{Ref: ref, Claim: id} })
}
