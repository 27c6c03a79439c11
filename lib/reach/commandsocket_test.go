// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// settings are those of a configuration.
func settings(t testing.TB, pairs ...string) Settings {
	t.Helper()
	var text strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		text.WriteString(pairs[i] + " = " + pairs[i+1] + "\n")
	}
	c, err := config.Parse("text", text.String(), config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := SettingsFrom(c, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func pairs(all ...string) []string { return all }

// noSocket is a named socket that nothing comes through.
type noSocket struct{ done chan struct{} }

func (s noSocket) Accept() (net.Conn, error)          { <-s.done; return nil, net.ErrClosed }
func (s noSocket) Receive(net.Conn) (net.Conn, error) { return nil, errors.New("nothing comes") }
func (s noSocket) Touch(time.Time) error              { return nil }
func (s noSocket) Close() error                       { return nil }
func (s noSocket) Addr() net.Addr                     { return &net.UnixAddr{Name: "none", Net: "unix"} }

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, startd string
		knob         []string
		want         string // with PORT and ID for what is by chance
	}{
		{name: "a port of its own", startd: startdText, want: "<127.0.0.1:PORT?addrs=127.0.0.1-PORT&alias=ep.example.org&noUDP>"},
		{name: "only at the interface", startd: startdText, knob: pairs("BIND_ALL_INTERFACES", "false"), want: "<127.0.0.1:PORT?addrs=127.0.0.1-PORT&alias=ep.example.org&noUDP>"},
		{
			name: "forwarded", startd: "<192.0.2.7:9618?addrs=192.0.2.7-9618&noUDP>", knob: pairs("TCP_FORWARDING_HOST", "192.0.2.7", "BIND_ALL_INTERFACES", "false", "NETWORK_INTERFACE", "127.0.0.1"),
			want: "<192.0.2.7:PORT?addrs=192.0.2.7-PORT&noUDP>",
		},
		{
			name: "a private network", startd: "<192.0.2.7:9618?PrivAddr=%3c10.0.0.7:9618%3e&PrivNet=cluster&addrs=192.0.2.7-9618>",
			want: "<192.0.2.7:PORT?PrivAddr=%3c10.0.0.7:PORT%3e&PrivNet=cluster&addrs=192.0.2.7-PORT&noUDP>",
		},
		{
			name: "brokers that nobody registers at", startd: "<192.0.2.7:9618?CCBID=198.51.100.1:9618%3faddrs%3d198.51.100.1-9618#17&addrs=192.0.2.7-9618&noUDP>",
			want: "<192.0.2.7:PORT?addrs=192.0.2.7-PORT&noUDP>",
		},
		{
			name: "a shared port", startd: "<192.0.2.7:9618?addrs=192.0.2.7-9618&alias=ep&noUDP&sock=startd_77_abcd>", knob: pairs("USE_SHARED_PORT", "true", "DAEMON_SOCKET_DIR", "/run/sock"),
			want: "<192.0.2.7:9618?addrs=192.0.2.7-9618&alias=ep&noUDP&sock=ID>",
		},
		{
			name: "a startd that is not behind the shared port", startd: startdText, knob: pairs("USE_SHARED_PORT", "true", "DAEMON_SOCKET_DIR", "/run/sock"),
			want: "<127.0.0.1:PORT?addrs=127.0.0.1-PORT&alias=ep.example.org&noUDP>",
		},
		{
			name: "a folder by default", startd: "<127.0.0.1:9618?noUDP&sock=startd_77_abcd>", knob: pairs("USE_SHARED_PORT", "true", "DAEMON_SOCKET_DIR", "auto", "LOCK", "/run"),
			want: "<127.0.0.1:9618?noUDP&sock=ID>",
		},
		{
			name: "a shared port that cannot be", startd: "<127.0.0.1:9618?noUDP&sock=startd_77_abcd>", knob: pairs("USE_SHARED_PORT", "true", "DAEMON_SOCKET_DIR", "/broken"),
			want: "<127.0.0.1:PORT?noUDP>",
		},
		{
			name: "no shared port for starters", startd: "<127.0.0.1:9618?noUDP&sock=startd_77_abcd>", knob: pairs("USE_SHARED_PORT", "true", "STARTER_USE_SHARED_PORT", "false", "DAEMON_SOCKET_DIR", "/run/sock"),
			want: "<127.0.0.1:PORT?noUDP>",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			made := ""
			socket := noSocket{make(chan struct{})}
			d, err := Open(t.Context(), Config{
				Claim: testClaim(), Address: c.startd, Settings: settings(t, c.knob...), Job: &job{}, Endpoint: endpoint.New(endpoint.Config{PID: 4711}),
				SharedPort: func(dir, id string) (listen.NamedSocket, error) {
					if dir == "/broken" {
						return nil, errors.New("nobody can write there")
					}
					made = dir + "/" + id
					return socket, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			close(socket.done)
			got, err := cedar.ParseSinful(d.Address())
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(c.want, "PORT", portText(d))
			if strings.Contains(want, "ID") {
				_, id, ok := strings.Cut(strings.Replace(made, "daemon_sock", "sock", 1), "/run/sock/")
				if !ok || !strings.HasPrefix(id, "starter_4711_") {
					t.Fatalf("the endpoint is %q", made)
				}
				want = strings.Replace(want, "=ID", "="+id, 1)
			} else if made != "" {
				t.Errorf("an endpoint was made: %q", made)
			}
			wanted, err := cedar.ParseSinful(want)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != wanted.String() {
				t.Errorf("address\n%s\nwant\n%s", got, wanted)
			}
		})
	}
}

func portText(d *CommandSocket) string {
	return strconv.Itoa(d.sockets.Port())
}

func TestPortsOfARange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		knob      []string
		low, high int
	}{
		{pairs("IN_LOWPORT", "20000", "IN_HIGHPORT", "20100", "LOWPORT", "1", "HIGHPORT", "2"), 20000, 20100},
		{pairs("LOWPORT", "30000", "HIGHPORT", "30010"), 30000, 30010},
		{pairs("LOWPORT", "30000"), 0, 0},
	} {
		if got := settings(t, c.knob...).Network.In; got != (listen.Ports{Low: c.low, High: c.high}) {
			t.Errorf("ports %v, want %d to %d", got, c.low, c.high)
		}
	}
	d, err := Open(t.Context(), Config{Claim: testClaim(), Address: startdText, Job: &job{}, Settings: settings(t, "LOWPORT", "41000", "HIGHPORT", "41999")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if p := portText(d); !strings.HasPrefix(p, "41") || len(p) != 5 {
		t.Errorf("port %s, want one from 41000 to 41999", p)
	}
}

func TestOpenRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  Config
		kind errs.Kind
	}{
		{Config{Claim: "nonsense", Address: startdText}, errs.Invalid},
		{Config{Claim: testClaim(), Address: "<"}, errs.Invalid},
	} {
		_, err := Open(t.Context(), c.cfg)
		if !errs.Is(err, c.kind) || strings.Contains(err.Error(), keyText) {
			t.Errorf("error %v, want kind %v without the key", err, c.kind)
		}
	}
}

