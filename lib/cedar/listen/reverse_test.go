// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// requester is a daemon that reaches another through brokers.
type requester struct {
	*house
	reverser *Reverser
	dialer   *Dialer
	brokers  chan *cedar.Conn // the brokers' ends
	version  string           // of the brokers
	self     cedar.Sinful     // where it is reached
}

func newRequester(t *testing.T) *requester {
	r := &requester{
		brokers: make(chan *cedar.Conn, 8), version: "25.14.0",
		self: cedar.Sinful{Host: "198.51.100.9", Port: 4000, NoUDP: true},
	}
	r.reverser = &Reverser{
		Open: func(_ context.Context, to cedar.Sinful) (*cedar.Conn, error) {
			if to.Host == "down" {
				return nil, errors.New("no broker there")
			}
			mine, theirs := cedartest.Pipe()
			r.brokers <- cedar.NewConn(theirs, cedar.Limits{Timeout: -1})
			conn := cedar.NewConn(mine, cedar.Limits{})
			conn.SetPeerVersion(r.version)
			return conn, nil
		},
		Return: func() cedar.Sinful { return r.self },
		Name:   func() string { return "TOOL" },
	}
	r.dialer = &Dialer{Reverse: r.reverser}
	r.house = build(t, Limits{})
	table, err := NewTable(append(r.server.Table.Commands(), r.reverser.Command())...)
	if err != nil {
		t.Fatal(err)
	}
	r.server.Table = table
	return r
}

// back plays the daemon that connects to the requester.
func (r *requester) back(t *testing.T, id string) net.Conn {
	t.Helper()
	nc := r.hall.call("203.0.113.5:1")
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.PutInt(command.CCBReverseConnect)
	conn.PutAd(reverseRequest{Address: "<198.51.100.9:4000>", Connect: cedar.Secret(id), ID: "1"}.hello(), cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		t.Error(err)
	}
	return nc
}

// dialled is what came of dialling.
type dialled struct {
	nc  net.Conn
	err error
}

// dial dials beside the test.
func (r *requester) dial(t *testing.T, to string) chan dialled {
	ch := make(chan dialled, 1)
	go func() {
		nc, err := r.dialer.Dial(t.Context(), sinful(t, to))
		ch <- dialled{nc, err}
	}()
	return ch
}

// said fails unless a dialled connection is that of the daemon's end.
func said(t *testing.T, nc net.Conn, theirs net.Conn) {
	t.Helper()
	mine, daemon := cedar.NewConn(nc, cedar.Limits{}), cedar.NewConn(theirs, cedar.Limits{})
	go func() { mine.PutString("as client"); _ = mine.EndMessage() }()
	if s, err := daemon.String(); s != "as client" {
		t.Errorf("%q, %v", s, err)
	}
	_ = mine.Close()
	_ = daemon.Close()
}

func TestReverser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequester(t)
		// The first broker is down, the second asks the daemon.
		got := r.dial(t, "<10.0.0.5:9618?CCBID=down:1%231%20b:1%2312>")
		broker := <-r.brokers
		ad := getAd(t, broker)
		field(t, ad, "CCBID", `"12"`)
		field(t, ad, "MyAddress", `"<198.51.100.9:4000?noUDP>"`)
		id, _ := lookupString(ad, "ClaimId")
		if len(id) != 40 {
			t.Errorf("the connect id is %q, want 40 hex digits", id)
		}
		stranger := r.back(t, strings.Repeat("0", 40))
		closed(t, stranger, time.Second)
		theirs := r.back(t, id)
		res := <-got
		if res.err != nil {
			t.Fatal(res.err)
		}
		said(t, res.nc, theirs)
		closed(t, r.back(t, id), time.Second) // the id is good once

		// The broker has no such daemon.
		got = r.dial(t, "<10.0.0.5:9618?CCBID=b:1%2399>")
		broker = <-r.brokers
		getAd(t, broker)
		sendAd(t, broker, adOf(t, "Result = false\nErrorString = \"no daemon of that id\"\n"))
		if res := <-got; !errs.Is(res.err, errs.Transient) || !strings.Contains(res.err.Error(), "no daemon of that id") {
			t.Errorf("refused by the broker: %v", res.err)
		}

		// The broker says yes and nobody comes.
		start := time.Now()
		got = r.dial(t, "<10.0.0.5:9618?CCBID=b:1%2312>")
		broker = <-r.brokers
		late, _ := lookupString(getAd(t, broker), "ClaimId")
		sendAd(t, broker, adOf(t, "Result = true\n"))
		if res := <-got; res.err == nil || time.Since(start) != reverseWithin {
			t.Errorf("%v after %s, want an error after %s", res.err, time.Since(start), reverseWithin)
		}
		closed(t, r.back(t, late), time.Second)
		r.end(t)
		if log := r.log.String(); strings.Contains(log, id) || strings.Contains(log, late) {
			t.Errorf("the log has a connect id:\n%s", log)
		}
	})
}

