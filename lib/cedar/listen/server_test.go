// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/errs"
)

// open is a Security that takes bare numbers from everyone, and believes the
// name that follows them.
type open struct{}

func (open) Narrow(conn *cedar.Conn) (restore func()) { return new(security.Server).Narrow(conn) }

func (open) Handshake(_ context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error) {
	n, err := conn.Int()
	if err != nil {
		return nil, err
	}
	return &security.Request{Command: int(n), Bare: true, Addr: from}, nil
}

func (o open) Next(ctx context.Context, conn *cedar.Conn, last *security.Request) (*security.Request, error) {
	return o.Handshake(ctx, conn, last.Addr)
}

// from is a connection with the address of a peer.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

func tcp(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }

// hall is a listener to which the test brings connections.
type hall struct {
	ch   chan net.Conn
	once sync.Once
	done chan struct{}
}

func newHall() *hall { return &hall{ch: make(chan net.Conn), done: make(chan struct{})} }

func (h *hall) Accept() (net.Conn, error) {
	select {
	case c := <-h.ch:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *hall) Close() error   { h.once.Do(func() { close(h.done) }); return nil }
func (h *hall) Addr() net.Addr { return tcp("192.0.2.1:9618") }

// call connects from an address.
func (h *hall) call(addr string) net.Conn {
	mine, theirs := net.Pipe()
	h.ch <- from{theirs, tcp(addr)}
	return mine
}

// lines is a log that tests look at.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const (
	echoCommand   = 1
	panicCommand  = 2
	detachCommand = 3
	slowCommand   = 4
	failCommand   = 5
)

type house struct {
	server *Server
	hall   *hall
	log    *lines
	slow   chan struct{}      // ends slowCommand
	taken  chan *cedar.Conn   // of detachCommand
	stop   context.CancelFunc // of Serve
	served chan error         // what Serve returned
	panics int64              // that the test provokes
	ctx    context.Context
}

// build starts a server within a bubble.
func build(t *testing.T, l Limits) *house {
	h := &house{hall: newHall(), log: new(lines), slow: make(chan struct{}), taken: make(chan *cedar.Conn, 1), served: make(chan error, 1)}
	table, err := NewTable(
		Command{Row: command.Row{Number: echoCommand, Name: "ECHO", Terms: command.Terms{Keep: true}}, Handle: func(_ context.Context, c *Call) error {
			s, err := c.Conn.String()
			if err != nil {
				return err
			}
			c.Conn.PutString(s)
			return c.Conn.EndMessage()
		}},
		Command{Row: command.Row{Number: panicCommand, Name: "PANIC"}, Handle: func(context.Context, *Call) error { panic("no way out") }},
		Command{Row: command.Row{Number: detachCommand, Name: "DETACH"}, Handle: func(_ context.Context, c *Call) error {
			if !c.Detach() {
				return errors.New("could not be detached")
			}
			h.taken <- c.Conn
			return nil
		}},
		Command{Row: command.Row{Number: slowCommand, Name: "SLOW"}, Handle: func(ctx context.Context, c *Call) error {
			<-h.slow
			c.Conn.PutInt(1)
			return c.Conn.EndMessage()
		}},
		Command{Row: command.Row{Number: failCommand, Name: "FAIL"}, Handle: func(context.Context, *Call) error {
			return errs.E("test", errs.Invalid, "", errors.New("it is\nwrong"))
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	h.server = &Server{Table: table, Security: open{}, Limits: l, Log: slog.New(slog.NewTextHandler(h.log, nil))}
	h.ctx, h.stop = context.WithCancel(t.Context())
	go func() { h.served <- h.server.Serve(h.ctx, h.hall) }()
	return h
}

// end stops the server and waits until nothing is left of it.
func (h *house) end(t *testing.T) {
	t.Helper()
	h.stop()
	if err := <-h.served; err != nil {
		t.Errorf("Serve returned %v after its context had ended", err)
	}
	h.server.Wait(t.Context())
	if all, unknown := h.server.Connections(); all != 0 || unknown != 0 {
		t.Errorf("%d connections are left, %d of unknown peers", all, unknown)
	}
	if got := h.server.Panics(); got != h.panics {
		t.Errorf("%d panics, want %d", got, h.panics)
	}
}

// echo has the server repeat a text.
func echo(t *testing.T, conn *cedar.Conn, text string) {
	t.Helper()
	conn.PutInt(echoCommand)
	conn.PutString(text)
	if err := conn.EndMessage(); err != nil {
		t.Errorf("request: %v", err)
		return
	}
	got, err := conn.String()
	if err != nil || got != text {
		t.Errorf("reply is %q, %v; want %q", got, err, text)
	}
	if err := conn.EndOfMessage(); err != nil {
		t.Error(err)
	}
}

// sendCommand sends a number.
func sendCommand(t *testing.T, nc net.Conn, number int64) *cedar.Conn {
	t.Helper()
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.PutInt(number)
	if err := conn.EndMessage(); err != nil {
		t.Errorf("request: %v", err)
	}
	return conn
}

// closed fails unless the other end has closed the connection, or does so
// before d is over.
func closed(t *testing.T, nc net.Conn, d time.Duration) {
	t.Helper()
	_ = nc.SetReadDeadline(time.Now().Add(d))
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read: %v; want the connection closed within %s", err, d)
	}
}

func TestSeveralCommandsOnOneConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{Idle: time.Minute})
		nc := h.hall.call("192.0.2.7:5")
		conn := cedar.NewConn(nc, cedar.Limits{})
		echo(t, conn, "one")
		time.Sleep(59 * time.Second)
		echo(t, conn, "two")
		start := time.Now()
		closed(t, nc, time.Hour)
		if d := time.Since(start); d != time.Minute {
			t.Errorf("an idle connection was closed after %s, want 1m", d)
		}
		h.end(t)
	})
}

