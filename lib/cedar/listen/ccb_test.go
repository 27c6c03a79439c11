// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
)

func adOf(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func sendAd(t testing.TB, conn *cedar.Conn, ad *classad.Ad) {
	t.Helper()
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		t.Error(err)
	}
}

func getAd(t testing.TB, conn *cedar.Conn) *classad.Ad {
	t.Helper()
	ad, err := readAd(conn)
	if err != nil {
		t.Error(err)
		return classad.NewAd()
	}
	return ad
}

// field fails unless an attribute of ad is the text.
func field(t testing.TB, ad *classad.Ad, name, want string) {
	t.Helper()
	e, ok := ad.Lookup(name)
	if !ok && want == "" {
		return
	}
	if !ok || e.Text(classad.Old) != want {
		t.Errorf("%s is %v, want %s", name, e, want)
	}
}

// yard is a broker played by the test, and a daemon registered with it.
type yard struct {
	ctx        context.Context
	house      *house
	broker     *Broker
	opens      chan *cedar.Conn // the broker's ends of registrations
	dials      chan string      // where the daemon connects to
	requesters chan net.Conn    // the requester's ends of reversed connections
	ids        chan string      // what Registered was told
	log        *lines
	end        func()
}

func newYard(t *testing.T, change ...func(*Broker)) *yard {
	h := build(t, Limits{})
	y := &yard{
		house: h, opens: make(chan *cedar.Conn, 8), dials: make(chan string, 8),
		requesters: make(chan net.Conn, 8), ids: make(chan string, 8), log: h.log,
	}
	ctx, cancel := context.WithCancel(t.Context())
	y.ctx = ctx
	y.broker = &Broker{
		Address: "cm.example", Heartbeat: 1200 * time.Second, Reconnect: 60 * time.Second,
		Log: slog.New(slog.NewTextHandler(h.log, nil)),
		Open: func(context.Context) (*cedar.Conn, error) {
			mine, theirs := cedartest.Pipe()
			y.opens <- cedar.NewConn(theirs, cedar.Limits{Timeout: -1})
			return cedar.NewConn(mine, cedar.Limits{}), nil
		},
		Dial: func(_ context.Context, to cedar.Sinful) (net.Conn, error) {
			y.dials <- to.String()
			if to.Host == "198.51.100.66" {
				return nil, errors.New("connection refused")
			}
			mine, theirs := cedartest.Pipe()
			y.requesters <- theirs
			return mine, nil
		},
		Serve:      h.server.ServeConn,
		Name:       func() string { return "STARTD <10.0.0.5:9618>" },
		Registered: func(id string) { y.ids <- id },
	}
	for _, f := range change {
		f(y.broker)
	}
	done := make(chan struct{})
	go func() { y.broker.Run(ctx); close(done) }()
	y.end = func() { cancel(); <-done; h.end(t) }
	return y
}

// register plays the broker's part of a registration.
func (y *yard) register(t *testing.T, oldID, oldCookie, reply string) *cedar.Conn {
	t.Helper()
	conn := <-y.opens
	ad := getAd(t, conn)
	field(t, ad, "Command", "67")
	field(t, ad, "Name", `"STARTD <10.0.0.5:9618>"`)
	field(t, ad, "CCBID", oldID)
	field(t, ad, "ClaimId", oldCookie)
	sendAd(t, conn, adOf(t, reply))
	return conn
}

const registered = "Command = 67\nCCBID = \"203.0.113.1:9618?sock=collector#12\"\nClaimId = \"secretcookie\"\n"

