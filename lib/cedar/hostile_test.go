// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

// packet is a clear packet with any header.
func packet(flag byte, size uint32, payload string) []byte {
	b := append([]byte{flag}, make([]byte, 4)...)
	binary.BigEndian.PutUint32(b[1:], size)
	return append(b, payload...)
}

func TestBadPackets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		bytes  []byte
		kind   errs.Kind
		cause  error
		reason string
	}{
		{"nothing", nil, errs.Transient, io.EOF, ""},
		{"part of a header", []byte{1, 0}, errs.Transient, io.ErrUnexpectedEOF, ""},
		{"part of a payload", packet(1, 8, "abc"), errs.Transient, io.ErrUnexpectedEOF, ""},
		{"no end", packet(0, 8, "12345678"), errs.Transient, io.ErrUnexpectedEOF, ""},
		{"wrong flag", packet(11, 8, "12345678"), errs.Invalid, nil, "packet flag is 11"},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), errs.Invalid, nil, "packet flag is 71"},
		{"TLS", []byte{0x16, 3, 1, 2, 0, 1, 0}, errs.Invalid, nil, "packet flag is 22"},
		{"empty", packet(1, 0, ""), errs.Invalid, nil, "packet is empty"},
		{"over the limit", packet(1, 1<<20+1, "abc"), errs.Exhausted, nil, "the limit is 1048576"},
		{"largest length", packet(1, 1<<32-1, "abc"), errs.Exhausted, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := cedartest.Pipe()
			if _, err := a.Write(tt.bytes); err != nil {
				t.Fatal(err)
			}
			_ = a.Close()
			c := cedar.NewConn(b, cedar.Limits{})
			_, err := c.Int()
			if !errs.Is(err, tt.kind) || tt.cause != nil && !errors.Is(err, tt.cause) || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("got %v, want kind %v, %v, %s", err, tt.kind, tt.cause, tt.reason)
			}
			if _, again := c.String(); again == nil || !c.Broken() {
				t.Errorf("the stream goes on after %v", err)
			}
		})
	}
}

// All flags up to 10 other than 0 end a message.
func TestFlags(t *testing.T) {
	t.Parallel()
	a, b := cedartest.Pipe()
	c := cedar.NewConn(b, cedar.Limits{})
	for flag := byte(1); flag <= 10; flag++ {
		_, _ = a.Write(packet(0, 4, "\x00\x00\x00\x00"))
		_, _ = a.Write(packet(flag, 4, "\x00\x00\x00"+string(rune(flag))))
		i, err := c.Int()
		check(t, i, int64(flag), err)
		if err := c.EndOfMessage(); err != nil {
			t.Error(err)
		}
	}
}

// A length that is only announced takes no memory.
func TestAnnouncedLength(t *testing.T) {
	const conns = 100
	held := make([]*cedar.Conn, conns)
	before := heap()
	for i := range held {
		a, b := cedartest.Pipe()
		_, _ = a.Write(packet(1, 1<<20, "just a little"))
		held[i] = cedar.NewConn(b, cedar.Limits{Timeout: time.Millisecond})
		if _, err := held[i].Int(); !errs.Is(err, errs.Expired) {
			t.Fatal(err)
		}
	}
	if per := (heap() - before) / conns; per > 16<<10 {
		t.Errorf("%d bytes are held for 18 that came", per)
	}
	runtime.KeepAlive(held)
}

// A peer that never ends its message does not get more than the limit.
func TestEndlessMessage(t *testing.T) { // looks at the heap: not parallel
	c := cedar.NewConn(&source{b: packet(0, 100, strings.Repeat("x", 100))}, cedar.Limits{Message: 1 << 20})
	before := heap()
	if _, err := c.Int(); !errs.Is(err, errs.Exhausted) || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d bytes are held", grown)
	}
}

// silent, slow and stalled peers are waited for as long as one message may
// take, and no longer.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	for name, drip := range map[string]time.Duration{"silent": time.Hour, "one byte a second": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, b := cedartest.Pipe()
				ctx, stop := context.WithCancel(t.Context())
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					for _, x := range packet(1, 200, strings.Repeat("x", 200)) {
						select {
						case <-time.After(drip):
							_, _ = a.Write([]byte{x})
						case <-ctx.Done():
							return
						}
					}
				}()
				start := time.Now()
				c := cedar.NewConn(b, cedar.Limits{})
				_, err := c.Int()
				if took := time.Since(start); !errs.Is(err, errs.Expired) || !errors.Is(err, os.ErrDeadlineExceeded) || took != 20*time.Second {
					t.Errorf("after %v: %v", took, err)
				}
				stop()
				<-gone
			})
		})
	}
}

