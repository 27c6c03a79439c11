// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

const knownCommand = 6

// knowing takes whoever sends knownCommand for a schedd that has authenticated.
type knowing struct{ open }

func (k knowing) Handshake(ctx context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error) {
	r, err := k.open.Handshake(ctx, conn, from)
	conn.DiscardMessage()
	if err == nil && r.Command == knownCommand {
		r.Bare, r.Session, r.Peer = false, &security.Session{}, security.Peer{User: "schedd@pool", Method: "IDTOKENS"}
	}
	return r, err
}

// hoard begins a command and then sends the first MiB of a message without its
// end, in packets of 1 MiB, as far as it is taken.
func hoard(nc net.Conn, mib int) {
	_, _ = nc.Write([]byte{1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, echoCommand})
	packet := make([]byte, 5+cedar.MaxPacket)
	binary.BigEndian.PutUint32(packet[1:], cedar.MaxPacket)
	for range mib {
		if _, err := nc.Write(packet); err != nil {
			return
		}
	}
}

// Unread messages take no more memory than they were given, whoever sends them
// and from wherever, and a known user's large message passes beside them.
func TestUnreadMessagesAreWithinTheBudget(t *testing.T) {
	for _, tt := range []struct {
		name  string
		from  func(i int) string
		most  int // held
		close int // of 64 connections, at least
	}{
		{"one address", func(i int) string { return fmt.Sprintf("192.0.2.7:%d", i+1) }, 4 << 20, 62},
		{"one connection per address", func(i int) string { return fmt.Sprintf("192.0.2.%d:1", i+1) }, 16 << 20, 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { withinBudget(t, tt.from, tt.most, tt.close) })
		})
	}
}

func withinBudget(t *testing.T, from func(int) string, most, mostly int) {
	log := new(lines)
	echoes := func(_ context.Context, c *Call) error {
		s, err := c.Conn.String()
		if err != nil {
			return err
		}
		c.Conn.PutInt(int64(len(s)))
		return c.Conn.EndMessage()
	}
	table, err := NewTable(Command{Row: command.Row{Number: echoCommand, Name: "ECHO"}, Handle: echoes}, Command{Row: command.Row{Number: knownCommand, Name: "KNOWN"}, Handle: echoes})
	if err != nil {
		t.Fatal(err)
	}
	server := &Server{Table: table, Security: knowing{}, Log: slog.New(slog.NewTextHandler(log, nil)), Wire: cedar.Limits{String: 32 << 20}}
	h := &house{server: server, hall: newHall(), served: make(chan error, 1)}
	h.ctx, h.stop = context.WithCancel(t.Context())
	go func() { h.served <- server.Serve(h.ctx, h.hall) }()

	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var attackers sync.WaitGroup
	ends := make([]net.Conn, 64)
	var closed sync.Map
	for i := range ends {
		ends[i] = h.hall.call(from(i))
		attackers.Go(func() {
			hoard(ends[i], []int{2, 31}[i%2])
			_, _ = io.Copy(io.Discard, ends[i])
			closed.Store(i, true)
		})
		synctest.Wait() // what it sends is in, or refused
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	// The attackers that are still there hold a packet of 1 MiB each.
	if got := server.Held(); got > most || got < most/2 {
		t.Errorf("%d bytes are held, want %d at most, and most of that", got, most)
	}
	if got := int64(during.HeapAlloc) - int64(before.HeapAlloc); got > int64(most)+24<<20 {
		t.Errorf("the heap grew by %d MiB", got>>20)
	}
	n := 0
	closed.Range(func(any, any) bool { n++; return true })
	if n < mostly || server.Refused() < int64(mostly) {
		t.Errorf("%d connections were closed, %d refusals counted; want %d", n, server.Refused(), mostly)
	}
	if text := log.String(); !strings.Contains(text, "a message refused for want of room") || !strings.Contains(text, "peer=192.0.2.") {
		t.Errorf("the log does not say it:\n%s", text)
	}

	nc := h.hall.call("192.0.2.7:1000") // where the flood comes from
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.PutInt(knownCommand)
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	conn.PutString(strings.Repeat("x", 16<<20))
	if err := conn.EndMessage(); err != nil {
		t.Errorf("the large message of a known user: %v", err)
	}
	if got, err := conn.Int(); err != nil || got != 16<<20 {
		t.Errorf("the reply to a known user is %d, %v", got, err)
	}
	_ = conn.Close()
	for _, nc := range ends {
		_ = nc.Close()
	}
	attackers.Wait()
	h.end(t)
	if got := server.Held(); got != 0 {
		t.Errorf("%d bytes are held for connections that are gone", got)
	}
}
