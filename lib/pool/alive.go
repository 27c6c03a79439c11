// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

const (
	scheddPatience = 20 * time.Second
	scheddFarewell = 5 * time.Second // for all of them, once we go
	maxToSchedds   = 64              // conversations with schedds at the same time
	leastAlive     = time.Second
	soonAlive      = 10 * time.Second // after a sign of life of the schedd itself
)

// life is a claim whose schedd has to be asked whether it still wants it.
type life struct {
	claim  claim.ID
	client claim.Client
	every  time.Duration
	next   time.Duration // boot time
	asking bool
	slot   slot.ID
	always bool // the starter's conversation with the shadow counts for nothing
	whole  bool // a partitionable slot: its lease is not renewed
	lapsed bool // its schedd has been silent for too long, and is told nothing
}

// asking is a request that is not answered yet.
type asking struct {
	id     claim.ID
	client claim.Client
	always bool          // as in life
	given  chan struct{} // closed when the claim is given back before it is there
	once   sync.Once
}

// lives are the claims of schedds. Each is asked about every third of its
// lease while no starter runs, whose conversation with the shadow is sign of
// life enough.
type lives struct {
	mu     sync.Mutex
	asks   map[ep.Ref]*asking
	held   map[string]*life // by the public part of the id
	wake   chan struct{}
	slots  chan struct{} // one for each conversation under way
	ending sync.WaitGroup
	// open ends, by hangUp, when schedds have had their time to hear that we go.
	open   context.Context
	hangUp context.CancelFunc
}

func (l *lives) init() {
	l.open, l.hangUp = context.WithCancel(context.Background())
	l.asks = make(map[ep.Ref]*asking)
	l.held, l.wake, l.slots = make(map[string]*life), make(chan struct{}, 1), make(chan struct{}, maxToSchedds)
}

// expect notes who a request is from, before the engine knows of it. The
// channel is closed when the claim is given back while the request waits.
func (l *lives) expect(ev *ep.ClaimRequested) (given <-chan struct{}) {
	a := &asking{id: ev.Capability, client: ev.Client, given: make(chan struct{})}
	byStarter, said := ev.Job.EvalBool("StarterHandlesAlives", nil)
	a.always = said && !byStarter
	l.mu.Lock()
	l.asks[ev.Ref] = a
	l.mu.Unlock()
	return a.given
}

// giveUp ends the request that waits for the claim of this id, and reports
// whether there is one.
func (l *lives) giveUp(id claim.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := false
	for _, a := range l.asks {
		if a.id.Public == id.Public && !id.IsZero() &&
			subtle.ConstantTimeCompare([]byte(a.id.Secret.Reveal()), []byte(id.Secret.Reveal())) == 1 {
			a.once.Do(func() { close(a.given) })
			found = true
		}
	}
	return found
}

// replied sees the reply to a request: what was granted is kept alive. It must
// be called before anybody can end the claim.
func (l *lives) replied(now clock.Instant, r ep.Reply) {
	l.mu.Lock()
	a, ok := l.asks[r.Ref]
	delete(l.asks, r.Ref)
	l.mu.Unlock()
	if !ok || r.Granted == nil {
		return
	}
	l.begin(now, r.Granted, a)
	for i := range r.Granted.More {
		l.begin(now, &r.Granted.More[i], a)
	}
}

// forget drops a request that will have no reply.
func (l *lives) forget(ref ep.Ref) {
	l.mu.Lock()
	delete(l.asks, ref)
	l.mu.Unlock()
}

// begin keeps a claim alive. One of an access point without an address cannot
// be asked.
func (l *lives) begin(now clock.Instant, g *ep.Grant, a *asking) {
	if a.client.Address == "" {
		return
	}
	every := max(g.Lease/3, leastAlive)
	whole, _ := g.Ad.EvalBool("PartitionableSlot", nil)
	l.mu.Lock()
	l.held[g.Claim.Public] = &life{
		claim: g.Claim, client: a.client, every: every, next: now.Boot + every, slot: g.Slot, always: a.always, whole: whole,
	}
	l.mu.Unlock()
	signal(l.wake)
}

// soon has the schedd of a claim asked within ten seconds.
func (l *lives) soon(now clock.Instant, id claim.ID) {
	l.mu.Lock()
	if x, ok := l.held[id.Public]; ok {
		x.next = min(x.next, now.Boot+soonAlive)
	}
	l.mu.Unlock()
	signal(l.wake)
}

// lapse notes that the lease of the claim of a slot is over.
func (l *lives) lapse(id slot.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.held {
		if x.slot == id {
			x.lapsed = true
		}
	}
}

// move notes that the access point of a claim is reached elsewhere.
func (l *lives) move(id claim.ID, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x, ok := l.held[id.Public]; ok && x.client.Address != address {
		moved := *x // a conversation under way goes on with the old one
		moved.client.Address = address
		l.held[id.Public] = &moved
	}
}

