// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// maxTLSRecords bounds the TLS bytes of one message, as HTCondor does.
const maxTLSRecords = 1 << 20

// tlsEngine lets a TLS side, which blocks, be driven in steps: the SSL method
// carries TLS records in messages that go to and fro in turn, whether there is
// something to carry or not. The engine is the connection below TLS. What TLS
// writes is kept until it is taken, what it wants to read is fed; settle waits
// until it can do no more without the peer.
type tlsEngine struct {
	mu      sync.Mutex
	changed *sync.Cond
	in, out []byte
	starved bool // a reader waits for more
	running bool
	closed  bool
	err     error // how the last task ended
	tasks   sync.WaitGroup
}

func newTLSEngine() *tlsEngine {
	e := &tlsEngine{}
	e.changed = sync.NewCond(&e.mu)
	return e
}

// start runs f, which may read and write the engine. One task at a time.
func (e *tlsEngine) start(f func() error) {
	e.mu.Lock()
	e.running, e.err = true, nil
	e.mu.Unlock()
	e.tasks.Go(func() {
		err := f()
		e.mu.Lock()
		e.running, e.err = false, err
		e.mu.Unlock()
		e.changed.Broadcast()
	})
}

// settle waits until the task has ended or needs more from the peer.
func (e *tlsEngine) settle() (ended bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.running && !e.starved {
		e.changed.Wait()
	}
	return !e.running, e.err
}

// feed gives TLS what arrived. A peer that sends what is not read is stopped.
func (e *tlsEngine) feed(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	e.mu.Lock()
	if len(e.in)+len(b) > maxTLSRecords {
		e.mu.Unlock()
		return errTooMuchTLS
	}
	e.in = append(e.in, b...)
	e.starved = false
	e.mu.Unlock()
	e.changed.Broadcast()
	return nil
}

// take returns what TLS wrote since the last take.
func (e *tlsEngine) take() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.out
	e.out = nil
	return b
}

// Close ends the task, if one waits, and waits for it.
func (e *tlsEngine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.changed.Broadcast()
	e.tasks.Wait()
	return nil
}

// Read implements net.Conn for TLS.
func (e *tlsEngine) Read(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.in) == 0 && !e.closed {
		e.starved = true
		e.changed.Broadcast()
		e.changed.Wait()
	}
	e.starved = false
	if e.closed {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(b, e.in)
	e.in = e.in[n:]
	return n, nil
}

var errTooMuchTLS = errors.New("more TLS than fits into a message")

// Write implements net.Conn for TLS.
func (e *tlsEngine) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.out)+len(b) > maxTLSRecords {
		return 0, errTooMuchTLS
	}
	e.out = append(e.out, b...)
	return len(b), nil
}

// The rest of net.Conn: there are no deadlines here, the messages have them.

// LocalAddr implements net.Conn.
func (*tlsEngine) LocalAddr() net.Addr { return &net.UnixAddr{} }

// RemoteAddr implements net.Conn.
func (*tlsEngine) RemoteAddr() net.Addr { return &net.UnixAddr{} }

// SetDeadline implements net.Conn.
func (*tlsEngine) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (*tlsEngine) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (*tlsEngine) SetWriteDeadline(time.Time) error { return nil }

var _ net.Conn = (*tlsEngine)(nil)
