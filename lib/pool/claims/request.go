// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// What a request asks of the startd stands in its ad.
const (
	askLeftovers    = "_condor_SEND_LEFTOVERS"
	askSecureID     = "_condor_SECURE_CLAIM_ID"
	askClaimedAd    = "_condor_SEND_CLAIMED_AD"
	askWhole        = "_condor_CLAIM_PARTITIONABLE_SLOT"
	askWholeTime    = "_condor_PARTITIONABLE_SLOT_CLAIM_TIME"
	askMatching     = "_condor_WANT_MATCHING"
	askDynamicSlots = "_condor_NUM_DYNAMIC_SLOTS"
	askStarterAlive = "_condor_StartdHandlesAlives" // the field's spelling; it means the starter
	askFailureAd    = "_condor_send_activation_failure_ad"
)

// request is REQUEST_CLAIM as it came.
type request struct {
	event    ep.ClaimRequested
	secureID bool // leftovers are sent as a secret
	slotAds  bool // the ads of claimed slots are wanted
}

// readRequest reads the payload of REQUEST_CLAIM. Only schedds that know our version
// send how many claims are to be ended for it.
func readRequest(conn *cedar.Conn) (request, error) {
	var r request
	id, err := claimID(conn, false)
	if err != nil {
		return r, err
	}
	job, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		return r, err
	}
	schedd, err := conn.String()
	if err != nil {
		return r, err
	}
	interval, err := conn.Int()
	if err != nil {
		return r, err
	}
	var evict []claim.ID
	if conn.More() {
		n, err := conn.IntIn(0, maxEvicted)
		if err != nil {
			return r, err
		}
		for range n {
			other, err := claimID(conn, false)
			if err != nil {
				return r, err
			}
			evict = append(evict, other)
		}
	}
	if err := conn.EndOfMessage(); err != nil {
		return r, err
	}
	r = requestFrom(id, job, schedd, interval, evict)
	return r, plausible(r.event.Client)
}

// How long, in bytes, the names in a request and the address of its schedd may be.
// They are shown in ads and in the log for as long as the claim lives.
const (
	mostName    = 1024
	mostAddress = 64 << 10
)

// plausible refuses what is far too long for the names of a client.
func plausible(c claim.Client) error {
	for _, f := range [...]struct {
		what, text string
		most       int
	}{
		{"User", c.User, mostName}, {"ScheddName", c.Schedd, mostName}, {"AccountingGroup", c.AccountingGroup, mostName},
		{"ProjectName", c.Project, mostName}, {"the schedd's address", c.Address, mostAddress},
	} {
		if len(f.text) > f.most {
			return errs.E("claims.REQUEST_CLAIM", errs.Invalid, f.what, fmt.Errorf("it has %d bytes; at most %d are taken", len(f.text), f.most))
		}
	}
	return nil
}

// requestFrom is the request of a payload: what it asks of the startd stands in the
// job's ad, and is taken out of it.
func requestFrom(id claim.ID, job *classad.Ad, schedd string, interval int64, evict []claim.ID) request {
	var r request
	flag := func(name string) bool {
		on, _ := job.EvalBool(name, nil)
		return on
	}
	number := func(name string, missing, most int64) int64 {
		n, ok := job.EvalInt(name, nil)
		if !ok {
			return missing
		}
		return min(max(n, -1), most) // what is less than nothing is refused
	}
	text := func(name string) string {
		v, _ := job.EvalString(name, nil)
		return v
	}
	r.secureID, r.slotAds = flag(askSecureID), flag(askClaimedAd)
	r.event = ep.ClaimRequested{
		// A schedd that has the id was matched with the slot by a negotiator, which
		// has decided about users' priorities.
		Priority:   true,
		Capability: id, Evict: evict, Leftovers: flag(askLeftovers), Whole: flag(askWhole),
		DynamicSlots:  int(number(askDynamicSlots, 1, maxDynamicSlots)),
		WholeTime:     time.Duration(max(0, number(askWholeTime, 0, int64(longestWholeClaimTime/time.Second)))) * time.Second,
		AliveInterval: time.Duration(min(max(interval, 0), int64(mostAliveInterval/time.Second))) * time.Second,
		Client: claim.Client{
			User: text("User"), Owner: text("User"), Address: schedd, Schedd: text("ScheddName"),
			AccountingGroup: text("AccountingGroup"), Project: text("ProjectName"),
		},
	}
	if e, ok := job.Lookup(askStarterAlive); ok {
		job.Set("StarterHandlesAlives", e)
	}
	for _, name := range [...]string{askLeftovers, askSecureID, askClaimedAd, askWhole, askWholeTime, askMatching, askDynamicSlots, askStarterAlive} {
		job.Delete(name)
	}
	r.event.Job = job
	return r
}

// suit leaves of a request what its slot can make of it: parts are of
// partitionable slots alone, and a slot as a whole is wanted in vain where the
// owner gives none.
func (s *Server) suit(t engine.Turn, ev ep.ClaimRequested) ep.ClaimRequested {
	id, ok := t.Engine.SlotOf(ev.Capability)
	if !ok {
		return ev
	}
	if v, ok := t.Engine.SlotView(id); ok && v.Kind != slot.Partitionable {
		ev.DynamicSlots, ev.Whole = 0, false
	}
	if !s.settings.Load().WholeClaims {
		ev.Whole = false
	}
	return ev
}