func TestBroker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		conn := y.register(t, "", "", registered)
		if id := <-y.ids; id != "203.0.113.1:9618?sock=collector#12" {
			t.Errorf("registered as %q", id)
		}

		// Somebody wants a connection.
		sendAd(t, conn, adOf(t, `Command = 68
MyAddress = "<198.51.100.9:4000?noUDP>"
ClaimId = "connect-secret"
RequestID = "77"
Name = "TOOL someone"
`))
		if to := <-y.dials; to != "<198.51.100.9:4000?noUDP>" {
			t.Errorf("it connects to %s", to)
		}
		nc := <-y.requesters
		requester := cedar.NewConn(nc, cedar.Limits{})
		if n, err := requester.Int(); n != command.CCBReverseConnect {
			t.Fatalf("the reversed connection begins with %d, %v", n, err)
		}
		hello := getAd(t, requester)
		field(t, hello, "ClaimId", `"connect-secret"`)
		field(t, hello, "RequestID", `"77"`)
		field(t, hello, "MyAddress", `"<198.51.100.9:4000?noUDP>"`)
		result := getAd(t, conn)
		field(t, result, "Result", "true")
		field(t, result, "RequestID", `"77"`)
		field(t, result, "ClaimId", `"connect-secret"`)
		// The daemon serves it as if it had been connected to.
		echo(t, cedar.NewConn(nc, cedar.Limits{}), "reversed")
		_ = nc.Close()

		// One that does not answer is told about.
		sendAd(t, conn, adOf(t, "Command = 68\nMyAddress = \"<198.51.100.66:1>\"\nClaimId = \"c\"\nRequestID = \"78\"\n"))
		<-y.dials
		result = getAd(t, conn)
		field(t, result, "Result", "false")
		field(t, result, "ErrorString", `"connection refused"`)

		// A heartbeat every 20 minutes, which the broker echoes.
		for range 3 {
			start := time.Now()
			beat := getAd(t, conn)
			field(t, beat, "Command", "441")
			if d := time.Since(start); d != 20*time.Minute {
				t.Errorf("a heartbeat after %s, want 20m", d)
			}
			sendAd(t, conn, beat)
		}

		// The broker restarts: the same id is asked for, with the cookie.
		_ = conn.Close()
		start := time.Now()
		conn = y.register(t, `"203.0.113.1:9618?sock=collector#12"`, `"secretcookie"`, registered)
		if d := time.Since(start); d < 60*time.Second || d > 66*time.Second {
			t.Errorf("registered again after %s, want a minute and a bit", d)
		}
		_ = conn.Close()
		conn = y.register(t, `"203.0.113.1:9618?sock=collector#12"`, `"secretcookie"`, strings.ReplaceAll(registered, "#12", "#13"))
		if id := <-y.ids; id != "203.0.113.1:9618?sock=collector#13" {
			t.Errorf("the new id is told as %q", id)
		}

		// A broker that falls silent is left after three intervals.
		start = time.Now()
		again := <-y.opens
		if d := time.Since(start); d < time.Hour || d > time.Hour+70*time.Second {
			t.Errorf("a silent broker was left after %s, want three intervals", d)
		}
		_ = again.Close()
		_ = conn.Close()
		y.end()
		if strings.Contains(y.log.String(), "secret") {
			t.Errorf("the log has a secret:\n%s", y.log)
		}
	})
}

func TestBrokersThatMisbehave(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		says func(t *testing.T, c *cedar.Conn) // after the registration was sent
		good bool                              // the registration lives on
	}{
		{"no id", func(t *testing.T, c *cedar.Conn) { sendAd(t, c, adOf(t, "Command = 67\n")) }, false},
		{"id with a blank", func(t *testing.T, c *cedar.Conn) { sendAd(t, c, adOf(t, "CCBID = \"a:1 b:2#3\"\n")) }, false},
		{"id without a number", func(t *testing.T, c *cedar.Conn) { sendAd(t, c, adOf(t, "CCBID = \"a:1#\"\n")) }, false},
		{"id that closes the address", func(t *testing.T, c *cedar.Conn) { sendAd(t, c, adOf(t, "CCBID = \"a:1>#3\"\n")) }, false},
		{"long cookie", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, registered+"ClaimId = \""+strings.Repeat("x", 5000)+"\"\n"))
		}, false},
		{"huge message", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, registered+"X = \""+strings.Repeat("x", 100_000)+"\"\n"))
		}, false},
		{"no ad", func(t *testing.T, c *cedar.Conn) { c.PutInt(-1); _ = c.EndMessage() }, false},
		{"request without id", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, registered))
			sendAd(t, c, adOf(t, "Command = 68\nMyAddress = \"<a:1>\"\nClaimId = \"x\"\n"))
		}, false},
		{"request for no address", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, registered))
			sendAd(t, c, adOf(t, "Command = 68\nMyAddress = \"nowhere >\"\nClaimId = \"x\"\nRequestID = \"1\"\n"))
			field(t, getAd(t, c), "Result", "false")
		}, true},
		{"broker behind brokers", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, "Command = 67\nCCBID = \"203.0.113.1:9618#7#12 203.0.113.2:9618#8#12\"\nClaimId = \"cookie\"\n"))
		}, true},
		{"too many brokers in a row", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, "Command = 67\nCCBID = \"203.0.113.1:9618#1#2#3#4#5#6#7#8#9#10\"\nClaimId = \"cookie\"\n"))
		}, false},
		{"two ways, one of which is none", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, "Command = 67\nCCBID = \"203.0.113.1:9618#7 203.0.113.2:9618#x\"\nClaimId = \"cookie\"\n"))
		}, false},
		{"requester behind a broker", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, registered))
			sendAd(t, c, adOf(t, "Command = 68\nMyAddress = \"<a:1?CCBID=b:1%232>\"\nClaimId = \"x\"\nRequestID = \"1\"\n"))
			field(t, getAd(t, c), "Result", "false")
		}, true},
		{"unknown command", func(t *testing.T, c *cedar.Conn) {
			sendAd(t, c, adOf(t, registered))
			sendAd(t, c, adOf(t, "Command = 4711\n"))
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				conn := <-y.opens
				getAd(t, conn)
				tt.says(t, conn)
				time.Sleep(70 * time.Second)
				select {
				case again := <-y.opens:
					if tt.good {
						t.Error("it registered again")
					}
					_ = again.Close()
				default:
					if !tt.good {
						t.Error("it stayed with this broker")
					}
				}
				_ = conn.Close()
				y.end()
			})
		})
	}
}

