// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

var errGivenBack = errors.New("the claim was given back while it was waited for")

// activateClaim answers a shadow that has a job to run. Its connection is the
// starter's from then on: the shadow is answered OK before the starter begins,
// because the next bytes are the starter's.
func (s *Server) activateClaim(ctx context.Context, c *listen.Call) error {
	c.Conn.LimitMessage(jobLength)
	id, err := claimID(c.Conn, false)
	if err != nil {
		return err
	}
	job, err := readActivation(c.Conn)
	if err != nil {
		if errs.Is(err, errs.Invalid) {
			_ = refuseActivation(c.Conn, command.NotOK, command.RefusedBadRequest, "the request cannot be read", false)
		}
		return err
	}
	wanted, _ := job.EvalBool(askFailureAd, nil)
	job.Delete(askFailureAd)
	r, err := s.admit(ctx, c, id, job)
	if err == nil && r.Err == nil {
		r, err = s.askActivation(ctx, id, job)
	}
	if err != nil {
		return err
	}
	if r.Err != nil {
		c.Log.Info("activation refused", "claim", id.String(), "code", r.Code, "why", r.Err)
		answer := command.NotOK
		if r.Code == command.RefusedStillCleaning {
			answer = command.TryAgain
		}
		return refuseActivation(c.Conn, int64(answer), r.Code, r.Err.Error(), wanted)
	}
	return s.passOn(c, id, r.Activation)
}

// admit asks whether the job can be given to a starter, beside the engine: it
// may take as long as a look-up of a user. A peer that does not have the claim
// learns nothing by that.
func (s *Server) admit(ctx context.Context, c *listen.Call, id claim.ID, job *classad.Ad) (r ep.Reply, err error) {
	if s.cfg.Admit == nil {
		return ep.Reply{}, nil
	}
	var of slot.ID
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		if v, ok := claimView(t.Engine, id); ok && v.Pair == policy.ClaimedIdle {
			of = v.ID
		}
	}); err != nil || of.IsZero() {
		return ep.Reply{}, err // which the engine refuses
	}
	if why := s.cfg.Admit(ctx, of, job, c.Conn.NetConn()); why != nil {
		r = ep.Reply{Code: command.RefusedNoMatch, Err: why}
	}
	return r, nil
}

// askActivation asks the engine, which answers at once. What our starters cannot
// run they hold themselves: a refusal sends the job back to the queue, where it is
// matched again.
func (s *Server) askActivation(ctx context.Context, id claim.ID, job *classad.Ad) (ep.Reply, error) {
	const op = "claims.ACTIVATE_CLAIM"
	ref, reply := s.requests.New()
	defer s.requests.Drop(ref)
	var unfit error
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		if v, ok := claimView(t.Engine, id); ok && v.Pair == policy.ClaimedIdle && v.Activation == "" {
			if _, ok := job.EvalInt("JobUniverse", nil); !ok {
				unfit = errors.New("the job has no JobUniverse")
				return
			}
		}
		t.Step(ep.ActivateRequested{Ref: ref, Claim: id, Job: job})
	}); err != nil {
		return ep.Reply{}, err
	}
	if unfit != nil {
		return ep.Reply{Code: command.RefusedNoMatch, Err: errs.E(op, errs.Unsupported, "", unfit)}, nil
	}
	select {
	case r := <-reply:
		return r, nil
	default:
		return ep.Reply{}, errs.E(op, errs.Internal, id.String(), errors.New("the engine does not answer"))
	}
}

// claimView returns the view of the slot whose claim this is, if the id is
// wholly right.
func claimView(e engine.Slots, id claim.ID) (ep.SlotView, bool) {
	at, ok := e.SlotOf(id)
	if !ok {
		return ep.SlotView{}, false
	}
	v, ok := e.SlotView(at)
	if !ok || !v.Claimed || v.Claim.Public != id.Public ||
		subtle.ConstantTimeCompare([]byte(v.Claim.Secret.Reveal()), []byte(id.Secret.Reveal())) != 1 {
		return ep.SlotView{}, false
	}
	return v, true
}

// readActivation reads what follows the claim id: a number that means nothing
// any more, and the job.
func readActivation(conn *cedar.Conn) (*classad.Ad, error) {
	if _, err := conn.Int(); err != nil {
		return nil, err
	}
	job, err := conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = conn.EndOfMessage()
	}
	return job, err
}

// refuseActivation answers with the code and, to shadows that want it, the
// reason. A line break cannot be sent; readers know the byte in its place.
func refuseActivation(conn *cedar.Conn, answer int64, code int, why string, withAd bool) error {
	conn.PutInt(answer)
	if withAd {
		ad := classad.NewAd()
		ad.SetString("VacateReason", strings.ReplaceAll(why, "\n", "\x1e"))
		ad.SetInt("VacateReasonCode", int64(code))
		conn.PutAd(ad, cedar.AdOptions{})
	}
	return conn.EndMessage()
}
