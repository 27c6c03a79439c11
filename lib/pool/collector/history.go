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
	Scan       int             // how many are looked at at most, 0 for all
	Since      *classad.Expr   // ends the search at the first job of which it is true, nil for none
	Budget     *classad.Budget // of Constraint and Since
}

// getHistory sends the jobs that ran here from the history files, the newest
// first, to condor_history: an ad each, and one with Owner = 0 at the end. With
// StreamResults each ad is a message of its own.
func (a *Queries) getHistory(ctx context.Context, c *listen.Call) error {
	c.Conn.SetTimeout(queryPatience)
	asked, err := c.Ad(command.JobMessage)
	if err != nil {
		return err
	}
	ctx, stop := listen.UntilHangUp(ctx, c.Conn, waitLongest)
	defer stop()
	if err := a.enter(ctx); err != nil {
		return err
	}
	h := &historyAnswer{conn: c.Conn, last: classad.NewAd()}
	h.last.SetInt("Owner", 0)
	if forwards, _ := asked.EvalBool("HistoryReadForwards", nil); forwards && a.cfg.History != nil {
		a.leave()
		return h.fail(historyBroken, "this startd reads its history from the newest job on: ask without -forwards")
	}
	if a.cfg.History == nil {
		a.leave()
		return h.fail(historyDisabled, "Remote history has been disabled on this startd")
	}
	malformed, err := a.sendJobs(ctx, h, asked)
	switch {
	case h.broken != nil:
		return h.broken
	case h.budget.Spent():
		return h.fail(historyBroken, fmt.Sprintf("the constraint takes more than %d steps: ask with a simpler one, or for fewer jobs", historySteps))
	case err != nil:
		c.Log.Warn("the history cannot be read", "err", err)
		return h.fail(historyBroken, "the history cannot be read")
	}
	h.last.SetInt("NumJobMatches", h.sent)
	h.last.SetInt("MalformedAds", malformed)
	h.last.SetInt("AdCount", h.sent+malformed)
	c.Conn.PutAd(h.last, cedar.AdOptions{})
	c.Log.Debug("history sent", "jobs", h.sent)
	return c.Conn.EndMessage()
}

// historyAnswer is the answer to one query of the history.
type historyAnswer struct {
	conn   *cedar.Conn
	budget *classad.Budget // of what is evaluated for it
	sent   int64
	broken error       // the peer takes no more of it
	last   *classad.Ad // the ad at its end
}

// fail ends the answer with an error.
func (h *historyAnswer) fail(code int64, why string) error {
	h.last.SetString(ads.AttrErrorString, why)
	h.last.SetInt(ads.AttrErrorCode, code)
	h.conn.PutAd(h.last, cedar.AdOptions{})
	return h.conn.EndMessage()
}

// sendJobs sends the jobs that are asked for. The caller has entered; sendJobs leaves.
// While it writes it leaves as well: a peer that reads slowly does not keep others
// from their answers.
func (a *Queries) sendJobs(ctx context.Context, h *historyAnswer, asked *classad.Ad) (malformed int64, err error) {
	h.budget = classad.NewBudget(historySteps)
	q := OldJobs{Budget: h.budget}
	env := &classad.Env{Budget: h.budget}
	if n, ok := asked.EvalInt("NumJobMatches", env); ok && n > 0 {
		q.Limit = int(min(n, 1<<31-1))
	}
	if n, ok := asked.EvalInt("ScanLimit", env); ok && n > 0 {
		q.Scan = int(min(n, 1<<31-1))
	}
	q.Since, _ = asked.Lookup("Since")
	q.Constraint, _ = asked.Lookup(ads.AttrRequirements)
	text, _ := asked.EvalString("Projection", env)
	wanted := projectionOf(text)
	stream, _ := asked.EvalBool("StreamResults", env)
	entered := true
	defer func() {
		if entered {
			a.leave()
		}
	}()
	write := func(ad *classad.Ad, message bool) bool {
		a.leave()
		entered = false
		h.conn.PutAd(ad, cedar.AdOptions{NoPrivate: true})
		if message || h.conn.Broken() {
			h.broken = h.conn.EndMessage()
		}
		if h.broken == nil {
			h.broken = a.enter(ctx)
			entered = h.broken == nil
		}
		return entered
	}
	if stream {
		first := classad.NewAd()
		first.SetInt("Owner", 1)
		first.SetBool("StreamResults", true)
		write(first, true)
	}
	if h.broken == nil {
		malformed, err = a.cfg.History(ctx, q, func(job *classad.Ad) bool {
			h.sent++
			return write(wanted.of(job), stream)
		})
	}
	if h.broken == nil && ctx.Err() != nil {
		h.broken = context.Cause(ctx)
	}
	return malformed, err
}
