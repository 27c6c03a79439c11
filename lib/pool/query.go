// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

const (
	maxQueries    = 8                // for which ads are being made at the same time; others wait
	queryLength   = 1 << 20          // bytes of a query ad
	queryPatience = 15 * time.Second // for the query to arrive
	answerLimit   = 60 * time.Second // for the whole answer to be taken
	querySteps    = 2_000_000        // that the constraint may take in all ads together, 100 ms at most,
	queryAdSteps  = 500              // and these for each ad, 25 µs at most: two usual regular expressions
)

// queryCommands are the commands that only look.
func (p *Pool) queryCommands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.QueryStartdAds:    p.answerQuery,
		command.QueryMultipleAds:  p.answerQuery,
		command.GiveState:         p.giveState,
		command.GiveTotalsClassAd: p.giveTotals,
	})
}

// query is what somebody wants to see.
type query struct {
	ad          *classad.Ad
	constrained bool
	slots       bool
	daemon      bool
	extras      bool  // what programs of the owner's have said, in their words
	limit       int64 // negative: none
	projection  projection
	budget      *classad.Budget // of all that is evaluated for it
}

// queryFrom reads a query ad. QUERY_STARTD_ADS asks for slots whatever the ad says;
// QUERY_MULTIPLE_ADS for the types in TargetType, or for the daemon if it names
// none. With Snapshot (condor_who -snapshot) it asks for what slots and claims are
// made of as well; of that the ads of programs are given (Machine.Extra), for which
// QUERY_MULTIPLE_ADS has to ask too. HTCondor also has three ads of each slot's inside, one of them the
// job's with all its environment, for whoever may read.
func queryFrom(ad *classad.Ad, number int) query {
	slotsOnly := number == command.QueryStartdAds
	q := query{ad: ad, limit: -1, slots: slotsOnly, budget: classad.NewBudget(querySteps)}
	env := &classad.Env{Budget: q.budget}
	_, q.constrained = ad.Lookup(attrRequirements)
	types, _ := ad.EvalString(attrTargetType, env)
	fields := strings.FieldsFunc(types, isListSeparator)
	if len(fields) == 0 {
		q.daemon = !slotsOnly
	}
	for _, name := range fields {
		switch {
		case strings.EqualFold(name, typeDaemon):
			q.daemon = true
		case strings.EqualFold(name, typeSlot):
			q.slots = true
		case strings.EqualFold(name, typeExtra):
			q.extras = true
		}
	}
	snapshot := ad.Eval("Snapshot", env)
	n, isNumber := snapshot.AsNumber()
	q.extras = (q.extras || slotsOnly) && (snapshot.IsTrue() || isNumber && n != 0)
	if n, ok := ad.EvalInt("LimitResults", env); ok {
		q.limit = n
	}
	text, _ := ad.EvalString("Projection", env)
	q.projection = projectionOf(text)
	return q
}

