// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

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
	"github.com/execpoint/execpoint/lib/slot"
)

// adminCommands are those of owners and admins, and of the tools that ask in
// ads.
func (p *Pool) adminCommands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.VacateAllClaims: p.vacateAll,
		command.VacateAllFast:   p.vacateAll,
		command.VacateClaim:     p.vacateClaim,
		command.VacateClaimFast: p.vacateClaim,
		command.DrainJobs:       p.drainJobs,
		command.CancelDrainJobs: p.cancelDrain,
		command.CAAuthCmd:       p.command,
		command.CACmd:           p.command,
	})
}

func manner(fast bool) ep.Manner {
	if fast {
		return ep.Fast
	}
	return ep.Graceful
}

func (p *Pool) vacateAll(ctx context.Context, c *listen.Call) error {
	c.Log.Info("vacating all claims")
	return p.cfg.Owner.Do(ctx, func(t Turn) { t.Step(ep.VacateRequested{Manner: manner(c.Command.Number == command.VacateAllFast)}) })
}

func (p *Pool) vacateClaim(ctx context.Context, c *listen.Call) error {
	bound(c.Conn, idLength)
	name, err := c.Conn.String()
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	found := false
	err = p.cfg.Owner.Do(ctx, func(t Turn) {
		var id slot.ID
		if id, found = slotNamed(t.Engine, name); found {
			t.Step(ep.VacateRequested{Slot: id, Manner: manner(c.Command.Number == command.VacateClaimFast)})
		}
	})
	if err == nil && !found {
		err = errs.E("pool.VACATE_CLAIM", errs.NotFound, shown(name), errors.New("no slot has this name"))
	}
	return err
}

// slotNamed finds a slot by its full name or by the part before the host.
func slotNamed(e *ep.Engine, name string) (slot.ID, bool) {
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
	attrResult       = "Result"
	attrErrorString  = "ErrorString"
	attrErrorCode    = "ErrorCode"
	attrVersion      = "CondorVersion"
	attrPlatform     = "CondorPlatform"
)

func readAd(c *listen.Call) (*classad.Ad, error) {
	bound(c.Conn, jobLength)
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	return ad, err
}

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
		return ev, errs.E("pool.DRAIN_JOBS", errs.Invalid, attrOnCompletion, errors.New("want 0 stay drained, 1 resume, 2 exit, 3 restart, 4 reconfigure"))
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

func (p *Pool) drainJobs(ctx context.Context, c *listen.Call) error {
	ad, err := readAd(c)
	if err != nil {
		return err
	}
	ev, err := drainFrom(ad, c.Request.Peer.User)
	if err != nil {
		return answerDrain(c, ep.Reply{Err: err})
	}
	r, err := p.ask(ctx, func(ref ep.Ref) ep.Event { ev.Ref = ref; return ev }, nil)
	if err != nil {
		return err
	}
	return answerDrain(c, r)
}

func (p *Pool) cancelDrain(ctx context.Context, c *listen.Call) error {
	ad, err := readAd(c)
	if err != nil {
		return err
	}
	id, _ := ad.EvalString(attrRequestID, nil)
	r, err := p.ask(ctx, func(ref ep.Ref) ep.Event { return ep.DrainCancelled{Ref: ref, ID: id} }, nil)
	if err != nil {
		return err
	}
	r.DrainID = ""
	return answerDrain(c, r)
}

func answerDrain(c *listen.Call, r ep.Reply) error {
	ad := classad.NewAd()
	ad.SetBool(attrResult, r.Err == nil)
	switch {
	case r.Err != nil:
		c.Log.Info("drain refused", "code", r.Code, "why", r.Err)
		ad.SetString(attrErrorString, r.Err.Error())
		ad.SetInt(attrErrorCode, int64(r.Code))
	case r.DrainID != "":
		ad.SetString(attrRequestID, r.DrainID)
	}
	c.Conn.PutAd(ad, cedar.AdOptions{})
	return c.Conn.EndMessage()
}

// The results of commands in ads.
const (
	resultSuccess = "Success"
	resultFailure = "Failure"
	resultInvalid = "InvalidRequest"

	resultNotAuthorized = "NotAuthorized"
)

// command answers a command whose name stands in an ad.
func (p *Pool) command(ctx context.Context, c *listen.Call) error {
	ad, err := readAd(c)
	if err != nil {
		return err
	}
	name, _ := ad.EvalString("Command", nil)
	switch {
	case strings.EqualFold(name, "CA_UPDATE_MACHINE_AD"):
		return p.updateMachineAd(ctx, c, ad)
	case strings.EqualFold(name, "CA_LOCATE_STARTER"):
		return p.locateStarter(ctx, c, ad)
	}
	return p.answerCommand(ctx, c, resultInvalid, "Unknown command ("+shown(name)+") in ClassAd", nil)
}

// mostUpdated bounds what condor_update_machine_ad may add.
const mostUpdated = 1000

// updateMachineAd adds attributes to the ads of all slots for as long as the
// EP runs (condor_update_machine_ad).
func (p *Pool) updateMachineAd(ctx context.Context, c *listen.Call, ad *classad.Ad) error {
	if c.Request.Peer.HoldsClaim() { // what it adds would be read by the policy of every slot
		return p.answerCommand(ctx, c, resultNotAuthorized, "CA_UPDATE_MACHINE_AD needs somebody whom ALLOW_WRITE names, not the holder of a claim id", nil)
	}
	for _, name := range [...]string{"Command", attrMyType, attrTargetType} {
		ad.Delete(name)
	}
	for _, name := range ad.Names() {
		if classad.IsPrivate(name) {
			ad.Delete(name)
		}
	}
	if ad.Len() > mostUpdated {
		return p.answerCommand(ctx, c, resultInvalid, "too many attributes", nil)
	}
	full := false
	if err := p.cfg.Owner.Do(ctx, func(t Turn) {
		all := classad.NewAd()
		if p.extras != nil {
			all.Update(p.extras)
		}
		all.Update(ad)
		if full = all.Len() > mostUpdated; full {
			return
		}
		p.extras = all
		t.Step(ep.Published{Source: "condor_update_machine_ad", Attrs: all})
	}); err != nil {
		return err
	}
	if full {
		return p.answerCommand(ctx, c, resultFailure, "too many attributes", nil)
	}
	c.Log.Info("machine ad updated", "attributes", ad.Len())
	return p.answerCommand(ctx, c, resultSuccess, "", nil)
}

// answerCommand answers a command in an ad, with what every such answer has.
func (p *Pool) answerCommand(ctx context.Context, c *listen.Call, result, why string, more *classad.Ad) error {
	daemon, err := p.daemonAd(ctx)
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
	ad.SetString(attrResult, result)
	if why != "" {
		ad.SetString(attrErrorString, why)
	}
	ad.SetString(attrMyType, "Reply")
	ad.SetString(attrTargetType, "Command")
	c.Conn.PutAd(ad, cedar.AdOptions{NoPrivate: true})
	return c.Conn.EndMessage()
}
