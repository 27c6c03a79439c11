// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/ads"
)

// attrSlotPrefix names what the name of a data slot begins with, keyCategory the category
// of a line of the log.
const (
	attrSlotPrefix = "DesiredSlotPrefix"
	keyCategory    = "cat"
)

// dataSlot makes a data slot of an idle slot that the asker has claimed. The claim goes
// on under its id.
func (s *Server) dataSlot(ctx context.Context, c *listen.Call) error {
	const op = "claims.COMMAND_DATA_SLOT"
	// Word for word, and without who asked, as HTCondor's tests look for it.
	s.log.Info(fmt.Sprintf("command_data_slot(): authenticated via %s.", cmp.Or(c.Request.Peer.Method, "(none)")), slog.String(keyCategory, "D_TEST"))
	c.Conn.LimitMessage(jobLength)
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err != nil {
		return err
	}
	job, err := c.Ad(jobLength)
	if err != nil {
		return err
	}
	text, ok := ad.EvalString("ClaimId", nil)
	if !ok {
		return errs.E(op, errs.Invalid, "ClaimId", errors.New("want a claim id"))
	}
	id, _ := claim.ParseID(text)
	prefix, _ := ad.EvalString(attrSlotPrefix, nil)
	r, err := s.requests.Ask(ctx, func(ref ep.Ref) ep.Event {
		return ep.DataSlotRequested{Ref: ref, Claim: id, Job: job, Prefix: prefix}
	})
	if err != nil {
		return err
	}
	if r.Err != nil || r.Granted == nil {
		c.Log.Info("refused to make a data slot", "claim", id.String(), "why", r.Err)
		return answerCoalesce(c, ads.AttrErrorString, dataSlotText(r.Err), coalesceResult(r.Err), classad.NewAd())
	}
	g := r.Granted
	us := s.cfg.Ads.Identity()
	us.Complete(g.Ad)
	c.Log.Info("data slot made", "slot", g.Name, "claim", g.Claim.String())
	return answerCoalesce(c, "ClaimId", g.Claim.Wire(), ads.ResultSuccess, g.Ad)
}

// dataSlotText is what the schedd is answered, in HTCondor's words where it has any.
func dataSlotText(err error) string {
	var e *errs.Error
	if coalesceResult(err) == ads.ResultFailure || !errors.As(err, &e) || e.Err == nil {
		return "command_data_slot(): create_dslot() failed"
	}
	return e.Err.Error()
}
