// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Pipe returns the two ends of a connection in memory. Unlike net.Pipe it
// keeps what was written until it is read, without limit, so neither end
// waits for the other one to read.
func Pipe() (client, server net.Conn) {
	a, b := newStream(), newStream()
	return &end{in: a, out: b, local: addr("client"), remote: addr("server")},
		&end{in: b, out: a, local: addr("server"), remote: addr("client")}
}

type addr string

func (addr) Network() string  { return "pipe" }
func (a addr) String() string { return string(a) }

// stream is one direction.
type stream struct {
	mu     sync.Mutex
	wake   chan struct{} // closed and replaced whenever something changes
	data   []byte
	closed bool // by its writer
	gone   bool // by its reader
}

func newStream() *stream { return &stream{wake: make(chan struct{})} }

func (s *stream) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.wake)
	s.wake = make(chan struct{})
}

type end struct {
	in, out       *stream
	local, remote addr

	mu       sync.Mutex
	readEnd  time.Time
	writeEnd time.Time
	moved    chan struct{} // closed when the read deadline moves
}

func (e *end) Read(b []byte) (int, error) {
	for {
		e.mu.Lock()
		deadline := e.readEnd
		if e.moved == nil {
			e.moved = make(chan struct{})
		}
		moved := e.moved
		e.mu.Unlock()

		s := e.in
		s.mu.Lock()
		n, closed, gone, wake := copy(b, s.data), s.closed, s.gone, s.wake
		if s.data = s.data[n:]; len(s.data) == 0 {
			s.data = nil
		}
		s.mu.Unlock()
		switch {
		case gone:
			return 0, net.ErrClosed
		case !deadline.IsZero() && !time.Now().Before(deadline) && n == 0:
			return 0, os.ErrDeadlineExceeded
		case n > 0 || len(b) == 0:
			return n, nil
		case closed:
			return 0, io.EOF
		}
		var expired <-chan time.Time
		var timer *time.Timer
		if !deadline.IsZero() {
			timer = time.NewTimer(time.Until(deadline))
			expired = timer.C
		}
		select {
		case <-wake:
		case <-moved:
		case <-expired:
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

func (e *end) Write(b []byte) (int, error) {
	e.mu.Lock()
	deadline := e.writeEnd
	e.mu.Unlock()
	if !deadline.IsZero() && !time.Now().Before(deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	var err error
	e.out.change(func() {
		switch {
		case e.out.closed:
			err = net.ErrClosed
		case e.out.gone:
			err = io.ErrClosedPipe
		default:
			e.out.data = append(e.out.data, b...)
		}
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (e *end) Close() error {
	e.out.change(func() { e.out.closed = true })
	e.in.change(func() { e.in.gone = true })
	return nil
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

func (e *end) SetDeadline(t time.Time) error {
	_ = e.SetWriteDeadline(t)
	return e.SetReadDeadline(t)
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.readEnd = t
	if e.moved != nil {
		close(e.moved)
		e.moved = nil
	}
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writeEnd = t
	return nil
}
