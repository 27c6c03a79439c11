// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"log/slog"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// keepAlive asks schedds about their claims until ctx ends.
func (s *Server) keepAlive(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			// A schedd that is out of reach must not hold up the end.
			late := time.AfterFunc(scheddFarewell, s.keepalives.hangUp)
			s.keepalives.ending.Wait()
			late.Stop()
			return
		case <-timer.C:
		case <-s.keepalives.wake:
		}
		ask, wait := s.keepalives.due(s.cfg.Clock.Now())
		for _, x := range ask {
			s.keepalives.ending.Go(func() {
				err := s.askSchedd(ctx, x)
				if first := s.keepalives.asked(s.cfg.Clock.Now(), x, err == nil); err != nil {
					level := slog.LevelDebug
					if first {
						level = slog.LevelWarn
					}
					s.log.Log(ctx, level, "the schedd of a claim does not answer", "claim", x.claim.String(), "schedd", x.client.Schedd, "err", err)
				}
			})
		}
		timer.Reset(wait)
	}
}

// askSchedd renews a lease if the schedd still knows the claim. It fails if the
// schedd does not answer.
func (s *Server) askSchedd(ctx context.Context, x *keepalive) error {
	wanted := false
	err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		at, ok := t.Engine.SlotOf(x.claim)
		v, there := t.Engine.SlotView(at)
		wanted = ok && there && v.Claimed && v.Claim == x.claim && (v.Activation == "" || x.always)
	})
	if err != nil || !wanted {
		return nil // the engine is gone, or nothing has to be asked
	}
	known := true
	err = s.tellSchedd(ctx, x, command.Alive, func(c *cedar.Conn) error {
		n, err := c.Int()
		if err == nil {
			err = c.EndOfMessage()
		}
		known = n >= 0
		return err
	})
	switch {
	case err != nil:
		return err
	case known:
		_ = s.cfg.Owner.Do(ctx, func(t engine.Turn) { t.Step(ep.LeaseRenewed{Claim: x.claim}) })
	default:
		s.log.Info("the schedd does not know the claim any more", "claim", x.claim.String(), "schedd", x.client.Schedd)
		_ = s.cfg.Owner.Do(ctx, func(t engine.Turn) { t.Step(ep.ReleaseRequested{Claim: x.claim}) })
	}
	return nil
}

// tellSchedd sends a command about a claim under the claim's own session, and
// lets answer read what comes back, if that is not nil.
func (s *Server) tellSchedd(ctx context.Context, x *keepalive, command int, answer func(*cedar.Conn) error) error {
	const op = "claims.tellSchedd"
	to, err := cedar.ParseSinful(x.client.Address)
	if err != nil {
		return errs.E(op, errs.Invalid, x.client.Schedd, err)
	}
	select {
	case s.keepalives.slots <- struct{}{}:
		defer func() { <-s.keepalives.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, scheddPatience)
	defer cancel()
	o := security.Options{}
	if hasSession(x.claim) {
		o.Session = x.claim.Public
	}
	conn, _, err := s.cfg.Open.Command(ctx, to, command, o)
	if err != nil {
		return err
	}
	defer conn.Close()
	release := conn.Bind(ctx)
	defer release()
	conn.PutSecret(claim.Secret(x.claim.Wire()))
	if err := conn.EndMessage(); err != nil || answer == nil {
		return err
	}
	return answer(conn)
}

// claimEnded tells the schedd of a claim that it has none any more, unless it
// gave it back itself or has not been heard of for the whole lease. It does not
// block.
func (s *Server) claimEnded(e ep.ClaimEnded) {
	x, ok := s.keepalives.end(e.Claim)
	if !ok || e.ByClient || x.lapsed {
		return
	}
	s.keepalives.ending.Go(func() {
		ctx, cancel := context.WithTimeout(s.keepalives.open, scheddPatience)
		defer cancel()
		if err := s.tellSchedd(ctx, x, command.ReleaseClaim, nil); err != nil {
			s.log.Warn("the schedd was not told that its claim has ended", "claim", x.claim.String(), "schedd", x.client.Schedd, "err", err)
		}
	})
}