// A peer that does not read is not waited for either.
func TestPeerDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe() // without a buffer
		start := time.Now()
		c := cedar.NewConn(a, cedar.Limits{Timeout: 5 * time.Second})
		c.PutInt(1)
		if err := c.EndMessage(); !errs.Is(err, errs.Expired) || time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		c.PutInt(1)
		if err := c.EndMessage(); err == nil {
			t.Error("half a message was forgotten")
		}
		_ = b.Close()
	})
}

// Waiting for a message may be tried again; half a message may not.
func TestWaitAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := cedartest.Pipe()
		c := cedar.NewConn(b, cedar.Limits{Timeout: time.Second})
		whole := packet(1, 8, "\x00\x00\x00\x00\x00\x00\x00\x05")
		for _, part := range [][]byte{nil, whole[:3], whole[3:9]} {
			_, _ = a.Write(part)
			if _, err := c.Int(); !errs.Is(err, errs.Expired) || c.Broken() {
				t.Errorf("got %v, broken %v", err, c.Broken())
			}
		}
		_, _ = a.Write(whole[9:])
		i, err := c.Int()
		check(t, i, 5, err)
		c.DiscardMessage()

		_, _ = a.Write(packet(0, 4, "\x00\x00\x00\x00"))
		if _, err := c.Int(); !errs.Is(err, errs.Expired) || !c.Broken() {
			t.Errorf("half a message: %v, broken %v", err, c.Broken())
		}
	})
}

func TestWithoutTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, true)
		b.SetTimeout(0)
		go func() {
			time.Sleep(24 * time.Hour)
			a.PutInt(3)
			_ = a.EndMessage()
		}()
		i, err := b.Int()
		check(t, i, 3, err)
	})
}

func TestBind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, false)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		inner, stop := context.WithCancel(t.Context())
		defer stop()
		releaseOuter := b.Bind(ctx)
		release := b.Bind(inner)
		start := time.Now()
		if _, err := b.Int(); !errors.Is(err, context.DeadlineExceeded) || !errs.Is(err, errs.Expired) || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		release()
		releaseOuter()

		done, cancelled := context.WithCancel(t.Context())
		cancelled()
		release = a.Bind(done)
		a.PutInt(1)
		if err := a.EndMessage(); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that was done: %v", err)
		}
		release()
	})
}

// Without a binding any more, a context that ends does not matter.
func TestBindReleased(t *testing.T) {
	t.Parallel()
	a, b := pair(t, true)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		release := b.Bind(ctx)
		go cancel()
		release()
		<-ctx.Done()
		a.PutInt(1)
		if err := a.EndMessage(); err != nil {
			t.Fatal(err)
		}
		i, err := b.Int()
		check(t, i, 1, err)
		b.DiscardMessage()
	}
}

func TestCloseWakesReader(t *testing.T) {
	t.Parallel()
	client, server := tcp(t)
	_ = client
	c := cedar.NewConn(server, cedar.Limits{})
	done := make(chan error, 1)
	go func() {
		_, err := c.Int()
		done <- err
	}()
	_ = c.Close()
	if err := <-done; !errs.Is(err, errs.Transient) {
		t.Errorf("got %v", err)
	}
}

