// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

const (
	// coalesce is for how long changes are gathered before they are sent, so
	// that a slot that passes through several states is sent once.
	coalesce = time.Second
	// share bounds the part of the time that is spent on making ads: an EP
	// with many ads that change all the time gathers changes for longer.
	share = 10
)

// updateQueue is what changed and was not sent to collectors yet. Ads are made
// and queued in the turn of the engine's owner, so that what is queued for a
// slot is in the order of what happened to it.
type updateQueue struct {
	mu       sync.Mutex
	begun    bool // the first update is due
	ended    bool // our ads were withdrawn
	all      bool // every ad is due
	dirty    map[slot.ID]struct{}
	names    map[slot.ID]string // under which collectors know slots
	daemon   string             // under which they know the daemon
	seq      map[string]int64   // of each ad
	updaters []*updater
	leaving  []*updater    // of collectors that are named no more, and are still told so
	now      chan struct{} // something is due at once
	soon     chan struct{} // something changed
	rerun    chan struct{} // the set of updaters changed
	address  string        // that the ads last had
}

func (q *updateQueue) init() {
	q.dirty = make(map[slot.ID]struct{})
	q.names = make(map[slot.ID]string)
	q.seq = make(map[string]int64)
	q.now, q.soon, q.rerun = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
}

func (q *updateQueue) due(id slot.ID) {
	if !id.IsZero() {
		q.changed(id)
		return
	}
	q.mu.Lock()
	q.begun, q.all = true, true
	q.mu.Unlock()
	engine.Wake(q.now)
}

func (q *updateQueue) changed(id slot.ID) {
	q.mu.Lock()
	q.dirty[id] = struct{}{}
	begun := q.begun
	q.mu.Unlock()
	if begun {
		engine.Wake(q.soon)
	}
}

func (q *updateQueue) withdrawn(id slot.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.dirty, id)
	if name, ok := q.names[id]; ok {
		delete(q.names, id)
		delete(q.seq, ads.TypeSlot+name)
		for _, s := range q.updaters {
			s.withdraw(ads.TypeSlot, name, q.address)
		}
	}
}

// again has every ad sent to one collector.
func (q *updateQueue) again(s *updater) {
	q.mu.Lock()
	s.all = true
	begun := q.begun
	q.mu.Unlock()
	if begun {
		engine.Wake(q.now)
	}
}

// advertise makes ads as long as ctx lasts: at once when an update is due, a
// second after the first change else.
func (u *Updates) advertise(ctx context.Context) {
	q := &u.queue
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	waiting := false
	took := time.Duration(0) // for the last round
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.soon:
			if !waiting {
				waiting = true
				timer.Reset(max(coalesce, share*took))
			}
			continue
		case <-q.now:
		case <-timer.C:
		}
		waiting = false
		timer.Stop()
		began := time.Now()
		err := u.makeAds(ctx)
		took = time.Since(began)
		if err != nil && ctx.Err() == nil {
			u.log.Warn("ads cannot be made", "err", err)
			return
		}
	}
}

// work is what one round of making ads is about.
type work struct {
	all      bool // slots that did not change as well
	dirty    map[slot.ID]struct{}
	updaters []*updater // to be sent what is dirty, or all if all is due
	fresh    []*updater // to be sent all
}

// take begins a round. It returns nothing when there is nothing to do.
func (q *updateQueue) take() (w work, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.begun || q.ended {
		return w, false
	}
	w = work{all: q.all, dirty: q.dirty}
	for _, s := range q.updaters {
		if s.all && !q.all {
			w.fresh = append(w.fresh, s)
		} else {
			w.updaters = append(w.updaters, s)
		}
		s.all = false
	}
	q.all, q.dirty = false, make(map[slot.ID]struct{})
	return w, w.all || len(w.dirty) > 0 || len(w.fresh) > 0
}