// behind is an address of somebody behind a broker.
const behind = "<198.51.100.9:4000?CCBID=203.0.113.1:9618#7&PrivNet=lab&noUDP>"

// relay plays the broker's part in a relayed connection, after the request.
func relay(t *testing.T, broker *cedar.Conn, id string) {
	t.Helper()
	sendAd(t, broker, adOf(t, "Result = true\nProxyMode = true\n"))
	broker.PutInt(command.CCBReverseConnect)
	broker.PutAd(reverseRequest{Address: "<203.0.113.1:9618>", Connect: cedar.Secret(id), ID: "1"}.hello(), cedar.AdOptions{})
	if err := broker.EndMessage(); err != nil {
		t.Error(err)
	}
}

// Two daemons behind brokers speak with one another over the broker's
// connection.
func TestRelayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequester(t)
		r.self = sinful(t, behind)
		got := r.dial(t, "<10.0.0.5:9618?CCBID=down:1#1%20b:1#12>")
		broker := <-r.brokers
		ad := getAd(t, broker)
		field(t, ad, "CCBID", `"12"`)
		field(t, ad, "CCBStreamingRequired", "true")
		field(t, ad, "CCBRoute", "")
		field(t, ad, "Name", `"TOOL"`)
		field(t, ad, "MyAddress", `"`+r.self.String()+`"`)
		id, _ := lookupString(ad, "ClaimId")
		relay(t, broker, id)
		res := <-got
		if res.err != nil {
			t.Fatal(res.err)
		}
		// The broker does not close what it relays, nor do we.
		time.Sleep(time.Hour)
		said(t, res.nc, broker.NetConn())
		closed(t, r.back(t, id), time.Second) // nobody comes to the command socket by it
		if log := r.log.String(); strings.Contains(log, id) {
			t.Errorf("the log has a connect id:\n%s", log)
		}

		// Behind several brokers in a row, whether or not we are behind one.
		for _, self := range []string{behind, "<198.51.100.9:4000>"} {
			r.self = sinful(t, self)
			got = r.dial(t, "<10.0.0.5:9618?CCBID=b:1#7#8#12>")
			broker = <-r.brokers
			ad = getAd(t, broker)
			field(t, ad, "CCBID", `"7"`)
			field(t, ad, "CCBRoute", `"8 12"`)
			field(t, ad, "CCBStreamingRequired", "true")
			id, _ = lookupString(ad, "ClaimId")
			relay(t, broker, id)
			if res = <-got; res.err != nil {
				t.Fatal(res.err)
			}
			said(t, res.nc, broker.NetConn())
		}
		r.end(t)
	})
}

