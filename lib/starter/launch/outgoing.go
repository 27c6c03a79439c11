// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"cmp"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// sendTimeout bounds how long one order may be on its way to a starter that
// does not read. Such a starter is stopped or stuck.
const sendTimeout = 10 * time.Second

// mostWaiting is how many orders may wait for a starter. A life has a handful
// of them; behind this many the starter reads none.
const mostWaiting = 64

// message is an order for a starter as a line, with the connection that goes along.
type message struct {
	order Numbered
	line  []byte
	nc    net.Conn
	sent  chan error // with room for one; nil if nobody waits for it
}

// kind is what the message is called where it goes wrong.
func (m message) kind() string {
	if m.order.Order == nil {
		return "heard"
	}
	return m.order.Order.Kind()
}

// outgoing is a queue that writes lines to a starter in the order they were put, by a goroutine of
// its own: whoever has an order for a starter never waits for its reader.
type outgoing struct {
	to     Channel
	stuck  func(why error) // called at most once, when the starter does not read
	work   sync.WaitGroup
	cancel sync.Once
	open   answers // which the starter owes
	ack    func(report uint64) []byte

	mu      sync.Mutex
	shut    bool // nothing is taken any more
	waiting []message
	heard   uint64        // up to where reports are to be acknowledged; 0 when that was said
	wake    chan struct{} // something waits or the queue is shut
}

// newOutgoing returns a queue that writes to ch and owns it. A starter has twice
// within to answer an order. stuck must not call the queue. ack is the line by which
// reports are acknowledged.
func newOutgoing(ch Channel, within time.Duration, stuck func(why error), ack func(uint64) []byte) *outgoing {
	q := &outgoing{to: ch, stuck: stuck, ack: ack, wake: make(chan struct{}, 1)}
	q.open.late, q.open.within = q.silent, cmp.Or(within, answerWithin)
	q.work.Go(q.write)
	return q
}

// put has m written and returns at once. The connection of m has to live until
// m.sent has an answer.
func (q *outgoing) put(m message) error {
	const op = "launch.Send"
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut {
		return errs.E(op, errs.NotFound, m.kind(), errGone)
	}
	if len(q.waiting) >= mostWaiting {
		q.fail()
		err := errs.E(op, errs.Broken, m.kind(), errors.New("the starter does not read its orders, too many wait"))
		q.work.Go(func() { q.giveUp(err) })
		return err
	}
	q.waiting = append(q.waiting, m)
	q.awake()
	return nil
}

// acknowledge says up to where reports were dealt with, when the starter reads the
// next line.
func (q *outgoing) acknowledge(report uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.shut {
		q.heard = max(q.heard, report)
		q.awake()
	}
}

var errGone = errors.New("the starter is gone")

func (q *outgoing) awake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// fail shuts the queue and answers those who wait in it. The caller holds mu.
func (q *outgoing) fail() {
	q.shut = true
	for _, m := range q.waiting {
		if m.sent != nil {
			m.sent <- errs.E("launch.Send", errs.NotFound, m.kind(), errGone)
		}
	}
	q.waiting = nil
	q.awake()
}

// giveUp tells once that the starter does not read, and ends the line to it.
func (q *outgoing) giveUp(why error) {
	q.cancel.Do(func() {
		q.stuck(why)
		q.to.Close()
	})
}

// next waits for a line to write; false when the queue is shut.
func (q *outgoing) next() (message, bool) {
	for {
		q.mu.Lock()
		if q.shut {
			q.mu.Unlock()
			return message{}, false
		}
		if len(q.waiting) > 0 {
			m := q.waiting[0]
			q.waiting[0] = message{}
			q.waiting = q.waiting[1:]
			q.mu.Unlock()
			return m, true
		}
		if heard := q.heard; heard > 0 {
			q.heard = 0
			q.mu.Unlock()
			return message{line: q.ack(heard)}, true
		}
		q.mu.Unlock()
		<-q.wake
	}
}

// write is the goroutine of the queue.
func (q *outgoing) write() {
	for {
		m, ok := q.next()
		if !ok {
			return
		}
		if _, plan := m.order.Order.(*protocol.Plan); !plan && m.order.Order != nil {
			q.open.expect(m.order)
		}
		err := q.one(m)
		ended := err != nil && !errs.Is(err, errs.Unsupported) // that was refused before a byte was written
		if ended {
			q.mu.Lock()
			q.fail()
			q.mu.Unlock()
		}
		// Who sent it may hang up when it hears of the error, and wait for the end of a
		// starter that nothing ends any more: so that is killed first.
		if errs.Is(err, errs.Transient) {
			q.giveUp(errs.E("launch.Send", errs.Broken, m.kind(), errors.New("the starter did not read an order for "+sendTimeout.String())))
		}
		if m.sent != nil {
			m.sent <- err
		}
		if ended {
			return
		}
	}
}

// one writes a line, and nothing of it when that is Unsupported.
func (q *outgoing) one(m message) error {
	_ = q.to.SetWriteDeadline(time.Now().Add(sendTimeout)) // unsupported on some systems: then it waits
	var err error
	if m.nc != nil {
		err = q.to.Pass(m.line, m.nc)
	} else {
		_, err = q.to.Write(m.line)
	}
	if err == nil {
		return nil
	}
	kind := errs.NotFound
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		kind = errs.Transient
	case errs.Is(err, errs.Unsupported):
		kind = errs.Unsupported
	}
	return errs.E("launch.Send", kind, m.kind(), err)
}

// silent ends a starter that has read none of its orders for too long, though the
// pipe took them.
func (q *outgoing) silent(order string, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut {
		return
	}
	q.fail()
	err := errs.E("launch.Send", errs.Broken, order, errors.New("the starter did not answer an order for "+after.String()+"; it may have been stopped"))
	q.work.Go(func() { q.giveUp(err) })
}

// close ends the line: the starter reads its end. What still waits is dropped.
func (q *outgoing) close() {
	q.mu.Lock()
	q.fail()
	q.mu.Unlock()
	q.open.stop()
	q.cancel.Do(func() { q.to.Close() })
}

// wait waits for the queue's goroutines, once it is closed and the starter is
// gone.
func (q *outgoing) wait() { q.work.Wait() }
