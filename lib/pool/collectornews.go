// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/slot"
)

const (
	// coalesce is for how long changes are gathered before they are sent, so
	// that a slot that passes through states is told of once.
	coalesce = time.Second
	// share bounds the part of the time that is spent on making ads: who has
	// many that change all the time gathers for longer.
	share = 10
	// chunk is how many ads are made in one turn of the engine's owner.
	chunk = 64
)

// news is what changed and has not been told to collectors yet. Ads are made
// and queued in the turn of the engine's owner, so that what is queued for a
// slot is in the order of what happened to it.
type news struct {
	mu      sync.Mutex
	begun   bool // the first update is due
	ended   bool // our ads were withdrawn
	all     bool // every ad is due
	dirty   map[slot.ID]struct{}
	names   map[slot.ID]string // under which slots were told
	daemon  string             // under which the daemon was told
	seq     map[string]int64   // of each ad
	senders []*sender
	now     chan struct{} // something is due at once
	soon    chan struct{} // something changed
	rerun   chan struct{} // the set of senders changed
	address string        // that the ads last had
}

func (n *news) init() {
	n.dirty = make(map[slot.ID]struct{})
	n.names = make(map[slot.ID]string)
	n.seq = make(map[string]int64)
	n.now, n.soon, n.rerun = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (n *news) due(id slot.ID) {
	if !id.IsZero() {
		n.changed(id)
		return
	}
	n.mu.Lock()
	n.begun, n.all = true, true
	n.mu.Unlock()
	signal(n.now)
}

func (n *news) changed(id slot.ID) {
	n.mu.Lock()
	n.dirty[id] = struct{}{}
	begun := n.begun
	n.mu.Unlock()
	if begun {
		signal(n.soon)
	}
}

func (n *news) withdrawn(id slot.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.dirty, id)
	if name, ok := n.names[id]; ok {
		delete(n.names, id)
		delete(n.seq, typeSlot+name)
		for _, s := range n.senders {
			s.withdraw(typeSlot, name, n.address)
		}
	}
}

// again has a collector told everything.
func (n *news) again(s *sender) {
	n.mu.Lock()
	s.all = true
	begun := n.begun
	n.mu.Unlock()
	if begun {
		signal(n.now)
	}
}

// watch makes ads as long as ctx lasts: at once when an update is due, a
// second after the first change else.
func (p *Pool) watch(ctx context.Context) {
	n := &p.news
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	waiting := false
	took := time.Duration(0) // for the last round
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.soon:
			if !waiting {
				waiting = true
				timer.Reset(max(coalesce, share*took))
			}
			continue
		case <-n.now:
		case <-timer.C:
		}
		waiting = false
		timer.Stop()
		began := time.Now()
		err := p.makeAds(ctx)
		took = time.Since(began)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("ads cannot be made", "err", err)
			return
		}
	}
}

// work is what one round of making ads is about.
type work struct {
	all     bool // slots that did not change as well
	dirty   map[slot.ID]struct{}
	senders []*sender // told of what is dirty, or of all if all is due
	fresh   []*sender // told of all
}

// take begins a round. It returns nothing when there is nothing to do.
func (n *news) take() (w work, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.begun || n.ended {
		return w, false
	}
	w = work{all: n.all, dirty: n.dirty}
	for _, s := range n.senders {
		if s.all && !n.all {
			w.fresh = append(w.fresh, s)
		} else {
			w.senders = append(w.senders, s)
		}
		s.all = false
	}
	n.all, n.dirty = false, make(map[slot.ID]struct{})
	return w, w.all || len(w.dirty) > 0 || len(w.fresh) > 0
}

