// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// resultInvalidState has a schedd try again a second later.
const resultInvalidState = "InvalidState"

// mostCoalesced bounds how many claims may be named to be made one.
const mostCoalesced = 1 << 12

// coalesceSlots makes one slot of several that the asker has claimed, for a job
// that has them to itself (condor_now).
func (s *Server) coalesceSlots(ctx context.Context, c *listen.Call) error {
	const op = "claims.COALESCE_SLOTS"
	failing := s.settings.Load().failing
	if err := failing.await(ctx); err != nil {
		return err
	}
	c.Conn.LimitMessage(jobLength)
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err != nil {
		return err
	}
	job, err := c.Ad(jobLength)
	if err != nil {
		return err
	}
	list, ok := ad.EvalString(ads.AttrClaimIDList, nil)
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
	if !ok || len(names) == 0 || len(names) > mostCoalesced {
		return errs.E(op, errs.Invalid, ads.AttrClaimIDList, errors.New("want a list of claim ids"))
	}
	if result, text := failing.refuses(); result != "" {
		c.Log.Info("refused to coalesce slots, for COALESCE_FAILURE_MODE is set: take the line out of the configuration", "claims", len(names))
		return answerCoalesce(c, ads.AttrErrorString, text, result, classad.NewAd())
	}
	ev := ep.CoalesceRequested{Job: job}
	var client claim.Client
	for _, name := range names {
		id, _ := claim.ParseID(name)
		ev.Claims = append(ev.Claims, id)
	}
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		id, _ := t.Engine.SlotOf(ev.Claims[0])
		if v, ok := t.Engine.SlotView(id); ok {
			client = v.Client
		}
	}); err != nil {
		return err
	}
	ref, reply := s.requests.New()
	defer s.requests.Drop(ref)
	ev.Ref = ref
	s.keepalives.expect(&ep.ClaimRequested{Ref: ref, Job: job, Client: client}) // what is granted is kept alive
	defer s.keepalives.forget(ref)
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) { t.Step(ev) }); err != nil {
		return err
	}
	r := <-reply // which came with the step
	if r.Err != nil || r.Granted == nil {
		c.Log.Info("refused to coalesce slots", "claims", len(names), "why", r.Err)
		return answerCoalesce(c, ads.AttrErrorString, coalesceText(r.Err), coalesceResult(r.Err), classad.NewAd())
	}
	g := r.Granted
	id := s.cfg.Ads.Identity()
	id.Complete(g.Ad)
	c.Log.Info("slots coalesced", "claims", len(names), "slot", g.Name, "claim", g.Claim.String())
	name := "ClaimId"
	if failing == coalesceNoID {
		name = ""
	}
	if err = answerCoalesce(c, name, g.Claim.Wire(), ads.ResultSuccess, g.Ad); err != nil {
		s.giveBack(ctx, g) // the schedd does not know of it
	}
	return err
}

// answerCoalesce sends the ad with the result, and one more attribute unless it
// has no name, and then that of a slot.
func answerCoalesce(c *listen.Call, name, value, result string, slotAd *classad.Ad) error {
	answer := classad.NewAd()
	answer.SetString(ads.AttrResult, result)
	if name != "" {
		answer.SetString(name, value)
	}
	c.Conn.PutAd(answer, cedar.AdOptions{})
	c.Conn.PutAd(slotAd, cedar.AdOptions{NoPrivate: true})
	return c.Conn.EndMessage()
}

// coalesceResult says what a schedd is to do about a refusal: to ask again, to
// give up, or to find its mistake.
func coalesceResult(err error) string {
	switch {
	case errs.Is(err, errs.Transient):
		return resultInvalidState
	case errs.Is(err, errs.Invalid), errs.Is(err, errs.NotFound):
		return ads.ResultInvalid
	}
	return ads.ResultFailure
}

// coalesceText is what the schedd is answered, in HTCondor's words.
func coalesceText(err error) string {
	var e *errs.Error
	if coalesceResult(err) == ads.ResultFailure || !errors.As(err, &e) || e.Err == nil {
		return "Unable to coalesce any slots"
	}
	return e.Err.Error()
}
