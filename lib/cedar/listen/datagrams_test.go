// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
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

// Datagram takes bare numbers from everyone but 7.
func (open) Datagram(_ context.Context, from netip.AddrPort, m cedar.Datagram) (*security.Request, *cedar.Conn, error) {
	conn := cedar.MessageReader(m.Payload, cedar.Limits{})
	n, err := conn.Int()
	if err == nil && n == 7 {
		err = errs.E("open.Datagram", errs.Denied, "", errors.New("7 is for nobody"))
	}
	return &security.Request{Command: int(n), Bare: true, Addr: from}, conn, err
}

// letterbox is a socket for datagrams, to which the test brings them.
type letterbox struct {
	net.PacketConn
	ch   chan letter
	once sync.Once
	done chan struct{}
}

type letter struct {
	b    []byte
	from net.Addr
	err  error
}

func newLetterbox() *letterbox {
	return &letterbox{ch: make(chan letter), done: make(chan struct{})}
}

func (l *letterbox) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case p := <-l.ch:
		return copy(b, p.b), p.from, p.err
	case <-l.done:
		return 0, nil, net.ErrClosed
	}
}

func (l *letterbox) Close() error        { l.once.Do(func() { close(l.done) }); return nil }
func (l *letterbox) LocalAddr() net.Addr { return udp("192.0.2.1:9618") }

func (l *letterbox) drop(b []byte) { l.ch <- letter{b: b, from: udp("192.0.2.7:4000")} }

func udp(text string) net.Addr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(text)) }

// A command in datagrams is handled when all of it is there, and nothing else
// that arrives does any harm.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, box := &lines{}, newLetterbox()
		got := make(chan string, 1000)
		release := make(chan struct{})
		handle := func(ctx context.Context, c *Call) error {
			text, err := c.Conn.String()
			if err := errors.Join(err, c.Conn.EndOfMessage()); err != nil {
				return err
			}
			switch text {
			case "panic":
				panic("in a handler")
			case "wait":
				<-release
			case "detach":
				if c.Detach() {
					t.Error("a datagram was taken from the server")
				}
			case "answer":
				c.Conn.PutInt(1)
				if err := c.Conn.EndMessage(); err != nil {
					t.Error(err)
				}
				if _, err := c.Conn.Int(); err == nil {
					t.Error("somebody answers")
				}
			}
			got <- text + " of " + c.Addr.String()
			return nil
		}
		table, err := NewTable(Command{Row: command.Row{Number: 1, Name: "ONE", Terms: command.Terms{Datagrams: true}}, Handle: handle}, Command{Row: command.Row{Number: 2, Name: "STREAM"}, Handle: handle}, Command{Row: command.Row{Number: 7, Name: "SEVEN", Terms: command.Terms{Datagrams: true}}, Handle: handle})
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{Table: table, Security: open{}, Datagrams: open{}, Log: slog.New(slog.NewTextHandler(log, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- s.ServePackets(ctx, box) }()
		send := func(number int64, text string, fragment int) [][]byte {
			b, err := cedar.WriteMessage(func(c *cedar.Conn) { c.PutInt(number); c.PutString(text) })
			if err != nil {
				t.Fatal(err)
			}
			parts, err := cedar.Datagram{Payload: b}.Split(cedar.MessageID{IP: 1, Number: uint16(len(text))}, fragment)
			if err != nil {
				t.Fatal(err)
			}
			return parts
		}
		next := func(want string) {
			t.Helper()
			synctest.Wait()
			select {
			case s := <-got:
				if s != want+" of 192.0.2.7:4000" {
					t.Errorf("%.60q, want %.60q", s, want)
				}
			default:
				t.Errorf("%.60q did not arrive", want)
			}
		}
		nothing := func(why string) {
			t.Helper()
			synctest.Wait()
			select {
			case s := <-got:
				t.Errorf("%s: %.60q arrived", why, s)
			default:
			}
		}
		box.drop(send(1, "short", 1000)[0])
		next("short")
		long := strings.Repeat("long", 1000)
		parts := send(1, long, 1000)
		for _, i := range []int{4, 0, 3, 1} {
			box.drop(parts[i])
			nothing("a part")
		}
		box.ch <- letter{err: errors.New("somebody is gone")}
		box.drop([]byte("x"))
		box.drop(parts[0]) // once more
		box.ch <- letter{b: parts[2], from: udp("192.0.2.8:4000")}
		nothing("a part of another")
		box.drop(parts[2])
		next(long)
		box.drop(send(2, "stream", 1000)[0])
		box.drop(send(3, "unknown", 1000)[0])
		box.drop(send(7, "denied", 1000)[0])
		box.drop(send(1, "panic", 1000)[0])
		nothing("refused")
		for _, text := range []string{"detach", "answer", "after"} {
			box.drop(send(1, text, 1000)[0])
			next(text)
		}
		for range datagramHandlers + 5 {
			box.drop(send(1, "wait", 1000)[0])
		}
		nothing("those that wait")
		time.Sleep(11 * time.Second) // a bubble's
		box.drop(send(1, "too much", 1000)[0])
		nothing("too much")
		close(release)
		synctest.Wait()
		if n := len(got); n != datagramHandlers {
			t.Errorf("%d messages were worked on, want %d", n, datagramHandlers)
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		s.Wait(t.Context())
		for _, want := range []string{"it is not taken in datagrams", "the handler of a command panicked", "datagram dropped", "too many messages"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log has no %q:\n%s", want, log)
			}
		}
	})
}

// Who cannot say who sent a datagram takes none; a socket that fails is told.
func TestNoPackets(t *testing.T) {
	t.Parallel()
	if err := (&Server{Security: open{}}).ServePackets(t.Context(), newLetterbox()); !errs.Is(err, errs.Internal) {
		t.Error(err)
	}
	box := newLetterbox()
	_ = box.Close()
	if err := (&Server{Security: open{}, Datagrams: open{}}).ServePackets(t.Context(), box); !errs.Is(err, errs.Broken) {
		t.Error(err)
	}
}

// A socket for datagrams goes where the address says.
func TestPost(t *testing.T) {
	t.Parallel()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	at := pc.LocalAddr().(*net.UDPAddr).AddrPort()
	inner := cedar.Sinful{Host: at.Addr().String(), Port: int(at.Port())}
	for name, to := range map[string]cedar.Sinful{
		"host": inner, "addrs": {Host: "192.0.2.1", Port: 1, Addrs: []netip.AddrPort{at}},
		"private": {Host: "192.0.2.1", Port: 1, PrivNet: "lab", PrivAddr: &inner},
	} {
		nc, err := (&Dialer{PrivateNetwork: "lab", Source: Source{V4: at.Addr()}}).Post(t.Context(), to)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := nc.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, _, err := pc.ReadFrom(b)
		if err != nil || string(b[:n]) != name {
			t.Errorf("%s: %q %v", name, b[:n], err)
		}
		_ = nc.Close()
	}
	if _, err := (&Dialer{}).Post(t.Context(), cedar.Sinful{}); !errs.Is(err, errs.Transient) {
		t.Error(err)
	}
}