// end forgets a claim and reports whether there was one.
func (l *lives) end(id claim.ID) (*life, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.held[id.Public]
	delete(l.held, id.Public)
	return x, ok
}

// due returns the claims to be asked about now and how long it is until the
// next.
func (l *lives) due(now clock.Instant) (ask []*life, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = time.Hour
	for _, x := range l.held {
		if x.asking || x.whole {
			continue
		}
		if x.next <= now.Boot {
			x.asking, x.next = true, now.Boot+x.every
			ask = append(ask, x)
			continue
		}
		wait = min(wait, x.next-now.Boot)
	}
	return ask, wait
}

func (l *lives) asked(x *life) {
	l.mu.Lock()
	x.asking = false
	if now, ok := l.held[x.claim.Public]; ok {
		now.asking = false // it may have moved meanwhile
	}
	l.mu.Unlock()
	signal(l.wake)
}

// keepAlive asks schedds about their claims until ctx ends.
func (p *Pool) keepAlive(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			// A schedd that is out of reach must not hold up the end.
			late := time.AfterFunc(scheddFarewell, p.lives.hangUp)
			p.lives.ending.Wait()
			late.Stop()
			return
		case <-timer.C:
		case <-p.lives.wake:
		}
		ask, wait := p.lives.due(p.cfg.Clock.Now())
		for _, x := range ask {
			p.lives.ending.Go(func() {
				defer p.lives.asked(x)
				p.askSchedd(ctx, x)
			})
		}
		timer.Reset(wait)
	}
}

// askSchedd renews a lease if the schedd still knows the claim.
func (p *Pool) askSchedd(ctx context.Context, x *life) {
	wanted := false
	err := p.cfg.Owner.Do(ctx, func(t Turn) {
		s, ok := t.Engine.SlotOf(x.claim)
		v, there := t.Engine.SlotView(s)
		wanted = ok && there && v.Claimed && v.Claim == x.claim && (v.Activation == "" || x.always)
	})
	if err != nil || !wanted {
		return
	}
	known := true
	err = p.tellSchedd(ctx, x, command.Alive, func(c *cedar.Conn) error {
		n, err := c.Int()
		if err == nil {
			err = c.EndOfMessage()
		}
		known = n >= 0
		return err
	})
	switch {
	case err != nil:
		p.log.Warn("the schedd of a claim does not answer", "claim", x.claim.String(), "schedd", x.client.Schedd, "err", err)
	case known:
		_ = p.cfg.Owner.Do(ctx, func(t Turn) { t.Step(ep.LeaseRenewed{Claim: x.claim}) })
	default:
		p.log.Info("the schedd does not know the claim any more", "claim", x.claim.String(), "schedd", x.client.Schedd)
		_ = p.cfg.Owner.Do(ctx, func(t Turn) { t.Step(ep.ReleaseRequested{Claim: x.claim}) })
	}
}

// tellSchedd sends a command about a claim under the claim's own session, and
// lets answer read what comes back, if that is not nil.
func (p *Pool) tellSchedd(ctx context.Context, x *life, command int, answer func(*cedar.Conn) error) error {
	const op = "pool.tellSchedd"
	to, err := cedar.ParseSinful(x.client.Address)
	if err != nil {
		return errs.E(op, errs.Invalid, x.client.Schedd, err)
	}
	select {
	case p.lives.slots <- struct{}{}:
		defer func() { <-p.lives.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, scheddPatience)
	defer cancel()
	o := security.Options{}
	if p.settings.Load().MatchSessions {
		o.Session = x.claim.Public
	}
	conn, _, err := p.cfg.Open.Command(ctx, to, command, o)
	if err != nil {
		return err
	}
	defer conn.Close()
	release := conn.Bind(ctx)
	defer release()
	conn.PutSecret(claim.Secret(x.claim.Wire()))
	if err := conn.EndMessage(); err != nil || answer == nil {
		return err
	}
	return answer(conn)
}

// claimEnded tells the schedd of a claim that it has none any more, unless it
// gave it back itself or has not been heard of for the whole lease. It does not
// block.
func (p *Pool) claimEnded(e ep.ClaimEnded) {
	x, ok := p.lives.end(e.Claim)
	if !ok || e.ByClient || x.lapsed {
		return
	}
	p.lives.ending.Go(func() {
		ctx, cancel := context.WithTimeout(p.lives.open, scheddPatience)
		defer cancel()
		if err := p.tellSchedd(ctx, x, command.ReleaseClaim, nil); err != nil {
			p.log.Warn("the schedd was not told that its claim has ended", "claim", x.claim.String(), "schedd", x.client.Schedd, "err", err)
		}
	})
}
