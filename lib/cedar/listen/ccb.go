// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// Bounds of what brokers and those behind them may send.
const (
	maxCCBText      = 4096 // bytes of an address, id or name
	maxCCBAd        = 64 << 10
	maxReversals    = 128 // reversed connections being opened at a time
	minHeartbeat    = 30 * time.Second
	heartbeatsLost  = 3
	ccbConnectLimit = 300 * time.Second
)

// reverseRequest is what a broker asks of a daemon that registered: to connect
// to a peer that cannot connect to it.
type reverseRequest struct {
	Address string       // where the requester listens
	Connect cedar.Secret // by which the requester knows the connection
	ID      string       // of the request, for the broker
	Name    string       // of the requester, for logs
}

func parseReverseRequest(ad *classad.Ad) (reverseRequest, error) {
	var r reverseRequest
	address, ok1 := lookupString(ad, "MyAddress")
	connect, ok2 := lookupString(ad, "ClaimId")
	id, ok3 := lookupString(ad, "RequestID")
	if !ok1 || !ok2 || !ok3 {
		return r, errs.E("listen.Broker", errs.Invalid, "", errors.New("a request for a reversed connection lacks MyAddress, ClaimId or RequestID"))
	}
	name, _ := lookupString(ad, "Name")
	for _, s := range []string{address, connect, id, name} {
		if len(s) > maxCCBText {
			return r, errs.E("listen.Broker", errs.Exhausted, "", fmt.Errorf("a request for a reversed connection has a text of %d bytes, %d is the most", len(s), maxCCBText))
		}
	}
	return reverseRequest{Address: address, Connect: cedar.Secret(connect), ID: id, Name: name}, nil
}

// hello is what opens a reversed connection.
func (r reverseRequest) hello() *classad.Ad {
	ad := classad.NewAd()
	ad.SetString("ClaimId", r.Connect.Reveal())
	ad.SetString("RequestID", r.ID)
	ad.SetString("MyAddress", r.Address)
	return ad
}

