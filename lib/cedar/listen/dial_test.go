// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

func sinful(t testing.TB, text string) cedar.Sinful {
	t.Helper()
	s, err := cedar.ParseSinful(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsDialled(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, to, network string
		up                []string // who answers
		want              []string // who is tried
		kind              errs.Kind
	}{
		{name: "plain", to: "<192.0.2.1:9618?noUDP>", up: []string{"192.0.2.1:9618"}, want: []string{"192.0.2.1:9618"}},
		{name: "name", to: "<ep.example:9618>", up: []string{"ep.example:9618"}, want: []string{"ep.example:9618"}},
		{name: "IPv6", to: "<[2001:db8::1]:9618>", up: []string{"[2001:db8::1]:9618"}, want: []string{"[2001:db8::1]:9618"}},
		{name: "list of addresses before the host", to: "<192.0.2.1:9618?addrs=198.51.100.1-1+[2001-db8--1]-2>",
			up: []string{"[2001:db8::1]:2"}, want: []string{"198.51.100.1:1", "[2001:db8::1]:2"}},
		{name: "nobody answers", to: "<192.0.2.1:9618?addrs=192.0.2.1-1+192.0.2.2-2>", want: []string{"192.0.2.1:1", "192.0.2.2:2"}, kind: errs.Transient},
		{name: "own network", network: "lab", to: "<192.0.2.1:9618?PrivNet=lab&PrivAddr=%3c10.0.0.1:9618%3e>", up: []string{"10.0.0.1:9618"}, want: []string{"10.0.0.1:9618"}},
		{name: "another network", network: "home", to: "<192.0.2.1:9618?PrivNet=lab&PrivAddr=%3c10.0.0.1:9618%3e>", up: []string{"192.0.2.1:9618"}, want: []string{"192.0.2.1:9618"}},
		{name: "own network without a broker", network: "lab", to: "<192.0.2.1:9618?PrivNet=lab&CCBID=198.51.100.1:9618%235>", up: []string{"192.0.2.1:9618"}, want: []string{"192.0.2.1:9618"}},
		{name: "broker that nobody asks", to: "<192.0.2.1:9618?CCBID=198.51.100.1:9618#5>", kind: errs.Unsupported},
		{name: "id that leads elsewhere", to: "<192.0.2.1:9618?sock=..%2fx>", kind: errs.Invalid},
		{name: "no port but that of a named socket", to: "<192.0.2.1:0?sock=startd_1_2>", kind: errs.Unsupported},
		{name: "no port", to: "<192.0.2.1?noUDP>", kind: errs.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var tried []string
			d := &Dialer{PrivateNetwork: tt.network, Connect: func(_ context.Context, hp string) (net.Conn, error) {
				tried = append(tried, hp)
				if !slices.Contains(tt.up, hp) {
					return nil, errors.New("refused")
				}
				a, _ := cedartest.Pipe()
				return a, nil
			}}
			nc, err := d.Dial(t.Context(), sinful(t, tt.to))
			if errs.KindOf(err) != tt.kind {
				t.Errorf("error is %v, want kind %v", err, tt.kind)
			}
			if nc != nil {
				_ = nc.Close()
			}
			if !slices.Equal(tried, tt.want) {
				t.Errorf("tried %q, want %q", tried, tt.want)
			}
		})
	}
}

// A silent address does not use up the time of the next one.
func TestSharesOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &Dialer{Connect: func(ctx context.Context, hp string) (net.Conn, error) {
			if hp == "192.0.2.2:2" {
				a, _ := cedartest.Pipe()
				return a, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		nc, err := d.Dial(ctx, sinful(t, "<h:1?addrs=192.0.2.1-1+192.0.2.2-2>"))
		if err != nil || time.Since(start) != 5*time.Second {
			t.Fatalf("%v after %s, want the second address after 5s", err, time.Since(start))
		}
		_ = nc.Close()
	})
}

// What asks a shared port is what a real one was asked, and does not count as
// part of the conversation that follows.
func TestThroughSharedPort(t *testing.T) {
	t.Parallel()
	v := cedartest.Load(t, "../testdata/vectors/shared-port.json")
	asked := 0
	for _, c := range v.Connections {
		m := c.Messages[0]
		if *m.Items[0].Int != SharedPortConnect {
			continue // to the daemon by default, without asking
		}
		asked++
		mine, port := cedartest.Pipe()
		d := &Dialer{
			Name:    func() string { return *m.Items[2].Str },
			Connect: func(context.Context, string) (net.Conn, error) { return mine, nil },
		}
		nc, err := d.Dial(t.Context(), cedar.Sinful{Host: "192.0.2.1", Port: 9618, SockID: *m.Items[1].Str})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(m.Packets[0]))
		if _, err := io.ReadFull(port, got); err != nil || !bytes.Equal(got, m.Packets[0]) {
			t.Errorf("%s: %v\n got %x\nwant %x", *m.Items[1].Str, err, got, []byte(m.Packets[0]))
		}
		// Both ends now begin with nothing said: encryption vouches for it.
		key := bytes.Repeat([]byte{7}, 32)
		a, b := cedar.NewConn(nc, cedar.Limits{}), cedar.NewConn(port, cedar.Limits{})
		if err := errors.Join(a.EnableAES(key), b.EnableAES(key)); err != nil {
			t.Fatal(err)
		}
		a.PutString("hello")
		if err := a.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if s, err := b.String(); s != "hello" {
			t.Errorf("behind the shared port: %q, %v", s, err)
		}
		_ = a.Close()
	}
	if asked == 0 {
		t.Error("no recording asks a shared port")
	}
}

