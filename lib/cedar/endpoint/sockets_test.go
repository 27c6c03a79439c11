// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// unsecured takes a number from everyone.
type unsecured struct{}

func (unsecured) Narrow(*cedar.Conn) (restore func()) { return func() {} }

func (unsecured) Handshake(_ context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error) {
	n, err := conn.Int()
	return &security.Request{Command: int(n), Addr: from}, err
}

func (unsecured) Next(context.Context, *cedar.Conn, *security.Request) (*security.Request, error) {
	return nil, io.EOF
}

// server answers the number 1 with 2.
func server(t *testing.T) *listen.Server {
	t.Helper()
	table, err := listen.NewTable(listen.Command{Row: command.Row{Number: 1, Name: "ONE"}, Handle: func(_ context.Context, c *listen.Call) error {
		c.Conn.PutInt(2)
		return c.Conn.EndMessage()
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &listen.Server{Table: table, Security: unsecured{}}
}

// A broker hears from a daemon and from a starter each CCB_HEARTBEAT_INTERVAL, and
// is asked again CCB_RECONNECT_TIME, and up to a tenth of it, after it was lost.
func TestBrokerKnobs(t *testing.T) {
	t.Parallel()
	const text = "CCB_HEARTBEAT_INTERVAL = 100\nCCB_RECONNECT_TIME = 70\nSTARTER.CCB_HEARTBEAT_INTERVAL = 45\nSTARTER.CCB_RECONNECT_TIME = 20\n"
	for subsystem, want := range map[string][2]time.Duration{
		"STARTD": {100 * time.Second, 70 * time.Second}, "STARTER": {45 * time.Second, 20 * time.Second},
	} {
		c, err := config.Parse("test.conf", text, config.Options{Subsystem: subsystem})
		if err != nil {
			t.Fatal(err)
		}
		n, err := NetworkFrom(c, subsystem)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			opened := make(chan *cedar.Conn)
			registered := make(chan struct{}, 1)
			s := &Sockets{
				Network: n, Server: server(t), Name: func() string { return subsystem }, Brokers: []string{"cm.example"}, Log: quiet(),
				Broker: func(context.Context, string) (*cedar.Conn, error) {
					ours, theirs := net.Pipe()
					opened <- cedar.NewConn(theirs, cedar.Limits{})
					return cedar.NewConn(ours, cedar.Limits{}), nil
				},
				Registered: func() { registered <- struct{}{} },
			}
			if !s.Brokered() {
				t.Error("no broker is asked")
			}
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx) }()
			conn := <-opened
			conn.SetTimeout(0)
			if ad, err := conn.Ad(cedar.AdOptions{}); err != nil || conn.EndOfMessage() != nil {
				t.Fatalf("%v, %v", ad, err)
			}
			reply := classad.NewAd()
			reply.SetInt("Command", command.CCBRegister)
			reply.SetString("CCBID", "192.0.2.1:9618#7")
			reply.SetString("ClaimId", "cookie")
			conn.PutAd(reply, cedar.AdOptions{})
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			<-registered
			if all := s.Contacts(); len(all) != 1 || all[0].String() != "192.0.2.1:9618#7" {
				t.Errorf("contacts %v", all)
			}
			ad, err := conn.Ad(cedar.AdOptions{})
			if err != nil || conn.EndOfMessage() != nil {
				t.Fatal(err)
			}
			if what, _ := ad.EvalInt("Command", nil); what != command.Alive || time.Since(began) != want[0] {
				t.Errorf("%s: the broker heard %d after %v, want %d after %v", subsystem, what, time.Since(began), command.Alive, want[0])
			}
			lost := time.Now()
			_ = conn.Close()
			conn = <-opened
			if d := time.Since(lost); d < want[1] || d > want[1]+want[1]/10+1 {
				t.Errorf("%s: the broker is asked again after %v, want %v", subsystem, d, want[1])
			}
			cancel()
			_ = conn.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// Ports of our own answer until Close, which is no failure.
func TestPorts(t *testing.T) {
	t.Parallel()
	s := &Sockets{Network: Network{}, Server: server(t), Log: quiet()}
	if err := s.Listen(t.Context(), 0, ip("127.0.0.1"), netip.Addr{}, true); err != nil {
		t.Fatal(err)
	}
	if _, shared := s.SharedPort(); shared || s.Port() == 0 || !s.Datagrams() || s.Brokered() {
		t.Errorf("port %d, behind a shared port: %v, datagrams: %v", s.Port(), shared, s.Datagrams())
	}
	other := &Sockets{Network: Network{}, Server: server(t), Log: quiet()}
	if err := other.Listen(t.Context(), s.Port(), ip("127.0.0.1"), netip.Addr{}, true); err == nil {
		t.Error("two have the same port")
	}
	s.Server.Datagrams = nil
	s.packets[0].Close()
	s.packets = nil
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context()) }()
	nc, err := net.Dial("tcp", s.listeners[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.PutInt(1)
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Int(); n != 2 || err != nil {
		t.Errorf("the answer is %d, %v", n, err)
	}
	s.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	s.Close()
}

// A port that fails ends the other, too: half of what the address says is none.
func TestPortThatFails(t *testing.T) {
	t.Parallel()
	var ports [2]net.Listener
	for i := range ports {
		var err error
		if ports[i], err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	s := &Sockets{Server: server(t), Log: quiet()}
	s.Take(ports[:], nil)
	_ = ports[1].Close() // not by Close of s
	if err := s.Serve(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, want %v", err, net.ErrClosed)
	}
	if _, err := net.Dial("tcp", ports[0].Addr().String()); err == nil {
		t.Error("the other port still answers")
	}
}

var errBroken = errors.New("no socket can be made")

// none is a named socket that vanishes at once.
type none struct{ n *int }

func (l none) Accept() (net.Conn, error)          { *l.n++; return nil, net.ErrClosed }
func (l none) Receive(net.Conn) (net.Conn, error) { return nil, net.ErrClosed }
func (l none) Touch(time.Time) error              { return nil }
func (l none) Close() error                       { return nil }
func (l none) Addr() net.Addr                     { return &net.UnixAddr{Name: "none", Net: "unix"} }

// Behind a shared port no broker is asked: the shared port does.
func TestSharedPort(t *testing.T) {
	t.Parallel()
	n := 0
	s := &Sockets{Server: server(t), Brokers: []string{"cm.example"}, Log: quiet()}
	s.Share("startd_1_2", none{&n}, func() (listen.NamedSocket, error) { return nil, errBroken })
	if id, ok := s.SharedPort(); id != "startd_1_2" || !ok || s.Brokered() || s.Port() != 0 || s.Datagrams() {
		t.Errorf("behind a shared port as %q: %v", id, ok)
	}
	first, err := s.shared.Open()
	if first != (none{&n}) || err != nil {
		t.Errorf("the first socket is %v, %v", first, err)
	}
	if _, err := s.shared.Open(); !errors.Is(err, errBroken) {
		t.Errorf("the second one: %v", err)
	}
}
