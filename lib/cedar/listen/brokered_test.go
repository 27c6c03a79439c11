// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// exchange is a broker in memory, as the original is: those registered with it
// are known by numbers, and who asks for one is called back by it, or relayed
// to it.
type exchange struct {
	t       *testing.T
	relays  bool
	address string // of the broker itself

	mu      sync.Mutex
	next    byte
	targets map[string]*cedar.Conn // registrations, by number
	asked   map[string]*cedar.Conn // requesters that are to be relayed, by connect id
	log     []string
	wg      sync.WaitGroup
}

// open gives our end of a connection to it, whose other end is served.
func (x *exchange) open(serve func(c *cedar.Conn)) *cedar.Conn {
	mine, theirs := cedartest.Pipe()
	x.wg.Go(func() { serve(cedar.NewConn(theirs, cedar.Limits{Timeout: -1})) })
	conn := cedar.NewConn(mine, cedar.Limits{})
	conn.SetPeerVersion("25.14.0")
	return conn
}

// register serves a registration until it ends: what the daemon says of
// requests is passed to nobody, as where the requester has been called.
func (x *exchange) register(c *cedar.Conn) {
	if _, err := readAd(c); err != nil {
		x.t.Error(err)
		return
	}
	x.mu.Lock()
	x.next++
	number := string('0' + x.next)
	x.targets[number] = c
	sendAd(x.t, c, adOf(x.t, "Command = 67\nCCBID = \""+x.address+"#"+number+"\"\nClaimId = \"cookie\"\n"))
	x.mu.Unlock()
	for {
		if _, err := readAd(c); err != nil {
			return
		}
	}
}

// request serves somebody who wants to reach a daemon.
func (x *exchange) request(c *cedar.Conn) {
	ad, err := readAd(c)
	if err != nil {
		x.t.Error(err)
		return
	}
	number, _ := lookupString(ad, "CCBID")
	back, _ := lookupString(ad, "MyAddress")
	id, _ := lookupString(ad, "ClaimId")
	wanted, _ := ad.EvalBool("CCBStreamingRequired", nil)
	x.mu.Lock()
	target := x.targets[number]
	x.log = append(x.log, back)
	if wanted && x.relays {
		x.asked[id], back = c, "<"+x.address+">"
	}
	x.mu.Unlock()
	switch {
	case target == nil:
		sendAd(x.t, c, adOf(x.t, "Result = false\nErrorString = \"no daemon is registered with that id\"\n"))
		return
	case wanted && !x.relays:
		sendAd(x.t, c, adOf(x.t, "Result = false\nErrorString = \"streaming is disabled\"\n"))
		return
	}
	forward := adOf(x.t, "Command = 68\nRequestID = \"1\"\nName = \"somebody\"\n")
	forward.SetString("MyAddress", back)
	forward.SetString("ClaimId", id)
	x.mu.Lock() // one at a time writes to a registration
	defer x.mu.Unlock()
	sendAd(x.t, target, forward)
}

// called serves a daemon that connects to the broker to be relayed.
func (x *exchange) called(nc net.Conn) {
	c := cedar.NewConn(nc, cedar.Limits{})
	n, err := c.Int()
	if err != nil || n != command.CCBReverseConnect {
		x.t.Errorf("the daemon begins with %d, %v", n, err)
		return
	}
	hello := getAd(x.t, c)
	id, _ := lookupString(hello, "ClaimId")
	x.mu.Lock()
	requester := x.asked[id]
	delete(x.asked, id)
	x.mu.Unlock()
	if requester == nil {
		_ = nc.Close()
		return
	}
	sendAd(x.t, requester, adOf(x.t, "Result = true\nProxyMode = true\n"))
	requester.PutInt(command.CCBReverseConnect)
	sendAd(x.t, requester, hello)
	for _, way := range [...][2]net.Conn{{nc, requester.NetConn()}, {requester.NetConn(), nc}} {
		_ = way[0].SetDeadline(time.Time{})
		x.wg.Go(func() { _, _ = io.Copy(way[1], way[0]); _ = way[1].Close() })
	}
}

// Both ends are ours, and the broker is one that behaves: called back at a
// command socket or at one for the purpose, relayed, or refused.
func TestBrokeredBothEnds(t *testing.T) {
	t.Parallel()
	const broker = "203.0.113.1:9618"
	tests := []struct {
		name   string
		relays bool   // the broker does
		self   string // of the requester, "" for one without command socket
		number string // whom it wants
		back   string // what the broker was told last
		says   string // the error, "" for none
	}{
		{name: "called at the command socket", self: "<198.51.100.9:4000>", number: "1", back: "<198.51.100.9:4000>"},
		{name: "called at a socket of its own", number: "1", back: "<198.51.100.9:5000>"},
		{name: "relayed", relays: true, self: behind, number: "1", back: behind},
		{name: "called since nothing is relayed", self: behind, number: "1", back: "<198.51.100.9:4000?PrivNet=lab&noUDP>"},
		{name: "not there", self: "<198.51.100.9:4000>", number: "9", back: "<198.51.100.9:4000>", says: "no daemon is registered with that id"},
		{name: "not there to be relayed to", relays: true, self: behind, number: "9", back: "<198.51.100.9:4000?PrivNet=lab&noUDP>", says: "both ends are behind brokers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := &exchange{t: t, relays: tt.relays, address: broker, targets: map[string]*cedar.Conn{}, asked: map[string]*cedar.Conn{}}
				target, r, own := build(t, Limits{}), newRequester(t), newHall()
				if r.self = (cedar.Sinful{}); tt.self != "" {
					r.self = sinful(t, tt.self)
				}
				r.reverser.Open = func(context.Context, cedar.Sinful) (*cedar.Conn, error) { return x.open(x.request), nil }
				r.reverser.Listen = func(context.Context) ([]net.Listener, cedar.Sinful, error) {
					return []net.Listener{own}, sinful(t, "<198.51.100.9:5000>"), nil
				}
				registered := make(chan string, 1)
				b := &Broker{
					Address: broker, Reconnect: time.Minute, Serve: target.server.ServeConn,
					Open: func(context.Context) (*cedar.Conn, error) { return x.open(x.register), nil },
					Dial: func(_ context.Context, to cedar.Sinful) (net.Conn, error) {
						switch to.Port {
						case 4000:
							return r.hall.call("10.0.0.5:1"), nil
						case 5000:
							return own.call("10.0.0.5:1"), nil
						case 9618:
							mine, theirs := cedartest.Pipe()
							x.wg.Go(func() { x.called(theirs) })
							return mine, nil
						}
						return nil, errors.New("nobody there")
					},
					Registered: func(id string) { registered <- id },
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); b.Run(ctx) }()
				if id := <-registered; id != broker+"#1" {
					t.Errorf("registered as %s", id)
				}
				nc, err := r.dialer.Dial(t.Context(), sinful(t, "<10.0.0.5:9618?CCBID="+broker+"#"+tt.number+">"))
				if tt.says == "" {
					if err != nil {
						t.Fatal(err)
					}
					conn := cedar.NewConn(nc, cedar.Limits{})
					for _, text := range []string{"through the broker", strings.Repeat("much ", 100_000)} {
						echo(t, conn, text)
					}
					_ = conn.Close()
				} else if !errs.Is(err, errs.Transient) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v, want it to say %q", err, tt.says)
				}
				if len(x.log) == 0 || x.log[len(x.log)-1] != tt.back {
					t.Errorf("the broker was told %q, want %s at last", x.log, tt.back)
				}
				cancel()
				<-ended
				r.end(t)
				target.end(t)
				x.wg.Wait()
			})
		})
	}
}