func TestPanicIsContained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		other := cedar.NewConn(h.hall.call("192.0.2.7:5"), cedar.Limits{})
		echo(t, other, "before")
		nc := h.hall.call("192.0.2.8:6")
		sendCommand(t, nc, panicCommand)
		closed(t, nc, time.Second)
		h.panics = 1
		echo(t, other, "after")
		_ = other.Close()
		h.end(t)
		for _, want := range []string{"level=ERROR", `panic="no way out"`, "command=PANIC", "peer=192.0.2.8:6", "server_test.go"} {
			if !strings.Contains(h.log.String(), want) {
				t.Errorf("the log has no %q:\n%s", want, h.log)
			}
		}
	})
}

func TestFailureIsLoggedOnOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		nc := h.hall.call("192.0.2.8:6")
		sendCommand(t, nc, failCommand)
		closed(t, nc, time.Second)
		nc = h.hall.call("192.0.2.8:7")
		sendCommand(t, nc, 4711)
		closed(t, nc, time.Second)
		h.end(t)
		if log := h.log.String(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "FAIL") || !strings.Contains(log, "4711") {
			t.Errorf("want a line about FAIL and one about 4711:\n%s", log)
		}
	})
}

func TestDetach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		mine := sendCommand(t, h.hall.call("192.0.2.7:5"), detachCommand)
		theirs := <-h.taken
		h.end(t) // and the connection lives on
		theirs.PutString("still here")
		go func() {
			if err := theirs.EndMessage(); err != nil {
				t.Error(err)
			}
		}()
		if got, err := mine.String(); got != "still here" {
			t.Errorf("got %q, %v", got, err)
		}
		synctest.Wait()
		_ = theirs.Close()
	})
}

// seconds does something every second, of a bubble's time, until it fails.
func seconds(f func() error) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for f() == nil {
		<-t.C
	}
}