// What a relaying broker says that leads to no connection: then the daemon is
// asked to connect, our brokers left out.
func TestNotRelayed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		version string
		says    func(t *testing.T, c *cedar.Conn, id string) // nil: it is not asked to relay
		want    string
	}{
		{name: "too old", version: "24.0.1", want: `"24.0.1" and relays nothing; want 25.12.0 or newer`},
		{name: "of no version", version: "", want: "relays nothing"},
		{name: "switched off", version: "25.14.0", says: func(t *testing.T, c *cedar.Conn, _ string) {
			sendAd(t, c, adOf(t, "Result = false\nErrorString = \"CCB_SERVER_STREAMING is false\"\n"))
		}, want: "CCB_SERVER_STREAMING is false"},
		{name: "says nothing", version: "25.14.0", says: func(t *testing.T, c *cedar.Conn, _ string) { _ = c.Close() }, want: "EOF"},
		{name: "closes after the answer", version: "25.14.0", says: func(t *testing.T, c *cedar.Conn, _ string) {
			sendAd(t, c, adOf(t, "Result = true\n"))
			_ = c.Close()
		}, want: "EOF"},
		{name: "another id", version: "25.14.0", says: func(t *testing.T, c *cedar.Conn, id string) {
			relay(t, c, id[1:]+"0")
		}, want: "of another id"},
		{name: "no id", version: "25.14.0", says: func(t *testing.T, c *cedar.Conn, _ string) { relay(t, c, "") }, want: "of another id"},
		{name: "another command", version: "25.14.0", says: func(t *testing.T, c *cedar.Conn, id string) {
			sendAd(t, c, adOf(t, "Result = true\n"))
			c.PutInt(60008)
			if err := c.EndMessage(); err != nil {
				t.Error(err)
			}
		}, want: "begins with 60008"},
		{name: "a daemon that does not wait", version: "25.14.0", says: func(t *testing.T, c *cedar.Conn, id string) {
			var b slowly
			again := cedar.NewConn(&b, cedar.Limits{})
			relay(t, again, id)
			again.PutInt(60010)
			if err := again.EndMessage(); err != nil {
				t.Error(err)
			}
			_, _ = c.NetConn().Write(b.all)
		}, want: "before we said anything"},
		{name: "an ad too large", version: "25.14.0", says: func(t *testing.T, c *cedar.Conn, id string) {
			ad := adOf(t, "Result = true\n")
			ad.SetString("ErrorString", strings.Repeat("x", maxCCBAd))
			sendAd(t, c, ad)
		}, want: "more than 65536 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRequester(t)
				r.self, r.version = sinful(t, behind), tt.version
				got := r.dial(t, "<10.0.0.5:9618?CCBID=b:1#12>")
				broker := <-r.brokers
				if tt.says != nil {
					ad := getAd(t, broker)
					id, _ := lookupString(ad, "ClaimId")
					tt.says(t, broker, id)
				}
				asked := broker
				broker = <-r.brokers
				if n, err := asked.NetConn().Read(make([]byte, 1)); n > 0 || err == nil {
					t.Errorf("%d bytes more, %v; want the connection closed", n, err)
				}
				ad := getAd(t, broker)
				field(t, ad, "CCBStreamingRequired", "")
				field(t, ad, "MyAddress", `"<198.51.100.9:4000?PrivNet=lab&noUDP>"`)
				sendAd(t, broker, adOf(t, "Result = false\nErrorString = \"failed to connect\"\n"))
				res := <-got
				if !errs.Is(res.err, errs.Transient) {
					t.Fatalf("error is %v", res.err)
				}
				for _, want := range []string{tt.want, "failed to connect", "both ends are behind brokers"} {
					if !strings.Contains(res.err.Error(), want) {
						t.Errorf("error is %v, want it to say %q", res.err, want)
					}
				}
				_ = broker.Close()
				r.end(t)
			})
		})
	}
}

// slowly keeps what is written, so that it arrives at once.
type slowly struct {
	net.Conn
	all []byte
}

func (s *slowly) Write(b []byte) (int, error)      { s.all = append(s.all, b...); return len(b), nil }
func (s *slowly) SetDeadline(time.Time) error      { return nil }
func (s *slowly) SetWriteDeadline(time.Time) error { return nil }
func (s *slowly) RemoteAddr() net.Addr             { return nil }

// With CCB_CLIENT_STREAMING false nothing is relayed, not even through several
// brokers in a row: they find the way with the whole id.
func TestNoRelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequester(t)
		r.self, r.reverser.NoRelay = sinful(t, behind), true
		got := r.dial(t, "<10.0.0.5:9618?CCBID=b:1#7#12>")
		broker := <-r.brokers
		ad := getAd(t, broker)
		field(t, ad, "CCBID", `"7#12"`)
		field(t, ad, "CCBStreamingRequired", "")
		field(t, ad, "MyAddress", `"<198.51.100.9:4000?PrivNet=lab&noUDP>"`)
		id, _ := lookupString(ad, "ClaimId")
		theirs := r.back(t, id)
		res := <-got
		if res.err != nil {
			t.Fatal(res.err)
		}
		said(t, res.nc, theirs)
		_ = broker.Close()
		r.end(t)
	})
}