func isListSeparator(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' }

// answerQuery answers {1, ad}*, 0 in one message. Ads are made a few at a time
// in turns of the engine's owner, and looked at here, so that neither a large
// machine nor a costly constraint holds the engine up.
func (p *Pool) answerQuery(ctx context.Context, c *listen.Call) error {
	c.Conn.SetTimeout(queryPatience)
	bound(c.Conn, queryLength)
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	c.Conn.SetTimeout(answerLimit)
	ctx, stop := untilHangUp(ctx, c.Conn)
	defer stop()
	began := time.Now()
	q := queryFrom(ad, c.Command.Number)
	sent := int64(0)
	// answer writes what produce returns, as far as it was asked for. Nobody who
	// reads slowly holds others up: making and writing are apart.
	answer := func(produce func() ([]*classad.Ad, error)) (more bool, err error) {
		if q.limit >= 0 && sent >= q.limit {
			return false, nil
		}
		ads, err := p.chosen(ctx, &q, produce)
		if err != nil || ads == nil {
			return false, err
		}
		for _, ad := range ads {
			if q.limit >= 0 && sent >= q.limit {
				return false, nil
			}
			sent++
			c.Conn.PutInt(1)
			c.Conn.PutAd(ad, cedar.AdOptions{NoPrivate: true})
		}
		return true, nil
	}
	if q.daemon {
		_, err := answer(func() ([]*classad.Ad, error) {
			ad, err := p.daemonAd(ctx)
			return []*classad.Ad{ad}, err
		})
		if err != nil {
			return err
		}
	}
	var last slot.ID
	for more := q.slots; more && !c.Conn.Broken(); {
		if more, err = answer(func() ([]*classad.Ad, error) { return p.slotAds(ctx, &last) }); err != nil {
			return err
		}
	}
	if q.extras {
		// The constraint and the limit are about slots.
		q.constrained, q.limit = false, -1
		if _, err := answer(func() ([]*classad.Ad, error) { return p.extraAds(ctx) }); err != nil {
			return err
		}
	}
	c.Conn.PutInt(0)
	if err := c.Conn.EndMessage(); err != nil {
		return err
	}
	c.Log.Debug("query answered", "ads", sent, "took", time.Since(began))
	return nil
}

// chosen makes ads and returns those that satisfy the query, with what it asks
// for of them; nil when there are no more.
func (p *Pool) chosen(ctx context.Context, q *query, produce func() ([]*classad.Ad, error)) ([]*classad.Ad, error) {
	select {
	case p.queries <- struct{}{}:
		defer func() { <-p.queries }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ads, err := produce()
	if err != nil || len(ads) == 0 {
		return nil, err
	}
	q.budget.Grant(queryAdSteps * len(ads))
	now := p.cfg.Clock.Now().Wall
	kept := ads[:0]
	for _, ad := range ads {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !q.constrained || q.accepts(ad, now) {
			kept = append(kept, q.projection.of(ad))
		}
		if q.budget.Spent() {
			// The answer has no place for an error, and one that lacks ads would
			// pass for a whole one: the tool is to see that it ends early.
			return nil, errs.E("pool.answerQuery", errs.Exhausted, attrRequirements,
				fmt.Errorf("the constraint takes more than %d steps, and %d for each ad of this machine: ask with a simpler one", querySteps, queryAdSteps))
		}
	}
	return kept, nil
}

// accepts reports whether an ad satisfies the query.
func (q *query) accepts(ad *classad.Ad, now time.Time) bool {
	return classad.NewMatcher(q.ad, &classad.Env{Now: now, Budget: q.budget}).Accepts(ad)
}

// projection is the attributes that a peer asks for, each once; all if there
// are none.
type projection struct {
	names []string
	has   map[string]bool // the same, in lower case
}

func projectionOf(text string) projection {
	p := projection{has: map[string]bool{}}
	for name := range strings.FieldsFuncSeq(text, isListSeparator) {
		if key := strings.ToLower(name); !p.has[key] {
			p.has[key] = true
			p.names = append(p.names, name)
		}
	}
	return p
}

// in returns the names to look at: those asked for, or those of the ad if
// these are fewer. A query has room for hundreds of thousands of names.
func (p projection) in(ad *classad.Ad) []string {
	if len(p.names) <= ad.Len() {
		return p.names
	}
	var names []string
	for name := range ad.All() {
		if p.has[strings.ToLower(name)] {
			names = append(names, name)
		}
	}
	return names
}

// of returns an ad of the attributes asked for and of those that they refer
// to.
func (p projection) of(ad *classad.Ad) *classad.Ad {
	if len(p.names) == 0 {
		return ad
	}
	out := classad.NewAd()
	put := func(name string) {
		if e, ok := ad.Lookup(name); ok {
			out.Set(name, e)
		}
	}
	for _, name := range p.in(ad) {
		e, ok := ad.Lookup(name)
		if !ok {
			continue
		}
		put(name)
		if _, constant := e.LiteralValue(); constant {
			continue
		}
		if refs, ok := e.Refs(ad); ok {
			for _, r := range refs.Internal {
				put(r)
			}
		}
	}
	return out
}

// slotAds returns the ads of the slots behind last, which it moves, a chunk at
// most.
func (p *Pool) slotAds(ctx context.Context, last *slot.ID) ([]*classad.Ad, error) {
	var ads []*classad.Ad
	err := p.cfg.Owner.Do(ctx, func(t Turn) {
		for v := range t.Engine.After(*last) {
			if len(ads) == chunk {
				break
			}
			*last = v.ID
			ads = append(ads, t.Engine.PublicAd(v.ID))
		}
	})
	if err != nil {
		return nil, err
	}
	id, now := p.identity(), p.cfg.Clock.Now().Wall.Unix()
	for _, ad := range ads {
		id.public(ad)
		ad.SetInt(attrLastHeardFrom, now)
	}
	return ads, nil
}

// extraAds returns the ads of what programs of the owner's have said, without the
// secrets that got into it.
func (p *Pool) extraAds(ctx context.Context) ([]*classad.Ad, error) {
	var ads []*classad.Ad
	if err := p.cfg.Owner.Do(ctx, func(t Turn) { ads = t.Engine.Extras() }); err != nil {
		return nil, err
	}
	for _, ad := range ads {
		for _, name := range ad.Names() {
			if classad.IsPrivate(name) {
				ad.Delete(name)
			}
		}
	}
	return ads, nil
}

// daemonAd returns the ad of the daemon as a whole.
func (p *Pool) daemonAd(ctx context.Context) (*classad.Ad, error) {
	var ad *classad.Ad
	if err := p.cfg.Owner.Do(ctx, func(t Turn) { ad = t.Engine.DaemonAd(p.cfg.Problems) }); err != nil {
		return nil, err
	}
	id := p.identity()
	id.public(ad)
	p.aboutUs(ad)
	ad.SetInt(attrLastHeardFrom, p.cfg.Clock.Now().Wall.Unix())
	return ad, nil
}

// giveState answers with one state for the whole machine: Claimed or
// Preempting if one slot is, then Owner if one is, and else that of the last.
func (p *Pool) giveState(ctx context.Context, c *listen.Call) error {
	state := ""
	if err := p.cfg.Owner.Do(ctx, func(t Turn) { state = stateOf(t.Engine) }); err != nil {
		return err
	}
	c.Conn.PutString(state)
	return c.Conn.EndMessage()
}

func stateOf(e *ep.Engine) string {
	state, owner := "None", false
	for v := range e.Views() {
		switch v.Pair.State {
		case policy.Claimed, policy.Preempting:
			return v.Pair.State.String()
		case policy.Owner:
			owner = true
		}
		state = v.Pair.State.String()
	}
	if owner {
		return policy.Owner.String()
	}
	return state
}

// giveTotals answers with what the machine has and how much of it is in use.
// HTCondor has nothing to say here any more, and its clients take any ad.
func (p *Pool) giveTotals(ctx context.Context, c *listen.Call) error {
	ad, err := p.daemonAd(ctx)
	if err != nil {
		return err
	}
	totals := classad.NewAd()
	for name, e := range ad.All() {
		if strings.HasPrefix(name, "Total") || name == attrName || name == attrMyAddress {
			totals.Set(name, e)
		}
	}
	if totals.Len() == 0 {
		return errs.E("pool.giveTotals", errs.Internal, "", fmt.Errorf("the daemon's ad has no totals"))
	}
	c.Conn.PutAd(totals, cedar.AdOptions{NoPrivate: true})
	return c.Conn.EndMessage()
}
