// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
)

var (
	errHungUp    = errors.New("the other end hung up while it waited")
	errGivenBack = errors.New("the claim was given back while it was waited for")
)

// Codes for an activation that is refused, as the field numbers them.
const (
	refusedBadRequest    = 1026
	refusedNoMatch       = 1027
	refusedUnclaimed     = 1033
	refusedClaimNotFound = 1034
)

// activateClaim answers a shadow that has a job to run. Running jobs of a pool
// needs the starter's side of the conversation, which is not there: the shadow
// is told no in the way that has its schedd look for another machine.
func (p *Pool) activateClaim(ctx context.Context, c *listen.Call) error {
	bound(c.Conn, jobLength)
	id, err := claimID(c.Conn, false)
	if err != nil {
		return err
	}
	job, err := readActivation(c.Conn)
	if err != nil {
		if errs.Is(err, errs.Invalid) {
			_ = refuseActivation(c.Conn, refusedBadRequest, "the request cannot be read", false)
		}
		return err
	}
	code, why := refusedNoMatch, "this Execution Point cannot run the jobs of a pool yet"
	if err := p.cfg.Owner.Do(ctx, func(t Turn) {
		s, ok := t.Engine.SlotOf(id)
		switch v, there := t.Engine.SlotView(s); {
		case !ok || !there || !v.Claimed || v.Claim.Public != id.Public:
			code, why = refusedClaimNotFound, "no such claim"
		case v.Pair.State != policy.Claimed:
			code, why = refusedUnclaimed, "the slot is "+v.Pair.String()
		}
	}); err != nil {
		return err
	}
	c.Log.Info("activation refused", "claim", id.String(), "code", code, "why", why)
	wanted, _ := job.EvalBool(askFailureAd, nil)
	return refuseActivation(c.Conn, code, why, wanted)
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
func refuseActivation(conn *cedar.Conn, code int, why string, withAd bool) error {
	conn.PutInt(replyNotOK)
	if withAd {
		ad := classad.NewAd()
		ad.SetString("VacateReason", strings.ReplaceAll(why, "\n", "\x1e"))
		ad.SetInt("VacateReasonCode", int64(code))
		conn.PutAd(ad, cedar.AdOptions{})
	}
	return conn.EndMessage()
}

// deactivate ends the job under a claim, or asks whether another may follow.
func (p *Pool) deactivate(ctx context.Context, c *listen.Call) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	how := ep.JobDone
	switch c.Command.Number {
	case 403, 561:
		how = ep.Gracefully
	case 404:
		how = ep.Forcibly
	}
	gone := false
	if err := p.cfg.Owner.Do(ctx, func(t Turn) {
		s, ok := t.Engine.SlotOf(id)
		v, there := t.Engine.SlotView(s)
		gone = ok && there && v.Claimed && v.Claim.Public == id.Public && v.Pair.State != policy.Claimed
	}); err != nil {
		return err
	}
	if gone {
		// Closed without an answer, as the original does.
		return errs.E("pool."+c.Command.Name, errs.Conflict, id.String(), errors.New("the claim has ended already"))
	}
	r, err := p.ask(ctx, func(ref uint64) ep.Event { return ep.DeactivateRequested{Ref: ref, Claim: id, How: how} }, nil)
	if err != nil {
		return err
	}
	ad := classad.NewAd()
	ad.SetBool(attrStart, r.Err == nil && !r.Closing)
	c.Conn.PutAd(ad, cedar.AdOptions{})
	return c.Conn.EndMessage()
}