// A broker whose answer does not come leaves the next one its time.
func TestBrokersShareTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequester(t)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		got := make(chan dialled, 1)
		go func() {
			nc, err := r.dialer.Dial(ctx, sinful(t, "<10.0.0.5:9618?CCBID=a:1#1%20b:1#2%20c:1#3>"))
			got <- dialled{nc, err}
		}()
		var ids []string
		for i := range 2 {
			broker := <-r.brokers
			if took := time.Since(start); took != time.Duration(i)*10*time.Second {
				t.Errorf("broker %d is asked after %s", i, took)
			}
			id, _ := lookupString(getAd(t, broker), "ClaimId")
			ids = append(ids, id)
			closed(t, broker.NetConn(), 20*time.Second)
		}
		broker := <-r.brokers
		id, _ := lookupString(getAd(t, broker), "ClaimId")
		for _, late := range ids {
			closed(t, r.back(t, late), time.Second)
		}
		theirs := r.back(t, id)
		res := <-got
		if res.err != nil {
			t.Fatal(res.err)
		}
		said(t, res.nc, theirs)
		_ = broker.Close()
		r.end(t)
	})
}

// A shared port that is behind a broker is asked for the daemon on the
// connection that it opens.
func TestReversedSharedPort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequester(t)
		r.dialer.Name = r.reverser.Name
		got := r.dial(t, "<10.0.0.5:9618?CCBID=b:1#12&sock=schedd_1_2>")
		broker := <-r.brokers
		id, _ := lookupString(getAd(t, broker), "ClaimId")
		theirs := r.back(t, id)
		port := cedar.NewConn(theirs, cedar.Limits{})
		if n, err := port.Int(); n != SharedPortConnect {
			t.Fatalf("%d, %v", n, err)
		}
		if q, err := port.SharedPortRequest(); err != nil || q.ID != "schedd_1_2" || q.Client != "TOOL" {
			t.Errorf("%+v, %v", q, err)
		}
		res := <-got
		if res.err != nil {
			t.Fatal(res.err)
		}
		said(t, res.nc, theirs)
		_ = broker.Close()
		r.end(t)
	})
}

// A process without command socket listens for the one connection, and lets in
// nobody else.
func TestAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequester(t)
		r.self = cedar.Sinful{}
		got := r.dial(t, "<10.0.0.5:9618?CCBID=b:1#12>")
		broker := <-r.brokers
		if res := <-got; !strings.Contains(res.err.Error(), "no address yet") {
			t.Errorf("without address: %v", res.err)
		}
		_ = broker.Close()

		hall := newHall()
		r.reverser.Listen = func(context.Context) ([]net.Listener, cedar.Sinful, error) {
			return []net.Listener{hall}, sinful(t, "<198.51.100.9:5000>"), nil
		}
		got = r.dial(t, "<10.0.0.5:9618?CCBID=b:1#12>")
		broker = <-r.brokers
		ad := getAd(t, broker)
		field(t, ad, "MyAddress", `"<198.51.100.9:5000>"`)
		id, _ := lookupString(ad, "ClaimId")
		hello := func(number int64, id string) net.Conn {
			nc := hall.call("203.0.113.5:1")
			conn := cedar.NewConn(nc, cedar.Limits{})
			conn.PutInt(number)
			conn.PutAd(reverseRequest{Address: "<198.51.100.9:5000>", Connect: cedar.Secret(id), ID: "1"}.hello(), cedar.AdOptions{})
			_ = conn.EndMessage() // some are not read to their end
			return nc
		}
		silent := hall.call("203.0.113.6:1")
		closed(t, hello(60010, id), time.Second)
		closed(t, hello(command.CCBReverseConnect, id[1:]), time.Second)
		flood := make([]net.Conn, 2*maxCallers)
		for i := range flood {
			flood[i] = hall.call("203.0.113.6:1")
		}
		theirs := hello(command.CCBReverseConnect, id)
		res := <-got
		if res.err != nil {
			t.Fatal(res.err)
		}
		said(t, res.nc, theirs)
		for _, nc := range append(flood, silent) {
			closed(t, nc, time.Second)
		}
		select {
		case <-hall.done:
		default:
			t.Error("it still listens")
		}
		_ = broker.Close()

		// It may fail to.
		r.reverser.Listen = func(context.Context) ([]net.Listener, cedar.Sinful, error) {
			return nil, cedar.Sinful{}, errors.New("no port")
		}
		got = r.dial(t, "<10.0.0.5:9618?CCBID=b:1#12>")
		broker = <-r.brokers
		if res := <-got; !strings.Contains(res.err.Error(), "no port") {
			t.Errorf("without a port: %v", res.err)
		}
		_ = broker.Close()
		r.end(t)
	})
}