func TestSlowPeers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		does func(nc net.Conn) // until the connection is closed
		want time.Duration     // when that is, at most
	}{
		{"says nothing", func(net.Conn) {}, 20 * time.Second},
		{"stops within a header", func(nc net.Conn) { _, _ = nc.Write([]byte{1, 0}) }, 20 * time.Second},
		{"stops within a packet", func(nc net.Conn) { _, _ = nc.Write([]byte{1, 0, 0, 0, 8, 0, 0}) }, 20 * time.Second},
		{"sends a byte each second", func(nc net.Conn) {
			_, _ = nc.Write([]byte{1, 0, 0, 1, 0})
			seconds(func() error { _, err := nc.Write([]byte{0}); return err })
		}, 20 * time.Second},
		{"never ends its message", func(nc net.Conn) {
			seconds(func() error { _, err := nc.Write([]byte{0, 0, 0, 0, 1, 0}); return err })
		}, 20 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := build(t, Limits{Message: 20 * time.Second, Handshake: time.Minute})
				nc := h.hall.call("192.0.2.7:5")
				start := time.Now()
				var does sync.WaitGroup
				does.Go(func() { tt.does(nc) })
				good := cedar.NewConn(h.hall.call("192.0.2.9:5"), cedar.Limits{})
				echo(t, good, "served meanwhile")
				_ = good.Close()
				closed(t, nc, time.Hour)
				if d := time.Since(start); d > tt.want {
					t.Errorf("closed after %s, want %s at most", d, tt.want)
				}
				_ = nc.Close()
				does.Wait()
				h.end(t)
			})
		})
	}
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, bytes string }{
		{"HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		{"flag out of range", "\x0b\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01"},
		{"empty packet", "\x01\x00\x00\x00\x00"},
		{"packet of 4 GiB", "\x01\xff\xff\xff\xff"},
		{"half a number", "\x01\x00\x00\x00\x04\x00\x00\x00\x01"},
		{"no such command", "\x01\x00\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"a command without its payload", "\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := build(t, Limits{})
				nc := h.hall.call("192.0.2.7:5")
				go func() { _, _ = nc.Write([]byte(tt.bytes)) }()
				closed(t, nc, time.Minute)
				_ = nc.Close()
				h.end(t)
			})
		})
	}
}

func TestHalfClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		conn := sendCommand(t, h.hall.call("192.0.2.7:5"), slowCommand)
		_ = conn.Close() // before the reply
		synctest.Wait()
		close(h.slow)
		h.end(t)
	})
}

// A peer that opens connections without end finds itself without, and nobody
// else does.
func TestFloodDrownsItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{Conns: 40, PerPeer: 20, Handshakes: 30})
		good := cedar.NewConn(h.hall.call("198.51.100.1:1"), cedar.Limits{})
		echo(t, good, "first")
		var flood []net.Conn
		for host := range 4 { // together more than there is room for
			for port := range 50 {
				flood = append(flood, h.hall.call(fmt.Sprintf("192.0.2.%d:%d", host+1, port+1)))
			}
		}
		all, unknown := h.server.Connections()
		if all > 40 || unknown > 30 {
			t.Errorf("%d connections, %d of unknown peers; want 40 and 30 at most", all, unknown)
		}
		echo(t, good, "again")
		for n := range 5 {
			c := cedar.NewConn(h.hall.call(fmt.Sprintf("203.0.113.%d:1", n+1)), cedar.Limits{})
			echo(t, c, "a new one")
			defer c.Close()
		}
		if n := strings.Count(h.log.String(), "\n"); n > 3 {
			t.Errorf("the flood made %d lines of log:\n%s", n, h.log)
		}
		for _, nc := range flood {
			_ = nc.Close()
		}
		_ = good.Close()
		h.end(t)
	})
}

func TestStopIsGraceful(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		idle := h.hall.call("192.0.2.7:5")
		echo(t, cedar.NewConn(idle, cedar.Limits{}), "then idle")
		unknown := h.hall.call("192.0.2.7:6")
		working := sendCommand(t, h.hall.call("192.0.2.7:7"), slowCommand)
		synctest.Wait()
		h.stop()
		gone := make(chan struct{})
		go func() { h.server.Wait(t.Context()); close(gone) }()
		closed(t, idle, time.Second)
		closed(t, unknown, time.Second)
		synctest.Wait()
		select {
		case <-gone:
			t.Error("Wait did not wait for the handler")
		default:
		}
		late, theirs := net.Pipe()
		h.server.ServeConn(t.Context(), from{theirs, tcp("192.0.2.7:8")})
		closed(t, late, time.Second)
		close(h.slow)
		<-gone
		_ = working.Close()
		h.end(t)
	})
}

func TestStopWithoutPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		nc := h.hall.call("192.0.2.7:7")
		sendCommand(t, nc, slowCommand)
		synctest.Wait()
		h.stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { closed(t, nc, 2*time.Minute); close(h.slow) }()
		start := time.Now()
		h.server.Wait(ctx)
		if d := time.Since(start); d != time.Minute {
			t.Errorf("Wait took %s, want the minute it was given", d)
		}
		h.end(t)
	})
}

