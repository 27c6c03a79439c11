// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// Bounds of what is asked about claims.
const (
	maxEvicted            = 1 << 12            // claims that one request may end
	maxDynamicSlots       = 1 << 12            // that one request may ask for
	requestClaimPatience  = 1800 * time.Second // for a claim that has to be emptied first
	mostAliveInterval     = 24 * time.Hour
	longestWholeClaimTime = 365 * 24 * time.Hour
)

// Commands are those of schedds, shadows and negotiators about claims.
func (s *Server) Commands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.ContinueClaim:            s.continueClaim,
		command.SuspendClaim:             s.suspendClaim,
		command.DeactivateClaim:          s.deactivate,
		command.DeactivateClaimForcibly:  s.deactivate,
		command.DeactivateClaimJobDone:   s.deactivate,
		command.ReactivateClaimCheck:     s.deactivate,
		command.DeactivateClaimFinalXfer: s.deactivate,
		command.MatchInfo:                s.matchInfo,
		command.Alive:                    s.alive,
		command.RequestClaim:             s.requestClaim,
		command.ReleaseClaim:             s.releaseClaim,
		command.ActivateClaim:            s.activateClaim,
		command.DelegateGSICredStartd:    s.delegate,
		command.CoalesceSlots:            s.coalesceSlots,
		command.CommandDataSlot:          s.dataSlot,
	})
}

// How long messages about claims may be: one that is an id or a name, and one
// with a job.
const (
	idLength  = 128 << 10
	jobLength = command.JobMessage
)

// claimID reads a claim id, which is a whole payload if last is set. An id
// that cannot be read is the zero ID, which no claim has.
func claimID(c *cedar.Conn, last bool) (claim.ID, error) {
	if last {
		c.LimitMessage(idLength)
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

func (s *Server) matchInfo(ctx context.Context, c *listen.Call) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	var refused error
	err = s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		at, ok := t.Engine.SlotOf(id)
		if !ok {
			refused = errs.E("claims.MATCH_INFO", errs.NotFound, id.String(), nil)
			return
		}
		t.Step(ep.MatchTold{Slot: at})
	})
	if err == nil {
		err = refused
	}
	return err
}

// alive is a schedd's sign of life, of those that send it themselves.
func (s *Server) alive(ctx context.Context, c *listen.Call) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	return s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		t.Step(ep.LeaseRenewed{Claim: id, By: ep.SignMessage})
		if at, ok := t.Engine.SlotOf(id); ok {
			if v, ok := t.Engine.SlotView(at); ok && v.Claimed && v.Claim.Public == id.Public {
				s.keepalives.soon(t.Now, id)
			}
		}
	})
}

// answerRefusal answers a command that has no answer when it succeeds.
func answerRefusal(c *listen.Call, r ep.Reply) error {
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
func (s *Server) simple(ctx context.Context, c *listen.Call, event func(ref ep.Ref, id claim.ID) ep.Event) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	return s.pass(ctx, c, id, event)
}

func (s *Server) pass(ctx context.Context, c *listen.Call, id claim.ID, event func(ref ep.Ref, id claim.ID) ep.Event) error {
	r, err := s.requests.Ask(ctx, func(ref ep.Ref) ep.Event { return event(ref, id) })
	if err != nil {
		return err
	}
	return answerRefusal(c, r)
}

// releaseClaim takes a claim back, or a request that still waits for one.
func (s *Server) releaseClaim(ctx context.Context, c *listen.Call) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	if s.keepalives.giveUp(id) {
		return nil
	}
	return s.pass(ctx, c, id, func(ref ep.Ref, id claim.ID) ep.Event { return ep.ReleaseRequested{Ref: ref, Claim: id} })
}

func (s *Server) suspendClaim(ctx context.Context, c *listen.Call) error {
	return s.simple(ctx, c, func(ref ep.Ref, id claim.ID) ep.Event { return ep.SuspendRequested{Ref: ref, Claim: id} })
}

func (s *Server) continueClaim(ctx context.Context, c *listen.Call) error {
	return s.simple(ctx, c, func(ref ep.Ref, id claim.ID) ep.Event { return ep.ContinueRequested{Ref: ref, Claim: id} })
}

// delegate refuses a proxy that no starter asks for any more.
func (s *Server) delegate(_ context.Context, c *listen.Call) error {
	c.Conn.DiscardMessage()
	c.Conn.PutInt(command.NotOK)
	return c.Conn.EndMessage()
}
