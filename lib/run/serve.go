// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Serve makes a run a member of a pool: it has no jobs of its own and goes on
// until it is told to end.
type Serve struct {
	// Start is when the daemon began, in Unix seconds. NewSecret makes the
	// secrets of claim ids.
	Start int64
	// Version is the daemon's $CondorVersion, which its ads show too; "" for
	// that of [Advertise].
	Version string
	// Cookie is for starters, see [protocol.ShadowSide].
	Cookie string
	// Family returns the session of the daemon's family, for starters; "" for
	// none. Nil has none.
	Family    func() claim.Secret
	NewSecret func() claim.Secret
	// Join makes the pool's side, which reaches the engine through owner, and
	// returns our address, for claim ids. duty says how busy the owner is; problems are what could not be made
	// of the machine. It is called once, before the engine is there; the pool
	// sees every effect.
	Join func(owner engine.Owner, duty func() ads.DutyCycle, problems []slot.Problem) (*pool.Pool, string, error)
	// Starters is given how the starter in a slot reads the configuration in force,
	// for [Admit]; before Join. nil is not told.
	Starters func(of func(slot.ID) *config.Snapshot)
	// Orders end the run: a faster manner overrides a slower one.
	Orders <-chan ep.Manner
	// Asked is given how questions of the control socket are answered to who may
	// ask them, which the caller has found out; before Options.Settled. nil asks nothing.
	Asked func(ask func(observe.Request) observe.Response)
}

// owner reaches the goroutine of a node; it is a engine.Owner.
type owner struct{ n *node }

// Do has f run by the node's goroutine and waits until it has run.
func (o owner) Do(ctx context.Context, f func(engine.Turn)) error {
	// Whoever is first decides: the one who asked, that it is too late, or the
	// owner, that it is done.
	var taken atomic.Bool
	done := make(chan struct{})
	turn := func(now clock.Instant) {
		if !taken.CompareAndSwap(false, true) {
			return
		}
		f(engine.Turn{Now: now, Engine: o.n.eng, Step: func(ev ep.Event) { o.n.step(now, ev) }, Advertised: o.n.slotTold})
		close(done)
	}
	select {
	case o.n.mail.inbox <- turn:
	case <-o.n.mail.done:
		return errs.E("run.Do", errs.NotFound, "", errEnding)
	case <-ctx.Done():
		return errs.E("run.Do", errs.Expired, "", ctx.Err())
	}
	select {
	case <-done:
		return nil
	case <-o.n.mail.done:
	case <-ctx.Done():
	}
	if taken.CompareAndSwap(false, true) {
		if err := ctx.Err(); err != nil {
			return errs.E("run.Do", errs.Expired, "", err)
		}
		return errs.E("run.Do", errs.NotFound, "", errEnding)
	}
	<-done // it is running now, and f does not block
	return nil
}

// join makes the pool's side, if there is one.
func (n *node) join() error {
	s := n.o.Serve
	if s == nil {
		return nil
	}
	var err error
	n.member.pool, n.member.address, err = s.Join(owner{n}, n.wakes.duty.shares, n.slots.problems)
	return err
}

// serving reports whether the EP goes on without jobs.
func (n *node) serving() bool { return n.o.Serve != nil }

// orders is where the end of a member of a pool is ordered; nil never is.
func (n *node) orders() <-chan ep.Manner {
	if n.o.Serve == nil {
		return nil
	}
	return n.o.Serve.Orders
}

// ordered obeys. What is as slow as an order before it changes nothing.
func (n *node) ordered(now clock.Instant, m ep.Manner) {
	n.leave.interrupts++
	n.o.Log.Info("shutdown", "manner", m.String())
	n.step(now, ep.ShutdownRequested{Manner: m})
	if m == ep.Fast {
		n.killBackfill(now)
	}
}