// makeAds makes and queues what is due, in turns of the engine's owner.
func (u *Updates) makeAds(ctx context.Context) error {
	w, ok := u.queue.take()
	if !ok {
		return nil
	}
	if w.all || len(w.fresh) > 0 {
		return u.makeAll(ctx, w)
	}
	ids := make([]slot.ID, 0, len(w.dirty))
	for id := range w.dirty {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, slot.ID.Compare)
	for len(ids) > 0 {
		part := ids[:min(ads.Chunk, len(ids))]
		ids = ids[len(part):]
		err := u.cfg.Owner.Do(ctx, func(t engine.Turn) {
			id := u.identity()
			for _, s := range part {
				if v, ok := t.Engine.SlotView(s); ok {
					u.queueSlot(t, &id, &v, w.updaters)
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
func (u *Updates) makeAll(ctx context.Context, w work) error {
	var last slot.ID
	for done := false; !done; {
		err := u.cfg.Owner.Do(ctx, func(t engine.Turn) {
			id := u.identity()
			count := 0
			for v := range t.Engine.After(last) {
				if count == ads.Chunk {
					return
				}
				count++
				last = v.ID
				to := w.fresh
				if _, dirty := w.dirty[v.ID]; dirty || w.all {
					to = append(to[:len(to):len(to)], w.updaters...)
				}
				u.queueSlot(t, &id, &v, to)
			}
			done = true
			to := w.fresh
			if w.all {
				to = append(to[:len(to):len(to)], w.updaters...)
			}
			u.queueDaemon(t, &id, to)
		})
		if err != nil {
			return err
		}
	}
	if w.all && u.made.CompareAndSwap(false, true) {
		for _, s := range append(w.updaters, w.fresh...) {
			engine.Wake(s.wake) // it may have sent all by now
		}
	}
	return nil
}

// queueSlot makes the ads of a slot and queues them for collectors.
func (u *Updates) queueSlot(t engine.Turn, id *identity, v *ep.SlotView, to []*updater) {
	if len(to) == 0 && t.Advertised == nil {
		return
	}
	ad := t.Engine.PublicAd(v.ID)
	id.Complete(ad)
	if t.Advertised != nil {
		t.Advertised(v.ID, ad)
	}
	if len(to) == 0 {
		return
	}
	id.secret(ad)
	m := &update{kind: ads.TypeSlot, name: v.FullName, command: command.UpdateStartdAd, public: ad}
	if v.Kind == slot.Partitionable {
		m.private = id.private(v, ad, partsOf(t.Engine, v.ID))
	} else {
		m.private = id.private(v, ad, nil)
	}
	u.enqueue(m, v.ID, id.Address, to)
}

// queueDaemon does the same with the ad of the daemon as a whole.
func (u *Updates) queueDaemon(t engine.Turn, id *identity, to []*updater) {
	if u.settings.Load().DaemonAd == DaemonAdNever || len(to) == 0 {
		return
	}
	ad := t.Engine.DaemonAd(u.cfg.Ads.Problems())
	id.Complete(ad)
	id.secret(ad)
	u.cfg.Ads.AddSelf(ad)
	name, _ := ad.EvalString(ads.AttrName, nil)
	u.enqueue(&update{kind: ads.TypeDaemon, name: name, command: command.UpdateStartdAd, public: ad}, slot.ID{}, id.Address, to)
}

func (u *Updates) enqueue(m *update, of slot.ID, address string, to []*updater) {
	q := &u.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	q.address = address
	if of.IsZero() {
		q.daemon = m.name
	} else {
		q.names[of] = m.name
	}
	seq := q.seq[m.kind+m.name]
	q.seq[m.kind+m.name] = seq + 1
	numbered(m.public, seq)
	if m.private != nil {
		numbered(m.private, seq)
	}
	for _, s := range to {
		s.offer(m)
	}
}

func numbered(ad *classad.Ad, seq int64) { ad.SetInt(ads.AttrUpdateSequenceNo, seq) }

// updatersFor returns the updaters for the collectors of settings, those of old
// that are still wanted among them.
func (u *Updates) updatersFor(s *Settings, old []*updater) []*updater {
	var all []*updater
	for _, c := range s.Collectors {
		i := slices.IndexFunc(old, func(o *updater) bool { return o.to.At.String() == c.At.String() })
		if i >= 0 {
			all = append(all, old[i])
			continue
		}
		all = append(all, newUpdater(u, c))
	}
	return all
}

// reconfigure replaces the collectors and has every ad sent to all of them.
func (q *updateQueue) reconfigure(u *Updates, s *Settings) {
	q.mu.Lock()
	next := u.updatersFor(s, q.updaters)
	for _, n := range next {
		for _, o := range q.leaving {
			if !slices.Contains(q.updaters, n) && n.to.At.String() == o.to.At.String() {
				n.after = o.done // of the latest
			}
		}
	}
	q.leaving = slices.DeleteFunc(q.leaving, (*updater).left)
	for _, o := range q.updaters {
		if !slices.Contains(next, o) {
			o.retire(q.address)
			if o.started {
				q.leaving = append(q.leaving, o)
			}
		}
		o.reconfigured()
	}
	q.updaters = next
	q.all = q.all || q.begun
	q.mu.Unlock()
	engine.Wake(q.rerun)
	engine.Wake(q.now)
}