func (s *Server) requestClaim(ctx context.Context, c *listen.Call) error {
	c.Conn.LimitMessage(jobLength)
	r, err := readRequest(c.Conn)
	if err != nil {
		return err
	}
	if c.Addr.IsValid() {
		r.event.Client.Host = c.Addr.Addr().Unmap().String()
	}
	reply, err := s.askWatching(ctx, c.Conn, r.event)
	if err != nil {
		return err
	}
	g := reply.Granted
	if g == nil {
		c.Log.Info("claim refused", "claim", r.event.Capability.String(), "user", listen.Shown(r.event.Client.User), "why", reply.Err)
		c.Conn.PutInt(command.NotOK)
		return c.Conn.EndMessage()
	}
	c.Log.Info("claim granted", "slot", g.Name, "claim", g.Claim.String(), "user", listen.Shown(r.event.Client.User), "more", len(g.More))
	if err := s.sendGrant(c.Conn, &r, g); err != nil {
		// The schedd does not know that it has them.
		s.giveBack(ctx, g)
		return err
	}
	return nil
}

// sendGrant writes what was granted. A claimed partitionable slot is left out:
// the schedd knows it.
func (s *Server) sendGrant(conn *cedar.Conn, r *request, g *ep.Grant) error {
	id := s.cfg.Ads.Identity()
	public := func(ad *classad.Ad) *classad.Ad {
		id.Complete(ad)
		return ad
	}
	if r.slotAds {
		for i := -1; i < len(g.More); i++ {
			one := g
			if i >= 0 {
				one = &g.More[i]
			}
			if whole, _ := one.Ad.EvalBool("PartitionableSlot", nil); whole {
				continue
			}
			conn.PutInt(command.SlotAd)
			conn.PutSecret(claim.Secret(one.Claim.Wire()))
			conn.PutAd(public(one.Ad), cedar.AdOptions{NoPrivate: true})
		}
	}
	switch rest := g.Leftovers; {
	case rest == nil:
		conn.PutInt(command.OK)
	case r.secureID:
		conn.PutInt(command.LeftoversSecret)
		conn.PutSecret(claim.Secret(rest.Claim.Wire()))
		conn.PutAd(public(rest.Ad), cedar.AdOptions{NoPrivate: true})
	default:
		conn.PutInt(command.Leftovers)
		conn.PutString(rest.Claim.Wire())
		conn.PutAd(public(rest.Ad), cedar.AdOptions{NoPrivate: true})
	}
	return conn.EndMessage()
}

// giveBack ends claims that their holder never heard of.
func (s *Server) giveBack(ctx context.Context, g *ep.Grant) {
	err := s.cfg.Owner.Do(context.WithoutCancel(ctx), func(t engine.Turn) {
		t.Step(ep.ReleaseRequested{Claim: g.Claim})
		for _, more := range g.More {
			t.Step(ep.ReleaseRequested{Claim: more.Claim})
		}
	})
	if err != nil {
		s.log.Warn("a claim that nobody knows of stays until its lease ends", "claim", g.Claim.String(), "err", err)
	}
}

// askWatching asks for a claim, whose reply may take long: the slot has to
// be emptied first. A schedd that hangs up meanwhile, or gives the claim back,
// does not want it any more.
func (s *Server) askWatching(ctx context.Context, conn *cedar.Conn, ev ep.ClaimRequested) (ep.Reply, error) {
	const op = "claims.REQUEST_CLAIM"
	ref, reply := s.requests.New()
	defer s.requests.Drop(ref)
	ev.Ref = ref
	given := s.keepalives.expect(&ev)
	defer s.keepalives.forget(ref)
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) { t.Step(s.suit(t, ev)) }); err != nil {
		return ep.Reply{}, err
	}
	select {
	case r := <-reply: // nearly always
		return s.unlessGiven(ctx, given, r)
	default:
	}
	hungUp, stop := listen.WatchHangUp(conn, requestClaimPatience)
	var why error
	select {
	case r := <-reply:
		stop()
		return s.unlessGiven(ctx, given, r)
	case <-hungUp:
		why = errs.E(op, errs.Transient, "", listen.ErrHungUp)
	case <-given:
		why = errs.E(op, errs.Transient, "", errGivenBack)
	case <-ctx.Done():
		why = errs.E(op, errs.Expired, "", ctx.Err())
	}
	stop()
	if err := s.cfg.Owner.Do(context.WithoutCancel(ctx), func(t engine.Turn) { t.Step(ep.ClaimWithdrawn{Ref: ref}) }); err != nil {
		return ep.Reply{}, err
	}
	select {
	case r := <-reply: // it was on its way
		if r.Granted != nil {
			s.giveBack(ctx, r.Granted)
		}
	default:
	}
	return ep.Reply{}, why
}

// unlessGiven returns the reply to a request, unless the schedd has given the claim
// back before it was granted: it was told that this is done.
func (s *Server) unlessGiven(ctx context.Context, given <-chan struct{}, r ep.Reply) (ep.Reply, error) {
	select {
	case <-given:
	default:
		return r, nil
	}
	if r.Granted != nil {
		s.giveBack(ctx, r.Granted)
	}
	return ep.Reply{}, errs.E("claims.REQUEST_CLAIM", errs.Transient, "", errGivenBack)
}
