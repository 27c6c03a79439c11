// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// Addresses take turns, whatever number of connections each has; those of one
// address are served in the order in which they came.
func TestTurnsAreFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newTurns(1, time.Hour)
		first := all.begin(t.Context(), "flood")
		var mu sync.Mutex
		var served []string
		for i, key := range strings.Fields("flood flood flood flood flood honest flood other honest") {
			go func() {
				u := all.begin(t.Context(), key)
				mu.Lock()
				served = append(served, fmt.Sprint(key, i))
				mu.Unlock()
				u.Idle()
			}()
			synctest.Wait() // they come in this order
		}
		first.Idle()
		synctest.Wait()
		want := strings.Fields("flood0 honest5 other7 flood1 honest8 flood2 flood3 flood4 flood6")
		if !slices.Equal(served, want) {
			t.Errorf("served %q, want %q", served, want)
		}
		if all.free != 1 || len(all.lines) != 0 || all.waiting.Len() != 0 {
			t.Errorf("%d free, %d lines", all.free, len(all.lines))
		}
	})
}

// A turn that waits for something else than its peer is lent to others, and what
// is given up while it waits holds nobody up.
func TestTurnsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newTurns(1, 50*time.Millisecond)
		began := time.Now()
		stalled := all.begin(t.Context(), "a")
		second := all.begin(t.Context(), "a")
		if d := time.Since(began); d != 50*time.Millisecond {
			t.Errorf("the second has its turn after %v", d)
		}
		stalled.Idle() // has none any more
		ctx, cancel := context.WithCancel(t.Context())
		var gone *turn
		go func() { gone = all.begin(ctx, "b") }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if gone == nil || gone.have {
			t.Fatalf("%+v", gone)
		}
		gone.Idle()
		second.Idle()
		for range 3 {
			u := all.begin(t.Context(), "c")
			u.Idle()
			u.Busy()
			u.Idle()
		}
		if all.free != 1 || len(all.lines) != 0 || all.waiting.Len() != 0 {
			t.Errorf("%d free, %d lines", all.free, len(all.lines))
		}
	})
}

// counting is a handshake of two messages that notes how many work at a time.
type counting struct {
	open
	mu        sync.Mutex
	now, most int
	rounds    int
}

func (c *counting) Handshake(_ context.Context, conn *cedar.Conn, _ netip.AddrPort) (*security.Request, error) {
	for range 2 {
		if _, err := conn.Int(); err != nil {
			return nil, err
		}
		if err := conn.EndOfMessage(); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.now++
		c.rounds++
		c.most = max(c.most, c.now)
		c.mu.Unlock()
		for range 100 {
			runtime.Gosched()
		}
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}
	return nil, errors.New("that is all")
}

// Many handshakes are under way, and no more work at a time than there are turns:
// one that waits for its peer has none.
func TestHandshakesTakeTurns(t *testing.T) {
	t.Parallel()
	const peers, atOnce = 64, 2
	table, err := NewTable(Command{Row: command.Row{Number: echoCommand, Name: "ECHO"}, Handle: func(context.Context, *Call) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{}
	s := &Server{Table: table, Security: c}
	s.start()
	s.turns = newTurns(atOnce, time.Hour)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(ctx, l) })
	defer func() { cancel(); wg.Wait(); s.Wait(ctx) }()
	conns := make([]*cedar.Conn, peers)
	for i := range conns {
		nc, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		conns[i] = cedar.NewConn(nc, cedar.Limits{})
	}
	for range 2 {
		for _, conn := range conns {
			conn.PutInt(echoCommand)
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, conn := range conns {
		if _, err := conn.Int(); err == nil {
			t.Errorf("connection %d is answered", i)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rounds != 2*peers || c.most != atOnce {
		t.Errorf("%d rounds of %d, %d at a time at most, want %d", c.rounds, 2*peers, c.most, atOnce)
	}
}
