// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

const (
	scheddPatience = 20 * time.Second
	scheddFarewell = 5 * time.Second // for all of them, once we go
	maxToSchedds   = 64              // conversations with schedds at the same time
	leastAlive     = time.Second
	soonAlive      = 10 * time.Second // after a sign of life of the schedd itself
	aliveRetry     = 5 * time.Second  // after a schedd that did not answer, as HTCondor's startd
)

// keepalive is a claim whose schedd has to be asked whether it still wants it.
type keepalive struct {
	claim    claim.ID
	client   claim.Client
	granted  time.Duration // a third of the lease that it was granted with
	every    time.Duration
	next     time.Duration // boot time
	inFlight bool          // it is being asked about
	silent   bool          // the schedd did not answer the last time
	slot     slot.ID
	always   bool // the starter's conversation with the shadow counts for nothing
	whole    bool // a partitionable slot: its lease is not renewed
	lapsed   bool // its schedd has been silent for too long, and hears nothing from us
}

// pendingClaim is a request that is not answered yet.
type pendingClaim struct {
	id     claim.ID
	client claim.Client
	always bool          // as in keepalive
	given  chan struct{} // closed when the claim is given back before it is there
	once   sync.Once
}

// keepalives are the claims of schedds. Each is asked about every third of its
// lease while no starter runs, whose conversation with the shadow is sign of
// life enough. A schedd that does not answer is asked again soon: the attempts of
// a third of the lease are too few for a schedd that is started anew meanwhile.
type keepalives struct {
	mu      sync.Mutex
	pending map[ep.Ref]*pendingClaim
	held    map[string]*keepalive // by the public part of the id
	wake    chan struct{}
	slots   chan struct{} // one for each conversation under way
	ending  sync.WaitGroup
	// open ends, by hangUp, when schedds have had their time to hear that we go.
	open   context.Context
	hangUp context.CancelFunc
}

func (k *keepalives) init() {
	k.open, k.hangUp = context.WithCancel(context.Background())
	k.pending = make(map[ep.Ref]*pendingClaim)
	k.held, k.wake, k.slots = make(map[string]*keepalive), make(chan struct{}, 1), make(chan struct{}, maxToSchedds)
}

// expect notes who a request is from, before the engine knows of it. The
// channel is closed when the claim is given back while the request waits.
func (k *keepalives) expect(ev *ep.ClaimRequested) (given <-chan struct{}) {
	a := &pendingClaim{id: ev.Capability, client: ev.Client, given: make(chan struct{})}
	byStarter, said := ev.Job.EvalBool("StarterHandlesAlives", nil)
	a.always = said && !byStarter
	k.mu.Lock()
	k.pending[ev.Ref] = a
	k.mu.Unlock()
	return a.given
}

// giveUp ends the request that waits for the claim of this id, and reports
// whether there is one.
func (k *keepalives) giveUp(id claim.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := false
	for _, a := range k.pending {
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
func (k *keepalives) replied(now clock.Instant, r ep.Reply) {
	k.mu.Lock()
	a, ok := k.pending[r.Ref]
	delete(k.pending, r.Ref)
	k.mu.Unlock()
	if !ok || r.Granted == nil {
		return
	}
	k.begin(now, r.Granted, a)
	for i := range r.Granted.More {
		k.begin(now, &r.Granted.More[i], a)
	}
}

// forget drops a request that will have no reply.
func (k *keepalives) forget(ref ep.Ref) {
	k.mu.Lock()
	delete(k.pending, ref)
	k.mu.Unlock()
}

// begin keeps a claim alive. One of an access point without an address cannot
// be asked.
func (k *keepalives) begin(now clock.Instant, g *ep.Grant, a *pendingClaim) {
	if a.client.Address == "" {
		return
	}
	every := max(g.Lease/3, leastAlive)
	whole, _ := g.Ad.EvalBool("PartitionableSlot", nil)
	k.mu.Lock()
	k.held[g.Claim.Public] = &keepalive{
		claim: g.Claim, client: a.client, granted: every, every: every, next: now.Boot + every, slot: g.Slot, always: a.always, whole: whole,
	}
	k.mu.Unlock()
	engine.Wake(k.wake)
}

// activated notes that a job was started under a claim: the lease of the job is that
// of the claim from then on, also when the job is over. A longer one than was
// granted changes nothing here; HTCondor asks less often then.
func (k *keepalives) activated(now clock.Instant, id claim.ID, job *classad.Ad) {
	lease := claim.LeaseLength(job, 0, 0)
	k.mu.Lock()
	if x, ok := k.held[id.Public]; ok {
		x.every = x.granted
		if lease > 0 {
			x.every = min(x.every, max(lease/3, leastAlive))
		}
		x.next = min(x.next, now.Boot+x.every)
	}
	k.mu.Unlock()
	engine.Wake(k.wake)
}

// soon has the schedd of a claim asked within ten seconds.
func (k *keepalives) soon(now clock.Instant, id claim.ID) {
	k.mu.Lock()
	if x, ok := k.held[id.Public]; ok {
		x.next = min(x.next, now.Boot+soonAlive)
	}
	k.mu.Unlock()
	engine.Wake(k.wake)
}

// lapse notes that the lease of the claim of a slot is over.
func (k *keepalives) lapse(id slot.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.held {
		if x.slot == id {
			x.lapsed = true
		}
	}
}

// movedTo notes that a claim is of another slot.
func (k *keepalives) movedTo(id claim.ID, to slot.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if x, ok := k.held[id.Public]; ok {
		moved := *x // a conversation under way goes on with the old one
		moved.slot = to
		k.held[id.Public] = &moved
	}
}

// move notes that the access point of a claim is reached elsewhere.
func (k *keepalives) move(id claim.ID, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if x, ok := k.held[id.Public]; ok && x.client.Address != address {
		moved := *x // a conversation under way goes on with the old one
		moved.client.Address = address
		k.held[id.Public] = &moved
	}
}

// end forgets a claim and reports whether there was one.
func (k *keepalives) end(id claim.ID) (*keepalive, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x, ok := k.held[id.Public]
	delete(k.held, id.Public)
	return x, ok
}

// due returns the claims to be asked about now and how long it is until the
// next.
func (k *keepalives) due(now clock.Instant) (ask []*keepalive, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wait = time.Hour
	for _, x := range k.held {
		if x.inFlight || x.whole {
			continue
		}
		if x.next <= now.Boot {
			x.inFlight, x.next = true, now.Boot+x.every
			ask = append(ask, x)
			continue
		}
		wait = min(wait, x.next-now.Boot)
	}
	return ask, wait
}

// asked notes that the conversation about a claim is over, and whether the schedd
// has answered. It reports whether a silence is the first.
func (k *keepalives) asked(now clock.Instant, x *keepalive, answered bool) (first bool) {
	k.mu.Lock()
	x.inFlight = false
	if held, ok := k.held[x.claim.Public]; ok { // it may have moved meanwhile
		first = !answered && !held.silent
		held.inFlight, held.silent = false, !answered
		if !answered {
			held.next = min(held.next, now.Boot+aliveRetry)
		}
	}
	k.mu.Unlock()
	engine.Wake(k.wake)
	return first
}
