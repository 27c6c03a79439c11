// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Commands are those of owners and admins, of the tools that ask in ads, and of
// condor_kbdd.
func (s *Server) Commands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.VacateAllClaims:    s.vacateAll,
		command.VacateAllFast:      s.vacateAll,
		command.VacateClaim:        s.vacateClaim,
		command.VacateClaimFast:    s.vacateClaim,
		command.DrainJobs:          s.drainJobs,
		command.CancelDrainJobs:    s.cancelDrain,
		command.CAAuthCmd:          s.command,
		command.CACmd:              s.command,
		command.Rehome:             s.rehome,
		command.XEventNotification: s.touched,
	})
}

func manner(fast bool) ep.Manner {
	if fast {
		return ep.Fast
	}
	return ep.Graceful
}

// nameLength bounds a message that is the name of a slot.
const nameLength = 128 << 10

func (s *Server) vacateAll(ctx context.Context, c *listen.Call) error {
	c.Log.Info("vacating all claims")
	return s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		t.Step(ep.VacateRequested{Manner: manner(c.Command.Number == command.VacateAllFast)})
	})
}

func (s *Server) vacateClaim(ctx context.Context, c *listen.Call) error {
	c.Conn.LimitMessage(nameLength)
	name, err := c.Conn.String()
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	found := false
	err = s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		var id slot.ID
		if id, found = slotNamed(t.Engine, name); found {
			t.Step(ep.VacateRequested{Slot: id, Manner: manner(c.Command.Number == command.VacateClaimFast)})
		}
	})
	if err == nil && !found {
		err = errs.E("admin.VACATE_CLAIM", errs.NotFound, listen.Shown(name), errors.New("no slot has this name"))
	}
	return err
}

// slotNamed finds a slot by its full name or by the part before the host.
func slotNamed(e engine.Slots, name string) (slot.ID, bool) {
	for v := range e.Views() {
		if strings.EqualFold(v.FullName, name) || strings.EqualFold(v.Name, name) {
			return v.ID, true
		}
	}
	return slot.ID{}, false
}

// The words of drains.
const (
	attrCheckExpr    = "CheckExpr"
	attrStartExpr    = "StartExpr"
	attrHowFast      = "HowFast"
	attrOnCompletion = "ResumeOnCompletion"
	attrDrainReason  = "DrainReason"
	attrDeadline     = "Deadline"
	attrRequestID    = "RequestID"
	attrVersion      = "CondorVersion"
	attrPlatform     = "CondorPlatform"
)

// drainFrom reads a drain request. A haste between two known ones is the
// slower of both, as in HTCondor; a completion that is not known is
// refused.
func drainFrom(ad *classad.Ad, by string) (ep.DrainRequested, error) {
	ev := ep.DrainRequested{By: by}
	switch fast, _ := ad.EvalInt(attrHowFast, nil); {
	case fast > 10:
		ev.How = ep.DrainFast
	case fast > 0:
		ev.How = ep.DrainQuick
	}
	then, _ := ad.EvalInt(attrOnCompletion, nil)
	if then < int64(ep.ThenStay) || then > int64(ep.ThenReconfigure) {
		return ev, errs.E("admin.DRAIN_JOBS", errs.Invalid, attrOnCompletion, errors.New("want 0 stay drained, 1 resume, 2 exit, 3 restart, 4 reconfigure"))
	}
	ev.Then = ep.Completion(then)
	ev.Reason, _ = ad.EvalString(attrDrainReason, nil)
	if n, ok := ad.EvalInt(attrDeadline, nil); ok && n > 0 {
		ev.Deadline = time.Unix(n, 0)
	}
	ev.Check, _ = ad.Lookup(attrCheckExpr)
	ev.Start, _ = ad.Lookup(attrStartExpr)
	return ev, nil
}

func (s *Server) drainJobs(ctx context.Context, c *listen.Call) error {
	ad, err := c.Ad(command.JobMessage)
	if err != nil {
		return err
	}
	ev, err := drainFrom(ad, c.Request.Peer.User)
	if err != nil {
		return answerDrain(c, ep.Reply{Err: err})
	}
	r, err := s.cfg.Requests.Ask(ctx, func(ref ep.Ref) ep.Event { ev.Ref = ref; return ev })
	if err != nil {
		return err
	}
	return answerDrain(c, r)
}

func (s *Server) cancelDrain(ctx context.Context, c *listen.Call) error {
	ad, err := c.Ad(command.JobMessage)
	if err != nil {
		return err
	}
	id, _ := ad.EvalString(attrRequestID, nil)
	r, err := s.cfg.Requests.Ask(ctx, func(ref ep.Ref) ep.Event { return ep.DrainCancelled{Ref: ref, ID: id} })
	if err != nil {
		return err
	}
	r.DrainID = ""
	return answerDrain(c, r)
}