// result is what the broker hears of a request.
func (r reverseRequest) result(err error) *classad.Ad {
	ad := r.hello()
	ad.SetBool("Result", err == nil)
	if err != nil {
		ad.SetString("ErrorString", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return ad
}

// Broker keeps this daemon registered with one broker, and opens the reversed
// connections that it asks for. Its fields are set before Run.
type Broker struct {
	// Address is the broker's as configured in CCB_ADDRESS, for logs.
	Address string
	// Open opens a connection to the broker for command 67, under a security
	// session of its own that is not kept: one that the broker forgot could
	// not be taken back by it.
	Open func(ctx context.Context) (*cedar.Conn, error)
	// Dial connects to requesters.
	Dial func(ctx context.Context, to cedar.Sinful) (net.Conn, error)
	// Serve is given the reversed connections; Server.ServeConn.
	Serve func(ctx context.Context, nc net.Conn)
	// PrivateNetwork is the name of the network we are in: requesters in the
	// same one are connected to directly, whatever brokers they are behind.
	PrivateNetwork string
	// Name says who we are, for the broker's log.
	Name func() string
	// Registered is called with the id that stands in our address as CCBID from now
	// on, "<broker's address>#<number>", whenever it changes, and "" when the
	// registration is lost.
	Registered func(ccbid string)
	// Heartbeat is CCB_HEARTBEAT_INTERVAL, 0 for none; Reconnect is
	// CCB_RECONNECT_TIME.
	Heartbeat, Reconnect time.Duration
	Log                  *slog.Logger

	ccbid  string
	cookie cedar.Secret
}

// Run registers, and does so again whenever the connection is lost, until ctx
// ends.
func (b *Broker) Run(ctx context.Context) {
	if b.Log == nil {
		b.Log = slog.New(slog.DiscardHandler)
	}
	log := b.Log.With("broker", b.Address)
	for {
		err := b.stay(ctx, log)
		if ctx.Err() != nil {
			return
		}
		again := b.Reconnect
		if again <= 0 {
			again = time.Minute
		}
		again += rand.N(again/10 + 1)
		log.Warn("the connection to the broker failed", "err", err, "retry", again.Round(time.Second).String())
		if !wait(ctx, again) {
			return
		}
	}
}

// stay registers and serves the connection until it is lost.
func (b *Broker) stay(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	conn, err := b.Open(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	conn.SetLimits(narrow(conn.Limits()))
	if err := b.register(conn, log); err != nil {
		return err
	}
	interval := b.Heartbeat
	if interval > 0 {
		interval = max(interval, minHeartbeat)
		conn.SetTimeout(heartbeatsLost * interval) // of silence, and the connection is dead
	} else {
		conn.SetTimeout(0)
	}
	say := make(chan *classad.Ad, maxReversals)
	wg.Go(func() {
		defer conn.Close() // so that reading ends too
		b.talk(ctx, conn, say, interval)
	})
	slots := make(chan struct{}, maxReversals)
	for {
		ad, err := readAd(conn)
		if err != nil {
			return err
		}
		switch number, _ := ad.EvalInt("Command", nil); number {
		case command.Alive:
			log.Debug("heartbeat from the broker")
		case command.CCBRequest:
			r, err := parseReverseRequest(ad)
			if err != nil {
				return err
			}
			select {
			case slots <- struct{}{}:
			default:
				log.Warn("too many reversed connections at a time", "requester", r.Name)
				offer(say, r.result(errors.New("too many requests at a time")))
				continue
			}
			wg.Go(func() {
				defer func() { <-slots }()
				err := b.reverse(ctx, r)
				if err != nil {
					log.Warn("no reversed connection", "requester", r.Name, "addr", r.Address, "err", err)
				} else {
					log.Debug("reversed connection", "requester", r.Name, "addr", r.Address)
				}
				offer(say, r.result(err))
			})
		case command.CCBRegister:
			if err := b.registered(ad, log); err != nil {
				return err
			}
		default:
			log.Warn("unexpected message from the broker", "command", command.Name(int(number)))
		}
	}
}

// offer hands over what is to be said, unless no connection can take it any more.
func offer(say chan<- *classad.Ad, ad *classad.Ad) {
	select {
	case say <- ad:
	default:
	}
}

// talk sends heartbeats and results.
func (b *Broker) talk(ctx context.Context, conn *cedar.Conn, say <-chan *classad.Ad, interval time.Duration) {
	var beat <-chan time.Time
	if interval > 0 {
		t := time.NewTicker(interval)
		defer t.Stop()
		beat = t.C
	}
	for {
		var ad *classad.Ad
		select {
		case <-ctx.Done():
			return
		case ad = <-say:
		case <-beat:
			ad = classad.NewAd()
			ad.SetInt("Command", command.Alive)
		}
		conn.PutAd(ad, cedar.AdOptions{})
		if conn.EndMessage() != nil {
			return
		}
	}
}

// register asks for an id, or for the one we had.
func (b *Broker) register(conn *cedar.Conn, log *slog.Logger) error {
	ad := classad.NewAd()
	ad.SetInt("Command", command.CCBRegister)
	if b.ccbid != "" {
		ad.SetString("CCBID", b.ccbid)
		ad.SetString("ClaimId", b.cookie.Reveal())
	}
	if b.Name != nil {
		ad.SetString("Name", b.Name())
	}
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return err
	}
	reply, err := readAd(conn)
	if err != nil {
		return err
	}
	return b.registered(reply, log)
}

// registered takes over what the broker calls us.
func (b *Broker) registered(ad *classad.Ad, log *slog.Logger) error {
	id, ok := lookupString(ad, "CCBID")
	if !ok || !validCCBID(id) {
		return errs.E("listen.Broker", errs.Invalid, b.Address, errors.New("the answer to the registration has no CCBID of the form address#number"))
	}
	cookie, _ := lookupString(ad, "ClaimId")
	if len(cookie) > maxCCBText {
		return errs.E("listen.Broker", errs.Exhausted, b.Address, errors.New("the answer to the registration has too long a ClaimId"))
	}
	changed := id != b.ccbid
	b.ccbid, b.cookie = id, cedar.Secret(cookie)
	log.Info("registered with the broker", "ccbid", id)
	if changed && b.Registered != nil {
		b.Registered(id)
	}
	return nil
}

// validCCBID reports whether id can stand in an address: a broker's address,
// which may itself be behind a shared port, and a number. A broker that is
// behind others gives the numbers of all on the way, "address#id0#id1", and one
// such entry for each way that leads to it.
func validCCBID(id string) bool {
	if len(id) > maxCCBText || strings.ContainsAny(id, "<>\t\r\n") {
		return false
	}
	entries := contacts(id)
	for _, b := range entries {
		s, err := b.Sinful()
		if err != nil || s.Host == "" || s.Port <= 0 || len(s.CCB) > 0 {
			return false
		}
		if _, _, err := hops(b); err != nil {
			return false
		}
	}
	return len(entries) > 0 && len(entries) <= maxTargets
}

// contacts splits what a broker calls us.
func contacts(ccbid string) []cedar.Broker {
	var all []cedar.Broker
	for word := range strings.FieldsSeq(ccbid) {
		address, id, _ := strings.Cut(word, "#")
		all = append(all, cedar.Broker{Address: address, ID: id})
	}
	return all
}

// reverse opens one reversed connection and has it served.
func (b *Broker) reverse(ctx context.Context, r reverseRequest) error {
	to, err := cedar.ParseSinful(r.Address)
	if err != nil {
		return err
	}
	if to = near(to, b.PrivateNetwork); len(to.CCB) > 0 {
		return errs.E("listen.Broker", errs.Unsupported, r.Address, errors.New("the requester is behind a broker itself"))
	}
	dctx, cancel := context.WithTimeout(ctx, ccbConnectLimit)
	defer cancel()
	nc, err := b.Dial(dctx, to)
	if err != nil {
		return err
	}
	// What this stream says does not count for the digests of the
	// conversation that follows on another.
	conn := cedar.NewConn(nc, cedar.Limits{})
	release := conn.Bind(dctx)
	conn.PutInt(command.CCBReverseConnect)
	conn.PutAd(r.hello(), cedar.AdOptions{})
	err = conn.EndMessage()
	release()
	if err != nil {
		_ = conn.Close()
		return err
	}
	b.Serve(ctx, nc)
	return nil
}

// narrow bounds what a broker may send in one message.
func narrow(l cedar.Limits) cedar.Limits {
	l.Message, l.Packet, l.String, l.AdLines = maxCCBAd, maxCCBAd, maxCCBAd, 100
	return l
}

// readAd reads a message that is one ad.
func readAd(conn *cedar.Conn) (*classad.Ad, error) {
	ad, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		return nil, err
	}
	return ad, conn.EndOfMessage()
}

func lookupString(ad *classad.Ad, name string) (string, bool) {
	return ad.EvalString(name, nil)
}

// Contacts collects what brokers call us, in the order of the brokers.
type Contacts struct {
	mu  sync.Mutex
	ids []string
}

// Set notes the CCBID at the n-th broker, "" for none.
func (c *Contacts) Set(n int, ccbid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.ids) <= n {
		c.ids = append(c.ids, "")
	}
	c.ids[n] = ccbid
}

// Brokers returns the entries for our address.
func (c *Contacts) Brokers() []cedar.Broker {
	c.mu.Lock()
	ids := slices.Clone(c.ids)
	c.mu.Unlock()
	var all []cedar.Broker
	for _, id := range ids {
		all = append(all, contacts(id)...)
	}
	return all
}
