// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// turns share out the processor among handshakes, which cost more than what a
// peer needs to begin one: as many work at the same time as there are
// processors, and the addresses that wait are served in turn, whatever number of
// connections each has. A connection that waits for its peer has no turn.
type turns struct {
	// stall is how long a turn lasts. Work that takes longer does not work but
	// waits, for a server of names or a file system, and another goes on.
	stall time.Duration

	mu      sync.Mutex
	free    int
	lines   map[string]*list.Element // of *line, by key
	waiting list.List                // of *line, whose turn is next first
}

// line is those of one key that wait, the first that came first.
type line struct {
	key string
	all []*waiter
}

type waiter struct {
	ready chan struct{}
	gone  bool // waits no more
}

func newTurns(n int, stall time.Duration) *turns {
	return &turns{free: max(1, n), stall: stall, lines: make(map[string]*list.Element)}
}

// turn is what one handshake has or waits for. It is the cedar.Yielder of its
// connection.
type turn struct {
	of    *turns
	key   string
	ctx   context.Context
	timer *time.Timer
	have  bool // of.mu
}

// begin waits for a turn.
func (t *turns) begin(ctx context.Context, key string) *turn {
	u := &turn{of: t, key: key, ctx: ctx}
	u.Busy()
	return u
}

// Busy implements cedar.Yielder. When the context ends first it returns without
// a turn: the stream ends then too.
func (u *turn) Busy() {
	t := u.of
	t.mu.Lock()
	if t.free > 0 { // then no handshake waits
		t.free--
		u.start()
		t.mu.Unlock()
		return
	}
	w := &waiter{ready: make(chan struct{})}
	el := t.lines[u.key]
	if el == nil {
		el = t.waiting.PushBack(&line{key: u.key})
		t.lines[u.key] = el
	}
	l := el.Value.(*line)
	l.all = append(l.all, w)
	t.mu.Unlock()
	select {
	case <-w.ready:
		t.mu.Lock()
		u.start()
		t.mu.Unlock()
	case <-u.ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		select {
		case <-w.ready:
			t.pass()
		default:
			w.gone = true
		}
	}
}

// start begins the time of a turn. The caller holds the lock.
func (u *turn) start() {
	u.have = true
	if u.timer == nil {
		u.timer = time.AfterFunc(u.of.stall, u.Idle)
	} else {
		u.timer.Reset(u.of.stall)
	}
}

// Idle implements cedar.Yielder.
func (u *turn) Idle() {
	t := u.of
	t.mu.Lock()
	defer t.mu.Unlock()
	if !u.have {
		return
	}
	u.have = false
	u.timer.Stop()
	t.pass()
}

// pass gives a turn to the handshake that is next. The caller holds the lock.
func (t *turns) pass() {
	for el := t.waiting.Front(); el != nil; el = t.waiting.Front() {
		l := el.Value.(*line)
		var next *waiter
		for next == nil && len(l.all) > 0 {
			if !l.all[0].gone {
				next = l.all[0]
			}
			l.all = l.all[1:]
		}
		if len(l.all) > 0 {
			t.waiting.MoveToBack(el)
		} else {
			t.waiting.Remove(el)
			delete(t.lines, l.key)
		}
		if next != nil {
			close(next.ready)
			return
		}
	}
	t.free++
}