func answerDrain(c *listen.Call, r ep.Reply) error {
	ad := classad.NewAd()
	ad.SetBool(ads.AttrResult, r.Err == nil)
	switch {
	case r.Err != nil:
		c.Log.Info("drain refused", "code", r.Code, "why", r.Err)
		ad.SetString(ads.AttrErrorString, r.Err.Error())
		ad.SetInt(ads.AttrErrorCode, int64(r.Code))
	case r.DrainID != "":
		ad.SetString(attrRequestID, r.DrainID)
	}
	c.Conn.PutAd(ad, cedar.AdOptions{})
	return c.Conn.EndMessage()
}

// command answers a command whose name stands in an ad.
func (s *Server) command(ctx context.Context, c *listen.Call) error {
	ad, err := c.Ad(command.JobMessage)
	if err != nil {
		return err
	}
	name, _ := ad.EvalString("Command", nil)
	switch {
	case strings.EqualFold(name, "CA_UPDATE_MACHINE_AD"):
		return s.updateMachineAd(ctx, c, ad)
	case strings.EqualFold(name, "CA_LOCATE_STARTER"):
		result, why, more, err := s.cfg.LocateStarter(ctx, c, ad)
		if err != nil {
			return err
		}
		return s.answerCommand(ctx, c, result, why, more)
	}
	return s.answerCommand(ctx, c, ads.ResultInvalid, "Unknown command ("+listen.Shown(name)+") in ClassAd", nil)
}

// mostUpdated and mostUpdatedBytes bound what condor_update_machine_ad may add: it
// stands in the ad of every slot, here and at all collectors, as long as the EP runs.
const (
	mostUpdated      = 1000
	mostUpdatedBytes = 1 << 20 // of the ad's text
)

// tooMuch says why an ad has more than may be added, "" if it has not.
func tooMuch(ad *classad.Ad) string {
	switch {
	case ad.Len() > mostUpdated:
		return "too many attributes"
	case len(ad.Text(classad.Old)) > mostUpdatedBytes:
		return "the attributes are too long"
	}
	return ""
}

// updateMachineAd adds attributes to the ads of all slots for as long as the
// EP runs (condor_update_machine_ad).
func (s *Server) updateMachineAd(ctx context.Context, c *listen.Call, ad *classad.Ad) error {
	if c.Request.Peer.HoldsClaim() { // what it adds would be read by the policy of every slot
		return s.answerCommand(ctx, c, ads.ResultNotAuthorized, "CA_UPDATE_MACHINE_AD needs somebody whom ALLOW_WRITE names, not the holder of a claim id", nil)
	}
	for _, name := range [...]string{"Command", ads.AttrMyType, ads.AttrTargetType} {
		ad.Delete(name)
	}
	for _, name := range ad.Names() {
		if classad.IsPrivate(name) {
			ad.Delete(name)
		}
	}
	if why := tooMuch(ad); why != "" {
		return s.answerCommand(ctx, c, ads.ResultInvalid, why, nil)
	}
	full := ""
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		all := classad.NewAd()
		if s.extras != nil {
			all.Update(s.extras)
		}
		all.Update(ad)
		if full = tooMuch(all); full != "" {
			return
		}
		s.extras = all
		t.Step(ep.Published{Source: "condor_update_machine_ad", Attrs: all})
	}); err != nil {
		return err
	}
	if full != "" {
		return s.answerCommand(ctx, c, ads.ResultFailure, full, nil)
	}
	c.Log.Info("machine ad updated", "attributes", ad.Len())
	return s.answerCommand(ctx, c, ads.ResultSuccess, "", nil)
}

// answerCommand answers a command in an ad, with what every such answer has.
func (s *Server) answerCommand(ctx context.Context, c *listen.Call, result, why string, more *classad.Ad) error {
	daemon, err := s.cfg.Ads.Daemon(ctx)
	if err != nil {
		return err
	}
	ad := classad.NewAd()
	if more != nil {
		ad.Update(more)
	}
	for _, name := range [...]string{attrVersion, attrPlatform} {
		if e, ok := daemon.Lookup(name); ok {
			ad.Set(name, e)
		}
	}
	ad.SetString(ads.AttrResult, result)
	if why != "" {
		ad.SetString(ads.AttrErrorString, why)
	}
	ad.SetString(ads.AttrMyType, "Reply")
	ad.SetString(ads.AttrTargetType, "Command")
	c.Conn.PutAd(ad, cedar.AdOptions{NoPrivate: true})
	return c.Conn.EndMessage()
}