// flaky is a listener that fails before it goes on.
type flaky struct {
	*hall
	mu    sync.Mutex
	fails int
}

func (f *flaky) Accept() (net.Conn, error) {
	f.mu.Lock()
	f.fails--
	left := f.fails
	f.mu.Unlock()
	if left >= 0 {
		return nil, errors.New("too many open files")
	}
	return f.hall.Accept()
}

func TestAcceptGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		f := &flaky{hall: newHall(), fails: 12}
		start := time.Now()
		served := make(chan error)
		go func() { served <- h.server.Serve(h.ctx, f) }()
		conn := cedar.NewConn(f.call("192.0.2.7:5"), cedar.Limits{})
		echo(t, conn, "at last")
		if d := time.Since(start); d < time.Second || d > 10*time.Second {
			t.Errorf("a failing listener was tried again for %s", d)
		}
		_ = conn.Close()
		_ = f.Close()
		if err := <-served; !errs.Is(err, errs.Broken) {
			t.Errorf("Serve on a listener that somebody closed: %v, want kind Broken", err)
		}
		h.end(t)
	})
}

func TestTable(t *testing.T) {
	t.Parallel()
	handle := func(context.Context, *Call) error { return nil }
	a := Command{Row: command.Row{Number: 7, Name: "A", Terms: command.Terms{Level: security.Read}}, Handle: handle}
	b := Command{Row: command.Row{Number: 5, Name: "B", Terms: command.Terms{Level: security.Daemon, Alternatives: []security.Level{security.Write}}}, Handle: handle}
	table, err := NewTable(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if all := table.Commands(); len(all) != 2 || all[0].Name != "B" || all[1].Name != "A" {
		t.Errorf("commands are %v", all)
	}
	if c := table.Security()[5]; c.Name != "B" || c.Level != security.Daemon || len(c.Alternatives) != 1 {
		t.Errorf("security sees %+v", c)
	}
	if _, err := NewTable(a, Command{Row: command.Row{Number: 7, Name: "C"}, Handle: handle}); !errs.Is(err, errs.Conflict) || !strings.Contains(err.Error(), "already A") {
		t.Errorf("two of one number: %v", err)
	}
	if _, err := NewTable(Command{Row: command.Row{Number: 8, Name: "D"}}); !errs.Is(err, errs.Invalid) {
		t.Errorf("no handler: %v", err)
	}
}

func TestPeerKey(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1:5":                "192.0.2.1",
		"[::ffff:192.0.2.1]:5":       "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:5":   "2001:db8:1:2::/64",
		"[2001:db8:1:2:ff:4:5:6]:77": "2001:db8:1:2::/64",
	} {
		if got := peerKey(from{nil, tcp(addr)}); got != want {
			t.Errorf("%s counts as %s, want %s", addr, got, want)
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if got := peerKey(a); got != "pipe" {
		t.Errorf("a pipe counts as %s", got)
	}
}

// brittle is a Security that breaks on what a peer sends.
type brittle struct{ open }

func (b brittle) Handshake(ctx context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error) {
	r, err := b.open.Handshake(ctx, conn, from)
	if err == nil && r.Command == 666 {
		panic("in the handshake")
	}
	return r, err
}

// A panic before a handler was found ends its connection and nothing else, and
// is counted as one in a handler is.
func TestPanicInHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Limits{})
		h.server.Security = brittle{}
		h.panics = 2
		for i, command := range []int64{666, panicCommand} {
			conn := cedar.NewConn(h.hall.call("192.0.2.7:1"), cedar.Limits{})
			conn.PutInt(command)
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Int(); err == nil {
				t.Error("the connection goes on")
			}
			synctest.Wait()
			if got := h.server.Panics(); got != int64(i+1) {
				t.Errorf("%d panics are counted, want %d", got, i+1)
			}
		}
		conn := cedar.NewConn(h.hall.call("192.0.2.7:2"), cedar.Limits{})
		echo(t, conn, "still here")
		_ = conn.Close()
		if !strings.Contains(h.log.String(), "a panic ended a connection") {
			t.Errorf("the log says\n%s", h.log)
		}
		h.end(t)
	})
}