func TestHops(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ id, target, route string }{
		{"12", "12", ""},
		{"7#8#12", "7", "8 12"},
		{"18446744073709551615", "18446744073709551615", ""},
		{"1#2#3#4#5#6#7#8#9", "1", "2 3 4 5 6 7 8 9"},
		{id: "1#2#3#4#5#6#7#8#9#10"},
		{id: ""}, {id: "#1"}, {id: "1#"}, {id: "-1"}, {id: "1 2"}, {id: "x"}, {id: strings.Repeat("1", 21)},
	} {
		target, route, err := hops(cedar.Broker{Address: "b:1", ID: tt.id})
		if target != tt.target || route != tt.route || (err == nil) != (tt.target != "") {
			t.Errorf("%q leads to %q by %q, %v; want %q by %q", tt.id, target, route, err, tt.target, tt.route)
		}
	}
}

// FuzzRelay has a broker say anything after it was asked to relay: nothing
// comes of it without the id.
func FuzzRelay(f *testing.F) {
	record := func(say func(c *cedar.Conn)) []byte {
		var b slowly
		say(cedar.NewConn(&b, cedar.Limits{}))
		return b.all
	}
	ad := func(c *cedar.Conn, text string) {
		c.PutAd(adOf(f, text), cedar.AdOptions{})
		_ = c.EndMessage()
	}
	f.Add(record(func(c *cedar.Conn) { ad(c, "Result = false\nErrorString = \"no\"\n") }))
	f.Add(record(func(c *cedar.Conn) {
		ad(c, "Result = true\nProxyMode = true\n")
		c.PutInt(command.CCBReverseConnect)
		ad(c, "ClaimId = \"0123\"\nRequestID = \"1\"\n")
	}))
	f.Add(record(func(c *cedar.Conn) {
		ad(c, "Result = true\n")
		c.PutInt(command.CCBReverseConnect)
		ad(c, "ClaimId = MyAddress\nMyAddress = ClaimId\n")
		ad(c, "more = 1\n")
	}))
	f.Fuzz(func(t *testing.T, said []byte) {
		mine, theirs := cedartest.Pipe()
		go func() { _, _ = theirs.Write(said); _ = theirs.Close() }()
		conn := cedar.NewConn(mine, narrow(cedar.Limits{}))
		conn.SetPeerVersion("25.14.0")
		err := (&Reverser{}).relay(conn, "12", "", cedar.Sinful{Host: "192.0.2.1", Port: 1})
		if err == nil {
			t.Errorf("a connection without knowing the id, from %x", said)
		}
		_ = conn.Close()
	})
}

// FuzzAwaited brings anything to a socket where one connection is awaited.
func FuzzAwaited(f *testing.F) {
	var b slowly
	c := cedar.NewConn(&b, cedar.Limits{})
	c.PutInt(command.CCBReverseConnect)
	c.PutAd(reverseRequest{Address: "<198.51.100.9:5000>", Connect: "0123", ID: "1"}.hello(), cedar.AdOptions{})
	_ = c.EndMessage()
	f.Add(b.all)
	f.Add(b.all[:len(b.all)/2])
	f.Add([]byte{1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, command.CCBReverseConnect})
	f.Fuzz(func(t *testing.T, said []byte) {
		hall := newHall()
		r := &Reverser{Listen: func(context.Context) ([]net.Listener, cedar.Sinful, error) {
			return []net.Listener{hall}, cedar.Sinful{Host: "192.0.2.1", Port: 1}, nil
		}}
		_, to, err := r.expect()
		if err != nil {
			t.Fatal(err)
		}
		_, done, err := r.await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		nc := hall.call("203.0.113.5:1")
		_, _ = nc.Write(said) // as far as it is read
		_ = nc.Close()
		done()
		if len(to) > 0 {
			t.Errorf("a connection without knowing the id, from %x", said)
		}
	})
}
