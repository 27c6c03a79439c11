// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// line is the conversation over one connection, from New or Replace until it
// breaks. A goroutine of its own reads, so that a shadow that goes away between
// two calls is noticed at once.
type line struct {
	conn    *cedar.Conn
	timeout time.Duration
	contact func() // after each answer
	turn    chan struct{}
	gone    chan struct{} // closed when it broke
	timer   *time.Timer

	// writing is held while a request is sent: its answer, and with it the
	// turn of the next, may be there before the sender is out of EndMessage.
	writing sync.Mutex

	mu      sync.Mutex
	waiting *pending
	cause   error // why it broke
}

// pending is a call that waits for its answer.
type pending struct {
	request *Request
	more    bool // the caller keeps the turn after this answer
	done    chan Reply
}

func newLine(conn *cedar.Conn, timeout time.Duration, contact func()) *line {
	conn.SetLimits(cedar.Limits{Message: MaxData + mostValues, AdLines: mostLines, Timeout: -1})
	conn.BoundNext(mostValues)
	l := &line{conn: conn, timeout: timeout, contact: contact, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	l.timer = time.AfterFunc(timeout, func() {
		l.fail(errs.E("", errs.Expired, "", fmt.Errorf("no answer within %s", timeout)))
	})
	l.timer.Stop()
	go l.read()
	return l
}

// fail ends the conversation, once.
func (l *line) fail(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	l.cause = cause
	l.timer.Stop()
	close(l.gone) // whoever sees the connection closed finds it broken
	_ = l.conn.Close()
}

// why returns what broke the conversation.
func (l *line) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// read takes the answers in, for the calls that wait for them.
func (l *line) read() {
	for {
		if _, err := l.conn.Bytes(0); err != nil {
			if errors.Is(err, io.EOF) {
				err = errs.E("", errs.Transient, "", errors.New("the shadow closed the connection"))
			}
			l.fail(err)
			return
		}
		l.mu.Lock()
		p := l.waiting
		l.waiting = nil
		l.mu.Unlock()
		if p == nil {
			l.fail(errs.E("", errs.Invalid, "", errors.New("a message that answers nothing")))
			return
		}
		reply, err := ReadReply(l.conn, p.request)
		if err == nil {
			err = l.conn.EndOfMessage()
		}
		if err != nil {
			l.fail(fmt.Errorf("bad answer to %s: %w", p.request.Call, err))
			return
		}
		l.timer.Stop()
		l.conn.BoundNext(mostValues)
		l.contact()
		more := p.more // p belongs to the caller once done is served
		p.done <- reply
		if !more {
			<-l.turn
		}
	}
}

// take waits for the turn to call.
func (l *line) take(ctx context.Context) error {
	select {
	case <-l.gone: // a broken one is never chosen
		return ErrLost
	default:
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-l.gone:
		return ErrLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send sends a message, under the turn.
func (l *line) send(p *pending, put func(*cedar.Conn)) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return ErrLost
	}
	l.waiting = p
	if p != nil {
		l.conn.BoundNext(p.request.mostAnswer())
	}
	l.timer.Reset(l.timeout)
	l.mu.Unlock()
	put(l.conn)
	if err := l.conn.EndMessage(); err != nil {
		l.fail(err)
		return ErrLost
	}
	if p == nil { // no answer ends the time
		l.timer.Stop()
	}
	return nil
}

// answer waits for the answer. Whoever gives up leaves it, and the turn with
// it, to the goroutine that reads.
func (l *line) answer(ctx context.Context, p *pending) (Reply, error) {
	select {
	case reply := <-p.done:
		return reply, nil
	case <-ctx.Done():
		select {
		case reply := <-p.done:
			return reply, nil
		default:
			return Reply{}, context.Cause(ctx)
		}
	case <-l.gone:
		select {
		case reply := <-p.done:
			return reply, nil
		default:
			return Reply{}, ErrLost
		}
	}
}
