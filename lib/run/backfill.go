// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// backfillGrace is how long after the deadline of its client a starter may be
// busy with the end before it is killed itself.
const backfillGrace = 10 * time.Second

// usageInterval is how often the starter of a client tells what it uses. The policy
// asks for the load that others make.
const usageInterval = 10 * time.Second

// backfillName stands for the slot where one client works for all of them.
const backfillName = "backfill"

// backfill runs the client when the engine asks for it, under a starter as any
// job, but without a claim. It belongs to the owner; what happens beside it is
// told through the inbox.
type backfill struct {
	settings hook.Backfill
	runAs    *host.Identity  // nil: who runs the EP
	client   *backfillClient // nil: none
	count    int             // clients so far
	leaving  bool            // the run is over for clients
	told     string          // what a person was told last, which is not said again
	ctx      context.Context // its end is the end of a client, without mercy
	abandon  context.CancelFunc
	launch   func(context.Context, *protocol.Plan) (Starter, error)
}

// backfillClient is the run's side of the starter of one client.
type backfillClient struct {
	handle   Starter       // nil until it runs
	deadline clock.Instant // it has to be gone; zero while it may stay
	hard     bool          // no time is left to it
	killAt   clock.Instant // its starter is killed, zero for never
	failure  string        // why it could not run
}

// newBackfill reads what there is to run.
func (n *node) newBackfill() {
	n.back = &backfill{launch: func(ctx context.Context, p *protocol.Plan) (Starter, error) {
		return n.starter.launcher.Launch(ctx, p, nil)
	}}
	n.back.ctx, n.back.abandon = context.WithCancel(context.Background())
	n.configureBackfill(n.o.Config)
}

// configureBackfill takes the settings for the next client over and tells what
// is wrong with them.
func (n *node) configureBackfill(s *config.Snapshot) {
	b := n.back
	settings, problems := hook.BackfillFrom(s, n.o.Host.Account != nil)
	b.runAs = nil
	if settings.On && n.o.Host.Account != nil {
		var err error
		if b.runAs, err = n.o.Host.Account(settings.Owner); err != nil {
			problems = append(problems, hook.OwnerProblem(s, err))
			settings = hook.Backfill{}
		}
	}
	b.settings = settings
	for _, p := range problems {
		n.problem(p)
	}
}

// reconfigureBackfill brings new settings to the engine too. A client that runs
// stays as it is.
func (n *node) reconfigureBackfill(now clock.Instant, s *config.Snapshot) {
	n.configureBackfill(s)
	n.step(now, ep.BackfillPossible{Possible: n.back.settings.On})
}

// startBackfill starts a client. The machine's ad is that of the slot which
// wanted one first.
func (n *node) startBackfill(id slot.ID) {
	b := n.back
	if b.leaving || b.client != nil || !b.settings.On {
		n.queue = append(n.queue, ep.BackfillExited{})
		return
	}
	b.count++
	c := &backfillClient{}
	b.client = c
	plan := &protocol.Plan{
		Activation:   backfillName + "#" + strconv.Itoa(b.count),
		SlotName:     backfillName,
		SlotFullName: backfillName + "@" + n.o.Inventory.FullHostname,
		Execute:      n.o.Execute,
		JobAd:        b.settings.Job.TextAll(classad.Old),
		MachineAd:    n.eng.SlotAd(id).Text(classad.Old),
		Cpus:         1, // its share where jobs want the cores
		Orphan:       protocol.OrphanDie,
		Submit:       protocol.SubmitSide{Local: true},
		RunAs:        b.runAs,
	}
	settings := *n.starterOf(id).settings
	settings.Update = usageInterval
	plan.Settings = &settings
	n.mail.around.Go(func() {
		h, err := b.launch(b.ctx, plan)
		if err != nil {
			n.mail.post(func(now clock.Instant) { n.backfillGone(now, c, nil, err) })
			return
		}
		defer context.AfterFunc(b.ctx, func() { _ = h.Kill() })()
		n.mail.post(func(now clock.Instant) { n.backfillLaunched(now, c, h) })
		for r := range h.Reports() {
			n.mail.post(func(now clock.Instant) { n.backfillReport(now, c, r) })
		}
		<-h.Exited()
		st, err := h.Exit()
		n.mail.post(func(now clock.Instant) { n.backfillGone(now, c, &st, err) })
	})
}