func TestDeadlineIsToldToSharedPort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mine, port := cedartest.Pipe()
		d := &Dialer{Connect: func(context.Context, string) (net.Conn, error) { return mine, nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		if _, err := d.Dial(ctx, cedar.Sinful{Host: "192.0.2.1", Port: 9618, SockID: "startd_1_2"}); err != nil {
			t.Fatal(err)
		}
		c := cedar.NewConn(port, cedar.Limits{})
		_, err1 := c.Int()
		_, err2 := c.String()
		_, err3 := c.String()
		left, err4 := c.Int()
		if err := errors.Join(err1, err2, err3, err4); err != nil || left != 90 {
			t.Errorf("the shared port is told of %d seconds, %v; want 90", left, err)
		}
	})
}

func TestOutgoingPorts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := func(n net.Listener) int { return n.Addr().(*net.TCPAddr).Port }
	to := sinful(t, "<"+l.Addr().String()+">")
	// A range of which one port is taken by a listener: the other remains, unless
	// somebody else on this machine is faster.
	for try := 1; ; try++ {
		low, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer low.Close()
		d := &Dialer{Ports: Ports{Low: port(low), High: port(low) + 1}, Source: Source{V4: netip.MustParseAddr("127.0.0.1")}}
		nc, err := d.Dial(t.Context(), to)
		if err != nil {
			if try == 50 {
				t.Fatal(err)
			}
			continue
		}
		defer nc.Close()
		if got := nc.LocalAddr().(*net.TCPAddr).Port; got != port(low)+1 {
			t.Errorf("it comes from port %d, want %d: %d is taken", got, port(low)+1, port(low))
		}
		if _, err := (&Dialer{Ports: Ports{Low: port(low), High: port(low)}, Source: d.Source}).Dial(t.Context(), to); !errs.Is(err, errs.Transient) {
			t.Errorf("no port free: %v, want kind Transient", err)
		}
		return
	}
}

// Where connections come from, by the protocol of the target.
func TestSource(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	ours := netip.MustParseAddr("127.0.0.1") // the only one that each system has
	tests := []struct {
		name   string
		source Source
		ports  Ports
		to     cedar.Sinful
		want   string // "" for an error
		says   string
	}{
		{name: "any", to: cedar.Sinful{Host: "127.0.0.1", Port: port}, want: "127.0.0.1"},
		{name: "one", source: Source{V4: ours}, to: cedar.Sinful{Host: "127.0.0.1", Port: port}, want: "127.0.0.1"},
		{name: "both", source: Source{V4: ours, V6: netip.IPv6Loopback()}, to: cedar.Sinful{Host: "127.0.0.1", Port: port}, want: "127.0.0.1"},
		{name: "by name", source: Source{V4: ours, V6: netip.MustParseAddr("2001:db8::1")}, to: cedar.Sinful{Host: "localhost", Port: port}, want: "127.0.0.1"},
		{name: "not ours", source: Source{V4: netip.MustParseAddr("192.0.2.1")}, to: cedar.Sinful{Host: "127.0.0.1", Port: port}, says: "192.0.2.1"},
		{name: "not ours, with a range", source: Source{V4: netip.MustParseAddr("192.0.2.1")}, ports: Ports{Low: port, High: port}, to: cedar.Sinful{Host: "127.0.0.1", Port: port}, says: "no port"},
		{name: "the other protocol only", source: Source{V4: ours}, to: cedar.Sinful{Host: "::1", Port: port}, says: "NETWORK_INTERFACE has none"},
		{name: "IPv6 only", source: Source{V6: netip.IPv6Loopback()}, to: cedar.Sinful{Host: "127.0.0.1", Port: port}, says: "NETWORK_INTERFACE has none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nc, err := (&Dialer{Source: tt.source, Ports: tt.ports}).Dial(t.Context(), tt.to)
			if tt.want == "" {
				if !errs.Is(err, errs.Transient) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v, want it to say %q", err, tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if got := nc.LocalAddr().(*net.TCPAddr).IP.String(); got != tt.want {
				t.Errorf("it comes from %s, want %s", got, tt.want)
			}
		})
	}
}

// A port at which a connection to the same end lingers is passed over.
func TestPortsUsedAgain(t *testing.T) {
	t.Parallel()
	to := sinful(t, "<127.0.0.1:1>") // where nobody listens
	asked := 0
	d := &Dialer{
		Ports: Ports{Low: 49152, High: 65535},
		Reuse: func(*net.Dialer) func(error) bool { return func(error) bool { asked++; return asked < 3 } },
	}
	if nc, err := d.Dial(t.Context(), to); err == nil || asked != 3 {
		t.Errorf("%v, %v: passed over %d ports, want two", nc, err, asked-1)
	}
}
