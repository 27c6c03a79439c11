// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

const (
	maxQueries    = 8                // for which ads are being made at the same time; others wait
	queryLength   = 1 << 20          // bytes of a query ad
	queryPatience = 15 * time.Second // for the query to arrive
	waitLongest   = 30 * time.Minute // that a peer may wait for its answer
	answerLimit   = 60 * time.Second // for the whole answer to be taken
	querySteps    = 2_000_000        // that the constraint may take in all ads together, 100 ms at most,
	queryAdSteps  = 500              // and these for each ad, 25 µs at most: two usual regular expressions
)

// Commands are the commands that only look.
func (a *Queries) Commands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.QueryStartdAds:    a.answerQuery,
		command.QueryMultipleAds:  a.answerQuery,
		command.GiveState:         a.giveState,
		command.GiveTotalsClassAd: a.giveTotals,
		command.GetHistory:        a.getHistory,
	})
}

// QueryConfig is what answers to queries are made of.
type QueryConfig struct {
	Owner engine.Owner
	Ads   *ads.Source
	// History passes the jobs that ran here to found, the newest first, until
	// that returns false, and says how many records cannot be read. Nil refuses
	// queries of the history.
	History func(ctx context.Context, q OldJobs, found func(*classad.Ad) bool) (malformed int64, err error)
	Clock   clock.Clock
}

// Queries answer those who want to see ads or the jobs that ran here.
type Queries struct {
	cfg     QueryConfig
	queries chan struct{} // one for each query whose answer is made
}

// NewQueries returns what answers queries.
func NewQueries(cfg QueryConfig) *Queries {
	return &Queries{cfg: cfg, queries: make(chan struct{}, maxQueries)}
}

// query is what a peer wants to see.
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
// job's with all its environment, for every peer at the level READ.
func queryFrom(ad *classad.Ad, number int) query {
	slotsOnly := number == command.QueryStartdAds
	q := query{ad: ad, limit: -1, slots: slotsOnly, budget: classad.NewBudget(querySteps)}
	env := &classad.Env{Budget: q.budget}
	_, q.constrained = ad.Lookup(ads.AttrRequirements)
	types, _ := ad.EvalString(ads.AttrTargetType, env)
	fields := strings.FieldsFunc(types, isListSeparator)
	if len(fields) == 0 {
		q.daemon = !slotsOnly
	}
	for _, name := range fields {
		switch {
		case strings.EqualFold(name, ads.TypeDaemon):
			q.daemon = true
		case strings.EqualFold(name, ads.TypeSlot):
			q.slots = true
		case strings.EqualFold(name, ads.TypeExtra):
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
func (a *Queries) answerQuery(ctx context.Context, c *listen.Call) error {
	c.Conn.SetTimeout(queryPatience)
	ad, err := c.Ad(queryLength)
	if err != nil {
		return err
	}
	c.Conn.SetTimeout(answerLimit)
	ctx, stop := listen.UntilHangUp(ctx, c.Conn, waitLongest)
	defer stop()
	began := time.Now()
	q := queryFrom(ad, c.Command.Number)
	sent := int64(0)
	// answer writes what produce returns, as far as it was asked for. A peer that
	// reads slowly does not hold others up: making and writing are apart.
	answer := func(produce func() ([]*classad.Ad, error)) (more bool, err error) {
		if q.limit >= 0 && sent >= q.limit {
			return false, nil
		}
		made, err := a.chosen(ctx, &q, produce)
		if err != nil || made == nil {
			return false, err
		}
		for _, ad := range made {
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
			ad, err := a.cfg.Ads.Daemon(ctx)
			return []*classad.Ad{ad}, err
		})
		if err != nil {
			return err
		}
	}
	var last slot.ID
	for more := q.slots; more && !c.Conn.Broken(); {
		if more, err = answer(func() ([]*classad.Ad, error) { return a.cfg.Ads.Slots(ctx, &last) }); err != nil {
			return err
		}
	}
	if q.extras {
		// The constraint and the limit are about slots.
		q.constrained, q.limit = false, -1
		if _, err := answer(func() ([]*classad.Ad, error) { return a.cfg.Ads.Extras(ctx) }); err != nil {
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
func (a *Queries) chosen(ctx context.Context, q *query, produce func() ([]*classad.Ad, error)) ([]*classad.Ad, error) {
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	defer a.leave()
	made, err := produce()
	if err != nil || len(made) == 0 {
		return nil, err
	}
	q.budget.Grant(queryAdSteps * len(made))
	now := a.cfg.Clock.Now().Wall
	kept := made[:0]
	for _, ad := range made {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !q.constrained || q.accepts(ad, now) {
			kept = append(kept, q.projection.of(ad))
		}
		if q.budget.Spent() {
			// The answer has no place for an error, and one that lacks ads would
			// pass for a whole one: the tool is to see that it ends early.
			return nil, errs.E("collector.answerQuery", errs.Exhausted, ads.AttrRequirements,
				fmt.Errorf("the constraint takes more than %d steps, and %d for each ad of this machine: ask with a simpler one", querySteps, queryAdSteps))
		}
	}
	return kept, nil
}

// enter waits for a place among the queries whose answers are made. Without an error
// the caller has one until leave.
func (a *Queries) enter(ctx context.Context) error {
	select {
	case a.queries <- struct{}{}:
		if ctx.Err() == nil {
			return nil
		}
		a.leave()
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

func (a *Queries) leave() { <-a.queries }

// accepts reports whether an ad satisfies the query.
func (q *query) accepts(ad *classad.Ad, now time.Time) bool {
	return classad.NewMatcher(q.ad, &classad.Env{Now: now, Budget: q.budget}).Accepts(ad)
}

// giveState answers with one state for the whole machine: Claimed or
// Preempting if one slot is, then Owner if one is, and else that of the last.
func (a *Queries) giveState(ctx context.Context, c *listen.Call) error {
	state := ""
	if err := a.cfg.Owner.Do(ctx, func(t engine.Turn) { state = stateOf(t.Engine) }); err != nil {
		return err
	}
	c.Conn.PutString(state)
	return c.Conn.EndMessage()
}

func stateOf(e engine.Slots) string {
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
func (a *Queries) giveTotals(ctx context.Context, c *listen.Call) error {
	ad, err := a.cfg.Ads.Daemon(ctx)
	if err != nil {
		return err
	}
	totals := classad.NewAd()
	for name, e := range ad.All() {
		if strings.HasPrefix(name, "Total") || name == ads.AttrName || name == ads.AttrMyAddress {
			totals.Set(name, e)
		}
	}
	if totals.Len() == 0 {
		return errs.E("collector.giveTotals", errs.Internal, "", fmt.Errorf("the daemon's ad has no totals"))
	}
	c.Conn.PutAd(totals, cedar.AdOptions{NoPrivate: true})
	return c.Conn.EndMessage()
}
