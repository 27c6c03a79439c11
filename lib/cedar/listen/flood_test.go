// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// asking is a Security with a round of its own: who comes is asked something
// before it is let in, as in a real handshake.
type asking struct{ open }

func (a asking) Handshake(ctx context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error) {
	r, err := a.open.Handshake(ctx, conn, from)
	if err != nil {
		return nil, err
	}
	conn.DiscardMessage()
	conn.PutInt(1)
	if err := conn.EndMessage(); err != nil {
		return nil, err
	}
	if _, err := conn.Int(); err != nil {
		return nil, err
	}
	return r, conn.EndOfMessage()
}

// visit is what an honest peer of asking does: one command on a new connection.
func visit(address string) error {
	nc, err := net.DialTimeout("tcp4", address, 20*time.Second)
	if err != nil {
		return err
	}
	conn := cedar.NewConn(nc, cedar.Limits{Timeout: 20 * time.Second})
	defer conn.Close()
	conn.PutInt(echoCommand)
	if err := conn.EndMessage(); err != nil {
		return err
	}
	if _, err := conn.Int(); err != nil {
		return fmt.Errorf("in the handshake: %w", err)
	}
	conn.DiscardMessage()
	conn.PutInt(1)
	if err := conn.EndMessage(); err != nil {
		return err
	}
	conn.PutString("hello")
	if err := conn.EndMessage(); err != nil {
		return err
	}
	if got, err := conn.String(); err != nil || got != "hello" {
		return fmt.Errorf("the reply is %q, %w", got, err)
	}
	return nil
}

// besiege keeps n connections to the server open, each opened again as soon as
// the server closes it, and has does act on each. It returns once the server has
// closed so many that all of its places are contested.
func besiege(t *testing.T, address string, n int, does func(net.Conn)) {
	t.Helper()
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); wg.Wait() })
	var lost atomic.Int64
	contested := make(chan struct{})
	for range n {
		wg.Go(func() {
			var d net.Dialer
			for ctx.Err() == nil {
				nc, err := d.DialContext(ctx, "tcp4", address)
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
				does(nc)
				_, _ = io.Copy(io.Discard, nc)
				_ = nc.(*net.TCPConn).SetLinger(0) // leave no port behind that waits for a minute
				_ = nc.Close()
				stop()
				if lost.Add(1) == int64(n) {
					close(contested)
				}
			}
		})
	}
	select {
	case <-contested:
	case <-time.After(time.Minute):
		t.Fatal("the server closes no connection")
	}
}

// echoing starts a server that repeats texts, on a port of its own.
func echoing(t testing.TB, security Security, l Limits) (*Server, string) {
	t.Helper()
	table, err := NewTable(Command{Row: command.Row{Number: echoCommand, Name: "ECHO", Terms: command.Terms{Keep: true}}, Handle: func(_ context.Context, c *Call) error {
		s, err := c.Conn.String()
		if err != nil {
			return err
		}
		c.Conn.PutString(s)
		return c.Conn.EndMessage()
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := &Server{Table: table, Security: security, Limits: l}
	nl, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, nl) }()
	t.Cleanup(func() {
		cancel()
		<-served
		server.Wait(context.Background())
		if n := server.Panics(); n != 0 {
			t.Errorf("%d panics", n)
		}
	})
	return server, nl.Addr().String()
}

// Connections that say nothing, more than there are places for and opened again
// as they are closed, do not keep those out that come from the same address and
// have something to say.
func TestSilentFloodFromTheAddressOfHonestPeers(t *testing.T) {
	server, address := echoing(t, asking{}, Limits{})
	nc, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	held := cedar.NewConn(nc, cedar.Limits{Timeout: 20 * time.Second})
	held.PutInt(echoCommand) // stays in its handshake all the time
	if err := held.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Int(); err != nil {
		t.Fatal(err)
	}
	besiege(t, address, 1200, func(net.Conn) {})
	for i := range 8 {
		if err := visit(address); err != nil {
			t.Errorf("honest peer %d: %v", i, err)
		}
	}
	held.DiscardMessage()
	held.PutInt(1)
	if err := held.EndMessage(); err != nil {
		t.Fatal(err)
	}
	held.PutString("still here")
	if err := held.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if got, err := held.String(); got != "still here" {
		t.Errorf("whoever had sent its first packet before the flood is answered %q, %v", got, err)
	}
	if all, unknown := server.Connections(); unknown > 512+15 || all > 4096 {
		t.Errorf("the server holds %d connections, %d of unknown peers", all, unknown)
	}
}

// Those that begin a handshake and leave it there do not either.
func TestFloodOfHandshakesFromTheAddressOfHonestPeers(t *testing.T) {
	server, address := echoing(t, asking{}, Limits{Conns: 800, Handshakes: 300})
	besiege(t, address, 1000, func(nc net.Conn) {
		_, _ = nc.Write([]byte{1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, echoCommand})
	})
	for i := range 8 {
		if err := visit(address); err != nil {
			t.Errorf("honest peer %d: %v", i, err)
		}
	}
	if all, _ := server.Connections(); all > 800 {
		t.Errorf("the server holds %d connections", all)
	}
}
