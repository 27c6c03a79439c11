// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// A job without an account of its own can stop its starter (SIGSTOP), and would
// keep its slot as long as the pipe has room for orders. So a starter answers each
// order as soon as it has read it, and is killed when it does not.

// answerWithin is half of the time that an order may stay without an answer. It has
// to run out twice: after a pause of the whole machine the startd's clock may be
// over before the starter had its turn.
const answerWithin = 10 * time.Second

// pingWithin is answerWithin for what is patient: a machine that swaps may keep a
// starter from running for a while.
const pingWithin = time.Minute

// patient reports whether an order is one by which no job has to leave.
func patient(o protocol.Order) bool {
	switch o.(type) {
	case protocol.Ping, protocol.SlotAd, protocol.Cataloged:
		return true
	}
	return false
}

// pingAfter is how long a starter may say nothing before it is asked whether it
// reads its orders.
const pingAfter = time.Minute

// answers are those that a starter owes, in the order of the orders.
type answers struct {
	late func(order string, after time.Duration) // called at most once

	within time.Duration // half of the time for an answer
	// unread is how many reports wait for the startd. Behind them the answer may
	// stand: then it is not the starter that is slow.
	unread atomic.Int32

	mu     sync.Mutex
	owed   []Numbered
	timer  *time.Timer
	second bool // the first of the two times is over
	over   bool
}

func (a *answers) expect(o Numbered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	a.owed = append(a.owed, o)
	// An order may be sent while a ping is not answered yet: its time is shorter.
	if len(a.owed) == 1 || patient(a.owed[0].Order) && !patient(o.Order) {
		a.arm()
	}
}

// arm starts the time of the answers that are owed.
func (a *answers) arm() {
	a.second = false
	if a.timer == nil {
		a.timer = time.AfterFunc(a.half(), a.due)
		return
	}
	a.timer.Reset(a.half())
}

// half is half of the time that the starter has for the answers it owes.
func (a *answers) half() time.Duration {
	for _, o := range a.owed {
		if !patient(o.Order) {
			return a.within
		}
	}
	return max(pingWithin, a.within)
}

// answered takes the answer to all orders up to one.
func (a *answers) answered(order uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for n < len(a.owed) && a.owed[n].ID <= order {
		n++
	}
	if n == 0 {
		return // the starter makes it up
	}
	a.owed = a.owed[n:]
	if len(a.owed) > 0 && !a.over {
		a.arm()
	} else if a.timer != nil {
		a.timer.Stop()
	}
}

func (a *answers) due() {
	a.mu.Lock()
	if a.over || len(a.owed) == 0 {
		a.mu.Unlock()
		return
	}
	if !a.second || a.unread.Load() > 0 {
		a.second = a.unread.Load() == 0
		a.timer.Reset(a.half())
		a.mu.Unlock()
		return
	}
	a.over = true
	order, after := a.owed[0].Order.Kind(), 2*a.half()
	a.mu.Unlock()
	a.late(order, after)
}

// all are the orders that have no answer.
func (a *answers) all() []Numbered {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.owed)
}

// stop ends the watch: the starter is gone.
func (a *answers) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