// makeAds makes and queues what is due, in turns of the engine's owner.
func (p *Pool) makeAds(ctx context.Context) error {
	w, ok := p.news.take()
	if !ok {
		return nil
	}
	if w.all || len(w.fresh) > 0 {
		return p.makeAll(ctx, w)
	}
	ids := make([]slot.ID, 0, len(w.dirty))
	for id := range w.dirty {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, slot.ID.Compare)
	for len(ids) > 0 {
		part := ids[:min(chunk, len(ids))]
		ids = ids[len(part):]
		err := p.cfg.Owner.Do(ctx, func(t Turn) {
			id := p.toldIdentity()
			for _, s := range part {
				if v, ok := t.Engine.SlotView(s); ok {
					p.queueSlot(t, &id, &v, w.senders)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// makeAll goes through all slots, a chunk in each turn, and then the daemon's
// ad.
func (p *Pool) makeAll(ctx context.Context, w work) error {
	var last slot.ID
	for done := false; !done; {
		err := p.cfg.Owner.Do(ctx, func(t Turn) {
			id := p.toldIdentity()
			count := 0
			for v := range t.Engine.After(last) {
				if count == chunk {
					return
				}
				count++
				last = v.ID
				to := w.fresh
				if _, dirty := w.dirty[v.ID]; dirty || w.all {
					to = append(to[:len(to):len(to)], w.senders...)
				}
				p.queueSlot(t, &id, &v, to)
			}
			done = true
			to := w.fresh
			if w.all {
				to = append(to[:len(to):len(to)], w.senders...)
			}
			p.queueDaemon(t, &id, to)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Pool) toldIdentity() identity {
	id := p.identity()
	id.capability = p.administration()
	return id
}

// queueSlot makes the ads of a slot and queues them for collectors.
func (p *Pool) queueSlot(t Turn, id *identity, v *ep.SlotView, to []*sender) {
	if len(to) == 0 && t.Told == nil {
		return
	}
	ad := t.Engine.PublicAd(v.ID)
	id.public(ad)
	if t.Told != nil {
		t.Told(v.ID, ad)
	}
	if len(to) == 0 {
		return
	}
	id.secret(ad)
	u := &update{kind: typeSlot, name: v.FullName, command: command.UpdateStartdAd, public: ad}
	if v.Kind == slot.Partitionable {
		u.private = id.private(v, ad, partsOf(t.Engine, v.ID))
	} else {
		u.private = id.private(v, ad, nil)
	}
	p.queue(u, v.ID, id.address, to)
}

// queueDaemon does the same with the ad of the daemon as a whole.
func (p *Pool) queueDaemon(t Turn, id *identity, to []*sender) {
	if p.settings.Load().DaemonAd == DaemonAdNever || len(to) == 0 {
		return
	}
	ad := t.Engine.DaemonAd(p.cfg.Problems)
	id.told(ad)
	p.aboutUs(ad)
	name, _ := ad.EvalString(attrName, nil)
	p.queue(&update{kind: typeDaemon, name: name, command: command.UpdateStartdAd, public: ad}, slot.ID{}, id.address, to)
}

func (p *Pool) queue(u *update, of slot.ID, address string, to []*sender) {
	n := &p.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return
	}
	n.address = address
	if of.IsZero() {
		n.daemon = u.name
	} else {
		n.names[of] = u.name
	}
	seq := n.seq[u.kind+u.name]
	n.seq[u.kind+u.name] = seq + 1
	numbered(u.public, seq)
	if u.private != nil {
		numbered(u.private, seq)
	}
	for _, s := range to {
		s.offer(u)
	}
}

func numbered(ad *classad.Ad, seq int64) { ad.SetInt(attrUpdateSequenceNo, seq) }

// sendersFor returns the senders for the collectors of settings, those of old
// that are still wanted among them.
func (p *Pool) sendersFor(s *Settings, old []*sender) []*sender {
	var all []*sender
	for _, c := range s.Collectors {
		i := slices.IndexFunc(old, func(o *sender) bool { return o.to.At.String() == c.At.String() })
		if i >= 0 {
			all = append(all, old[i])
			continue
		}
		all = append(all, newSender(p, c))
	}
	return all
}

// reconfigure replaces the collectors and has all of them told everything.
func (n *news) reconfigure(p *Pool, s *Settings) {
	n.mu.Lock()
	next := p.sendersFor(s, n.senders)
	for _, o := range n.senders {
		if !slices.Contains(next, o) {
			o.retire(n.address)
		}
		o.reconfigured()
	}
	n.senders = next
	n.all = n.all || n.begun
	n.mu.Unlock()
	signal(n.rerun)
	signal(n.now)
}
