// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/pool/ads"
)

// Codes of a query of the history that fails.
const (
	historyDisabled = 10
	historyBroken   = 4
)

// historySteps is what a constraint may take in all jobs of the history
// together, half a second at most: reading that many jobs takes longer.
const historySteps = 10_000_000

// OldJobs says which jobs of the history are wanted.
type OldJobs struct {
	Constraint *classad.Expr   // must be true of the job's ad, nil for every one
	Limit      int             // how many at most, 0 for all
	Budget     *classad.Budget // of the constraint
}

// getHistory sends the jobs that ran here from the history files, the newest
// first, to condor_history: an ad each, and one with Owner = 0 at the end. With
// StreamResults each ad is a message of its own.
func (a *Queries) getHistory(ctx context.Context, c *listen.Call) error {
	c.Conn.SetTimeout(queryPatience)
	query, err := c.Ad(command.JobMessage)
	if err != nil {
		return err
	}
	ctx, stop := listen.UntilHangUp(ctx, c.Conn, waitLongest)
	defer stop()
	select {
	case a.queries <- struct{}{}:
		defer func() { <-a.queries }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	last := classad.NewAd()
	last.SetInt("Owner", 0)
	fail := func(code int64, why string) error {
		last.SetString(ads.AttrErrorString, why)
		last.SetInt(ads.AttrErrorCode, code)
		c.Conn.PutAd(last, cedar.AdOptions{})
		return c.Conn.EndMessage()
	}
	if a.cfg.History == nil {
		return fail(historyDisabled, "Remote history has been disabled on this startd")
	}
	var q OldJobs
	q.Budget = classad.NewBudget(historySteps)
	env := &classad.Env{Budget: q.Budget}
	if n, ok := query.EvalInt("NumJobMatches", env); ok && n > 0 {
		q.Limit = int(min(n, 1<<31-1))
	}
	q.Constraint, _ = query.Lookup(ads.AttrRequirements)
	text, _ := query.EvalString("Projection", env)
	wanted := projectionOf(text)
	stream, _ := query.EvalBool("StreamResults", env)
	if stream {
		first := classad.NewAd()
		first.SetInt("Owner", 1)
		first.SetBool("StreamResults", true)
		c.Conn.PutAd(first, cedar.AdOptions{})
		if err := c.Conn.EndMessage(); err != nil {
			return err
		}
	}
	sent := int64(0)
	var broken error
	malformed, err := a.cfg.History(ctx, q, func(job *classad.Ad) bool {
		c.Conn.PutAd(wanted.of(job), cedar.AdOptions{NoPrivate: true})
		sent++
		if stream {
			broken = c.Conn.EndMessage()
		}
		return broken == nil && ctx.Err() == nil
	})
	if broken == nil && ctx.Err() != nil {
		broken = context.Cause(ctx)
	}
	if broken != nil {
		return broken
	}
	if q.Budget.Spent() {
		return fail(historyBroken, fmt.Sprintf("the constraint takes more than %d steps: ask with a simpler one, or for fewer jobs", historySteps))
	}
	if err != nil {
		c.Log.Warn("the history cannot be read", "err", err)
		return fail(historyBroken, "the history cannot be read")
	}
	last.SetInt("NumJobMatches", sent)
	last.SetInt("MalformedAds", malformed)
	last.SetInt("AdCount", sent+malformed)
	c.Conn.PutAd(last, cedar.AdOptions{})
	c.Log.Debug("history sent", "jobs", sent)
	return c.Conn.EndMessage()
}