func (n *node) backfillLaunched(now clock.Instant, c *backfillClient, h Starter) {
	c.handle = h
	if !c.deadline.IsZero() {
		n.orderBackfill(now, c)
	}
}

// stopBackfill asks the client to end until a deadline.
func (n *node) stopBackfill(now, deadline clock.Instant) {
	c := n.back.client
	if c == nil || !c.deadline.IsZero() {
		return
	}
	c.deadline = deadline
	n.orderBackfill(now, c)
}

// killBackfill ends the client now.
func (n *node) killBackfill(now clock.Instant) {
	c := n.back.client
	if c == nil || c.hard {
		return
	}
	c.deadline, c.hard = now, true
	n.orderBackfill(now, c)
}

func (n *node) orderBackfill(now clock.Instant, c *backfillClient) {
	if c.handle == nil {
		return
	}
	why := protocol.Leave{Manner: protocol.MannerVacate, Asked: "startd", Reason: "the machine is wanted for something else"}
	var o protocol.Order = protocol.SoftKill{Leave: why, Deadline: max(c.deadline.Sub(now), time.Millisecond)}
	if c.hard {
		o = protocol.HardKill{Leave: why}
	}
	// One that is gone needs no order, one that does not read is killed.
	if err := c.handle.Send(o); err != nil && !errs.Is(err, errs.NotFound) {
		n.o.Log.Warn("order not taken", "client", "backfill", "order", o.Kind(), "err", err)
	}
	c.killAt = c.deadline.Add(backfillGrace)
}

func (n *node) backfillReport(now clock.Instant, c *backfillClient, told protocol.Told) {
	switch r := told.What.(type) {
	case protocol.Running:
		who := ""
		if n.back.runAs != nil {
			who = n.back.runAs.Name
		}
		n.o.Log.Info("backfill client runs", "pid", r.Proc.PID, "user", who)
		n.step(now, ep.BackfillRunning{})
		n.moved = true
	case protocol.Usage:
		n.step(now, ep.BackfillUsage{Usage: r.Usage})
	case protocol.Ended:
		rec := r.Record
		for _, p := range rec.Problems {
			n.o.Log.Warn("starter", "client", "backfill", "problem", p)
		}
		switch {
		case rec.Held != nil:
			c.failure = rec.Held.Reason
		case !rec.Status.Ended() && rec.Evicted && c.deadline.IsZero():
			c.failure = rec.Reason
		default:
			n.o.Log.Info("backfill client has ended", "status", rec.Status.String(), "leftovers", rec.Leftovers)
		}
	}
	if c.handle != nil {
		c.handle.Heard(told.ID)
	}
}

// backfillGone notes that nothing of a client is left, or, with a nil st, that it
// never was.
func (n *node) backfillGone(now clock.Instant, c *backfillClient, st *host.ExitStatus, err error) {
	n.back.client = nil
	switch {
	case err != nil:
		c.failure = err.Error()
	case c.failure == "" && st != nil && !st.Success() && !c.hard:
		c.failure = "its starter " + st.String()
	}
	if c.failure != "" && c.failure != n.back.told {
		n.back.told = c.failure
		n.problem(errors.New("the backfill client does not run: " + c.failure))
	}
	if c.failure == "" {
		n.back.told = ""
	}
	n.step(now, ep.BackfillExited{})
	n.moved = true
}

// tendBackfill kills a starter that does not end, and sends the client away
// when the last job is done.
func (n *node) tendBackfill(now clock.Instant) {
	c := n.back.client
	if c == nil {
		return
	}
	if !c.killAt.IsZero() && now.Boot >= c.killAt.Boot && c.handle != nil {
		c.killAt = clock.Instant{}
		n.o.Log.Warn("killing the starter of the backfill client")
		h := c.handle
		n.mail.around.Go(func() { _ = h.Kill() }) // if it lives on, so does the wait for it
	}
	// A daemon has no jobs of its own, and is never done.
	if !n.back.leaving && !n.serving() && n.ap.Finished() && len(n.starter.live) == 0 {
		n.back.leaving = true
		patience := backfillGrace
		if times, err := policy.TimesFrom(n.o.Config); err == nil {
			patience = times.Killing
		}
		n.stopBackfill(now, now.Add(patience))
	}
}

// backfillDue is how long nothing has to be done for the client.
func (n *node) backfillDue(now clock.Instant) time.Duration {
	if c := n.back.client; c != nil && !c.killAt.IsZero() {
		return max(c.killAt.Sub(now), 0)
	}
	return math.MaxInt64
}