// Encrypted packets cannot be replayed, reordered, cut, changed or made up.
func TestForgedPackets(t *testing.T) {
	t.Parallel()
	key := []byte(strings.Repeat("k", 32))
	r := &recorder{}
	w := cedar.NewConn(r, cedar.Limits{})
	w.SetRand(cedartest.Zeros())
	if err := w.EnableAES(key); err != nil {
		t.Fatal(err)
	}
	var packets [][]byte
	for i := range 3 {
		r.b = nil
		w.PutInt(int64(i))
		if err := w.EndMessage(); err != nil {
			t.Fatal(err)
		}
		packets = append(packets, r.b)
	}
	changed := func(i, at int) []byte {
		b := append([]byte(nil), packets[i]...)
		b[at] ^= 1
		return b
	}
	for name, tt := range map[string]struct {
		send [][]byte
		good int
		kind errs.Kind
	}{
		"as sent":           {packets, 3, errs.Transient},
		"first one changed": {[][]byte{changed(0, 30)}, 0, errs.Denied},
		"IV changed":        {[][]byte{changed(0, 6)}, 0, errs.Denied},
		"tag changed":       {[][]byte{packets[0], changed(1, len(packets[1])-1)}, 1, errs.Denied},
		"flag changed":      {[][]byte{changed(0, 0)}, 0, errs.Denied},
		"replayed":          {[][]byte{packets[0], packets[1], packets[1]}, 2, errs.Denied},
		"first replayed":    {[][]byte{packets[0], packets[0]}, 1, errs.Denied},
		"one left out":      {[][]byte{packets[0], packets[2]}, 1, errs.Denied},
		"reordered":         {[][]byte{packets[1], packets[0]}, 0, errs.Invalid},
		"clear":             {[][]byte{packets[0], packet(1, 8, "12345678")}, 1, errs.Invalid},
		"clear, long":       {[][]byte{packets[0], packet(1, 40, strings.Repeat("x", 40))}, 1, errs.Denied},
		"IV alone":          {[][]byte{packet(1, 16, strings.Repeat("x", 16))}, 0, errs.Invalid},
		"less than an IV":   {[][]byte{packet(1, 3, "abc")}, 0, errs.Invalid},
	} {
		a, b := cedartest.Pipe()
		for _, p := range tt.send {
			_, _ = a.Write(p)
		}
		_ = a.Close()
		c := cedar.NewConn(b, cedar.Limits{})
		if err := c.EnableAES(key); err != nil {
			t.Fatal(err)
		}
		n := 0
		var err error
		for ; err == nil; n++ {
			_, err = c.Int()
			c.DiscardMessage()
		}
		if n-1 != tt.good || !errs.Is(err, tt.kind) {
			t.Errorf("%s: %d messages, then %v; want %d, kind %v", name, n-1, err, tt.good, tt.kind)
		}
	}
}

func TestEnableAES(t *testing.T) {
	t.Parallel()
	key := make([]byte, 32)
	for name, tt := range map[string]struct {
		key    []byte
		before func(a, b *cedar.Conn)
		kind   errs.Kind
	}{
		"short key":     {make([]byte, 16), func(_, _ *cedar.Conn) {}, errs.Invalid},
		"twice":         {key, func(_, b *cedar.Conn) { _ = b.EnableAES(key) }, errs.Conflict},
		"while writing": {key, func(_, b *cedar.Conn) { b.PutInt(1) }, errs.Conflict},
		"while reading": {key, func(a, b *cedar.Conn) { a.PutInt(1); _ = a.EndMessage(); _, _ = b.Int() }, errs.Conflict},
	} {
		a, b := pair(t, false)
		tt.before(a, b)
		if err := b.EnableAES(tt.key); !errs.Is(err, tt.kind) {
			t.Errorf("%s: %v, want kind %v", name, err, tt.kind)
		}
	}
}

// Both ends must have seen the same in clear.
func TestTranscript(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		between func(a, b *cedar.Conn)
		ok      bool
	}{
		"nothing":     {func(_, _ *cedar.Conn) {}, true},
		"one reset":   {func(a, _ *cedar.Conn) { a.ResetDigests() }, false},
		"both reset":  {func(a, b *cedar.Conn) { a.ResetDigests(); b.ResetDigests() }, true},
		"other reset": {func(_, b *cedar.Conn) { b.ResetDigests() }, false},
	} {
		a, b := pair(t, false)
		a.PutString("in clear")
		if err := a.EndMessage(); err != nil {
			t.Fatal(err)
		}
		s, err := b.String()
		check(t, s, "in clear", err)
		b.DiscardMessage()
		tt.between(a, b)
		for _, c := range []*cedar.Conn{a, b} {
			if err := c.EnableAES(make([]byte, 32)); err != nil {
				t.Fatal(err)
			}
		}
		for _, ends := range [][2]*cedar.Conn{{a, b}, {b, a}} {
			ends[0].PutInt(1)
			if err := ends[0].EndMessage(); err != nil {
				t.Fatal(err)
			}
			if _, err := ends[1].Int(); (err == nil) != tt.ok {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