// A claim whose id has no session info has no session: the starter runs, and
// nobody reaches it.
func TestClaimWithoutSession(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Config{Claim: claim.Secret(startdText + "#1700000000#1#" + keyText), Address: startdText, Job: &job{}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if n := d.sessions.Len(); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// BenchmarkOpen is what a starter pays before anybody comes.
func BenchmarkOpen(b *testing.B) {
	b.ReportAllocs()
	cfg := Config{Claim: testClaim(), Address: startdText, Job: &job{}, Endpoint: endpoint.New(endpoint.Config{Version: testVersion})}
	for b.Loop() {
		d, err := Open(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		_ = d.Address()
		d.Close()
	}
}

// What a broker calls us stands in the address, and those who were told the
// old one are told. Heartbeats and attempts follow the knobs of starters.
func TestBrokers(t *testing.T) {
	t.Parallel()
	told, asked := make(chan string, 4), make(chan string, 4)
	registration := make(chan *cedar.Conn, 1)
	d, err := Open(t.Context(), Config{
		Claim: testClaim(), Job: &job{}, Settings: settings(t, "CCB_HEARTBEAT_INTERVAL", "45", "CCB_RECONNECT_TIME", "3600"),
		Address: "<127.0.0.1:9618?CCBID=198.51.100.1:9618#17%20198.51.100.2:9618#3&PrivNet=n&noUDP>",
		Broker: func(_ context.Context, address string) (*cedar.Conn, error) {
			asked <- address
			if address != "198.51.100.2:9618" {
				return nil, errors.New("no broker")
			}
			ours, theirs := cedartest.Pipe()
			registration <- cedar.NewConn(theirs, cedar.Limits{})
			return cedar.NewConn(ours, cedar.Limits{}), nil
		},
		Changed: func(address string) { told <- address },
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := d.sockets.Network; n.Heartbeat != 45*time.Second || n.Reconnect != time.Hour || !d.Brokered() {
		t.Errorf("brokers are told each %v that we live, and asked again after %v", n.Heartbeat, n.Reconnect)
	}
	if strings.Contains(d.Address(), "CCBID") {
		t.Errorf("before a broker has answered, the address is %s", d.Address())
	}
	served := make(chan error, 1)
	go func() { served <- d.Serve(context.WithoutCancel(t.Context())) }()
	conn := <-registration
	ad, err := conn.Ad(cedar.AdOptions{})
	if err != nil || conn.EndOfMessage() != nil {
		t.Fatal(err)
	}
	if who, _ := ad.EvalString("Name", nil); who != "STARTER "+d.Address() {
		t.Errorf("it registers as %s", who)
	}
	reply := classad.NewAd()
	reply.SetInt("Command", command.CCBRegister)
	reply.SetString("CCBID", "198.51.100.2:9618#99")
	reply.SetString("ClaimId", "cookie")
	conn.PutAd(reply, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	now := <-told
	s, err := cedar.ParseSinful(now)
	if err != nil || now != d.Address() || len(s.CCB) != 1 || s.CCB[0].String() != "198.51.100.2:9618#99" || s.PrivNet != "n" {
		t.Errorf("the address is %s, %v; told was %s", d.Address(), err, now)
	}
	d.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if all := []string{<-asked, <-asked}; !slices.Contains(all, "198.51.100.1:9618") || !slices.Contains(all, "198.51.100.2:9618") {
		t.Errorf("asked were %q", all)
	}
}

// Two brokers that answer at once do not leave the older address standing.
func TestAddressesAreToldInOrder(t *testing.T) {
	t.Parallel()
	var told []string
	var mu sync.Mutex
	first, second := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	cs := &CommandSocket{address: cedar.Sinful{Host: "192.0.2.1", Port: 1}, cfg: Config{Changed: func(address string) {
		if calls.Add(1) == 1 {
			close(first)
			select { // somebody who is slow
			case <-second:
			case <-time.After(50 * time.Millisecond):
			}
		}
		mu.Lock()
		defer mu.Unlock()
		told = append(told, address)
	}}}
	var wg sync.WaitGroup
	wg.Go(cs.registered)
	<-first
	cs.mu.Lock()
	cs.address.Port = 2
	cs.mu.Unlock()
	wg.Go(func() { cs.registered(); close(second) })
	wg.Wait()
	if len(told) != 2 || told[1] != cs.Address() {
		t.Errorf("told were %q, and the address is %s", told, cs.Address())
	}
}