// A broker that asks for connections without end is refused more.
func TestReversalsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		y := newYard(t, func(b *Broker) {
			b.Dial = func(context.Context, cedar.Sinful) (net.Conn, error) {
				<-release
				return nil, errors.New("late")
			}
		})
		conn := y.register(t, "", "", registered)
		for range maxReversals + 5 {
			sendAd(t, conn, adOf(t, "Command = 68\nMyAddress = \"<a:1>\"\nClaimId = \"x\"\nRequestID = \"1\"\n"))
		}
		for range 5 {
			field(t, getAd(t, conn), "ErrorString", `"too many requests at a time"`)
		}
		close(release)
		for range maxReversals {
			field(t, getAd(t, conn), "ErrorString", `"late"`)
		}
		_ = conn.Close()
		y.end()
	})
}

func TestContacts(t *testing.T) {
	t.Parallel()
	var c Contacts
	c.Set(1, "b:1?sock=c#7")
	c.Set(0, "a:1#5")
	c.Set(2, "")
	s := cedar.Sinful{Host: "192.0.2.1", Port: 9618, CCB: c.Brokers()}
	if got, want := s.String(), "<192.0.2.1:9618?CCBID=a:1#5%20b:1%3fsock%3dc#7>"; got != want {
		t.Errorf("address is %s, want %s", got, want)
	}
	// A broker that is behind others, two of them.
	c.Set(2, "c:1#7#12 d:2?sock=c#8#12")
	s.CCB = c.Brokers()
	if got, want := s.String(), "<192.0.2.1:9618?CCBID=a:1#5%20b:1%3fsock%3dc#7%20c:1#7#12%20d:2%3fsock%3dc#8#12>"; got != want {
		t.Errorf("address is %s, want %s", got, want)
	}
	c.Set(2, "")
	c.Set(0, "")
	if got := c.Brokers(); !slices.Equal(got, []cedar.Broker{{Address: "b:1?sock=c", ID: "7"}}) {
		t.Errorf("left are %v", got)
	}
}

func FuzzReverseRequest(f *testing.F) {
	f.Add("Command = 68\nMyAddress = \"<198.51.100.9:4000?noUDP>\"\nClaimId = \"c\"\nRequestID = \"77\"\nName = \"TOOL\"\n")
	f.Add("MyAddress = MyAddress\nClaimId = 1\nRequestID = undefined\n")
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			return
		}
		r, err := parseReverseRequest(ad)
		if err != nil {
			return
		}
		again, err := parseReverseRequest(r.result(errors.New("x")))
		if err != nil || again.Address != r.Address || again.Connect != r.Connect || again.ID != r.ID {
			t.Errorf("%+v comes back as %+v, %v", r, again, err)
		}
		if _, err := cedar.ParseSinful(r.Address); err == nil && len(r.Address) > maxCCBText {
			t.Error("an address without bounds")
		}
	})
}

func FuzzRegistered(f *testing.F) {
	f.Add(registered)
	f.Add("CCBID = \"a#1\"\nClaimId = strcat(CCBID, ClaimId)\n")
	f.Add("CCBID = \"a:1#7#12 b:2?sock=c#8#12\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			return
		}
		b := &Broker{}
		if b.registered(ad, slog.New(slog.DiscardHandler)) != nil {
			return
		}
		var c Contacts
		c.Set(0, b.ccbid)
		s := cedar.Sinful{Host: "192.0.2.1", Port: 9618, CCB: c.Brokers()}
		again, err := cedar.ParseSinful(s.String())
		if err != nil || len(s.CCB) == 0 || !slices.Equal(again.CCB, s.CCB) {
			t.Errorf("%q makes the address %s, which reads as %v, %v", b.ccbid, s, again.CCB, err)
		}
	})
}
