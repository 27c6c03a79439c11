// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/slot"
)

// endless is more time than anybody waits for: who is promised that much may
// stay as long as it likes.
const endless = 365 * 24 * time.Hour

// command passes a request of the control socket to the engine, which answers
// it before the step is over.
func (n *node) command(now clock.Instant, ev ep.Event) observe.Response {
	n.control.reply = nil
	n.step(now, ev)
	n.moved = true
	switch r := n.control.reply; {
	case r == nil:
		return observe.Response{Err: "the request was not answered"}
	case r.Err != nil:
		return observe.Response{Err: said(r.Err), Code: r.Code}
	default:
		return observe.Response{DrainID: r.DrainID}
	}
}

// said is what is wrong, without the names of the functions that say so.
func said(err error) string {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err.Error()
		}
		err = inner.Unwrap()
	}
}

// drain begins a drain.
func (n *node) drain(now clock.Instant, r observe.Request) observe.Response {
	var want observe.Drain
	if r.Drain != nil {
		want = *r.Drain
	}
	ev := ep.DrainRequested{Ref: ep.Ref{By: ep.ControlSocket}, Reason: want.Reason, By: n.address(r.By)}
	switch want.How {
	case "", "graceful":
	case "quick":
		ev.How = ep.DrainQuick
	case "fast":
		ev.How = ep.DrainFast
	default:
		return observe.Response{Err: fmt.Sprintf("cannot drain %q: want graceful, quick or fast", want.How)}
	}
	switch want.Then {
	case "", "stay":
	case "resume":
		ev.Then = ep.ThenResume
	case "exit":
		ev.Then = ep.ThenExit
	case "restart":
		ev.Then = ep.ThenRestart
	case "reconfigure":
		ev.Then = ep.ThenReconfigure
	default:
		return observe.Response{Err: fmt.Sprintf("cannot %q when drained: want stay, resume, exit, restart or reconfigure", want.Then)}
	}
	for _, x := range []struct {
		name, text string
		to         **classad.Expr
	}{{"start", want.Start, &ev.Start}, {"check", want.Check, &ev.Check}} {
		if x.text == "" {
			continue
		}
		e, err := classad.ParseExpr(x.text, classad.Old)
		if err != nil {
			return observe.Response{Err: fmt.Sprintf("the %s expression: %v", x.name, err)}
		}
		*x.to = e
	}
	return n.command(now, ev)
}

// address makes a user of this machine one of its domain.
func (n *node) address(who string) string {
	if who == "" {
		return "an unknown user"
	}
	if _, domain, ok := strings.Cut(n.o.User, "@"); ok && !strings.Contains(who, "@") {
		return who + "@" + domain
	}
	return who
}

// resume takes a drain back.
func (n *node) resume(now clock.Instant, r observe.Request) observe.Response {
	d, on := n.eng.Drain()
	resp := n.command(now, ep.DrainCancelled{Ref: ep.Ref{By: ep.ControlSocket}, ID: r.Subject})
	if resp.Err == "" && on {
		resp.DrainID = d.ID
		n.o.Log.Info("draining cancelled", "id", d.ID, "by", n.address(r.By))
	}
	return resp
}

// vacate ends the claim of one slot, or of every slot.
func (n *node) vacate(now clock.Instant, r observe.Request) observe.Response {
	ev := ep.VacateRequested{Ref: ep.Ref{By: ep.ControlSocket}, Manner: ep.Graceful}
	if r.Fast {
		ev.Manner = ep.Fast
	}
	if r.Subject != "" {
		name, _, _ := strings.Cut(r.Subject, "@")
		id, err := slot.ParseID(name)
		if err != nil {
			return observe.Response{Err: fmt.Sprintf("%q is no slot: want slot1 or slot1_1", r.Subject)}
		}
		ev.Slot = id
	}
	resp := n.command(now, ev)
	if resp.Err == "" {
		n.o.Log.Info("vacating", "slot", cmp.Or(r.Subject, "all"), "manner", ev.Manner.String(), "by", n.address(r.By))
	}
	return resp
}

// drained does what is left to do when every slot is drained.
func (n *node) drained(e ep.DrainCompleted) {
	n.o.Log.Info("drained", "id", e.ID, "then", e.Then.String())
	switch e.Then {
	case ep.ThenReconfigure:
		n.reload()
	case ep.ThenRestart:
		n.leave.restart = true
	}
}

// ending notes that the engine ends the EP, whoever asked for it.
func (n *node) ending(e ep.ShutdownBegun) {
	n.o.Log.Info("shutting down", "manner", e.Manner.String(), "why", e.Why)
	n.leave.end, n.leave.leaves = e.Why, true
	n.ap.Stop()
}

// tellLeaving tells that the end was ordered, and what it means for the jobs.
func (n *node) tellLeaving() {
	if !n.leave.leaves {
		return
	}
	n.leave.leaves = false
	if v, ok := n.eng.Shutdown(); ok && n.o.Leaving != nil {
		n.o.Leaving(v)
	}
}

// farewell is why jobs leave when the EP ends, "" for the words of HTCondor's
// startd, which a pool looks for.
func (n *node) farewell() string {
	if n.serving() {
		return ""
	}
	return cmp.Or(n.o.Name, "the Execution Point") + " was told to end"
}

// draining is how far a drain is, nil if there is none.
func (n *node) draining(now clock.Instant) *observe.Draining {
	d, on := n.eng.Drain()
	if !on {
		return nil
	}
	s := &observe.Draining{
		ID: d.ID, How: d.How.String(), Then: d.Then.String(), Reason: d.Reason, By: d.By, Since: d.Since,
		Jobs: d.Jobs, Drained: d.Drained,
	}
	if d.Start != nil {
		s.Start = d.Start.String()
	}
	if d.Jobs > 0 && d.Left < endless {
		until := now.Wall.Add(d.Left)
		s.Until = &until
	}
	return s
}

// policyOdd warns of an expression that gives what it should not.
func (n *node) policyOdd(e ep.PolicyWarning) {
	tr := e.Trace
	n.problem(fmt.Errorf("%v: %s = %s is %v for %s: %s", tr.Origin, tr.Name, tr.Text, tr.Value, e.Name, tr.Taken))
}
