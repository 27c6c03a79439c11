// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// Reverser reaches daemons behind brokers: it asks a broker to have the daemon
// connect to us, and hands that connection to the caller that asked. Where we are
// behind a broker ourselves, so that no daemon could connect to us either, the
// broker is asked to relay what both say. Its exported fields are set before
// the first use.
type Reverser struct {
	// Open opens a connection to a broker for command 68.
	Open func(ctx context.Context, broker cedar.Sinful) (*cedar.Conn, error)
	// Return is the address of our command socket as the daemon sees it, whose
	// server has Command in its table. Nil, or an address without host or port,
	// is that of a process that has none.
	Return func() cedar.Sinful
	// Listen opens sockets for the one connection that is awaited, where there
	// is no command socket, and returns their address as the daemon sees it.
	// Nil leaves a process without command socket unreachable.
	Listen func(ctx context.Context) ([]net.Listener, cedar.Sinful, error)
	// NoRelay is CCB_CLIENT_STREAMING set to false: brokers are not asked to
	// relay.
	NoRelay bool
	// Name says who we are, for logs of brokers.
	Name func() string

	mu      sync.Mutex
	waiting map[string]chan net.Conn // by connect id
}

// reverseWithin bounds how long a reversed connection is waited for where the
// context has no deadline: as long as daemons wait for a short command.
const reverseWithin = 600 * time.Second

// maxWaiting bounds the reversed connections that are waited for at a time.
const maxWaiting = 1024

// Command is the row of CCB_REVERSE_CONNECT: everyone may send it, but nothing
// comes of it without an id that we made.
func (r *Reverser) Command() Command {
	return Answer(command.Startd, map[int]Handler{command.CCBReverseConnect: r.arrived})[0] // a starter's row is the same
}

// arrived handles the hello of a reversed connection.
func (r *Reverser) arrived(_ context.Context, c *Call) error {
	limits := c.Conn.Limits()
	c.Conn.SetLimits(narrow(limits))
	ad, err := readAd(c.Conn)
	if err != nil {
		return err
	}
	c.Conn.SetLimits(limits)
	id, _ := lookupString(ad, "ClaimId")
	to := r.claim(id)
	if to == nil {
		return errs.E("listen.Reverser", errs.Denied, c.Conn.Peer(), errors.New("nobody waits for a connection of that id"))
	}
	if c.Conn.Buffered() > 0 {
		return errs.E("listen.Reverser", errs.Invalid, c.Conn.Peer(), errEager)
	}
	if !c.Detach() {
		return errs.E("listen.Reverser", errs.Expired, c.Conn.Peer(), errors.New("the connection was closed"))
	}
	to <- c.Conn.NetConn() // has room for the only one
	return nil
}

// errEager is a daemon that goes on though we are the one who speaks first.
var errEager = errors.New("a reversed connection goes on before we said anything")

// claim returns who waits for an id, at most once.
func (r *Reverser) claim(id string) chan net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	for want, to := range r.waiting {
		if same(want, id) {
			delete(r.waiting, want)
			return to
		}
	}
	return nil
}

func same(want, id string) bool { return subtle.ConstantTimeCompare([]byte(want), []byte(id)) == 1 }

// newConnectID makes the id by which a reversed connection is known.
func newConnectID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (r *Reverser) expect() (id string, to chan net.Conn, err error) {
	id, to = newConnectID(), make(chan net.Conn, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= maxWaiting {
		return "", nil, errs.E("listen.Reverser", errs.Exhausted, "", fmt.Errorf("%d reversed connections are waited for", maxWaiting))
	}
	if r.waiting == nil {
		r.waiting = make(map[string]chan net.Conn)
	}
	r.waiting[id] = to
	return id, to, nil
}

// giveUp stops waiting; a connection that came nevertheless is closed.
func (r *Reverser) giveUp(id string, to chan net.Conn) {
	r.mu.Lock()
	delete(r.waiting, id)
	r.mu.Unlock()
	select {
	case conn := <-to:
		_ = conn.Close()
	default:
	}
}

// attempt is one try to reach a daemon.
type attempt struct {
	broker cedar.Broker
	try    func(ctx context.Context, b cedar.Broker, back cedar.Sinful) (net.Conn, error)
}

// attempts are what may be tried, in order: that the brokers relay where nobody
// could connect to us or where the daemon is behind several brokers in a row,
// and then that the daemon connects to us. That may work even if we are behind
// a broker, for names of networks are not always given right.
func (r *Reverser) attempts(brokers []cedar.Broker, behind bool) []attempt {
	var all []attempt
	brokers = brokers[:min(len(brokers), maxTargets)]
	for _, b := range brokers {
		if !r.NoRelay && (behind || strings.Contains(b.ID, "#")) {
			all = append(all, attempt{b, r.relayed})
		}
	}
	for _, b := range brokers {
		all = append(all, attempt{b, r.called})
	}
	return all
}

// connect asks one broker after the other. Each has its share of the time.
func (r *Reverser) connect(ctx context.Context, brokers []cedar.Broker) (net.Conn, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, reverseWithin)
		defer cancel()
	}
	var back cedar.Sinful
	if r.Return != nil {
		back = r.Return()
	}
	attempts := r.attempts(brokers, len(back.CCB) > 0)
	var all []error
	for i, w := range attempts {
		conn, err := w.within(ctx, len(attempts)-i, back)
		if err == nil {
			return conn, nil
		}
		all = append(all, err)
		if ctx.Err() != nil {
			break
		}
	}
	if len(back.CCB) > 0 {
		all = append(all, errBothBehind)
	}
	kind := errs.Transient
	if ctx.Err() != nil {
		kind = errs.Expired
	}
	return nil, errs.E("listen.Dial", kind, brokers[0].String(), errors.Join(all...))
}

// errBothBehind says why two daemons cannot reach one another.
var errBothBehind = errors.New("both ends are behind brokers: that takes a broker of 25.12 or newer with CCB_SERVER_STREAMING, and CCB_CLIENT_STREAMING here, or the same PRIVATE_NETWORK_NAME if they reach one another")

// within makes one attempt within its share of what time is left.
func (w attempt) within(ctx context.Context, shares int, back cedar.Sinful) (net.Conn, error) {
	at, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(at)/time.Duration(shares))
	defer cancel()
	return w.try(ctx, w.broker, back)
}

// open opens a connection to a broker.
func (r *Reverser) open(ctx context.Context, b cedar.Broker) (*cedar.Conn, error) {
	broker, err := b.Sinful()
	if err != nil {
		return nil, err
	}
	if len(broker.CCB) > 0 {
		return nil, errs.E("listen.Dial", errs.Unsupported, b.String(), errors.New("the broker is behind a broker"))
	}
	conn, err := r.Open(ctx, broker)
	if err != nil {
		return nil, err
	}
	conn.SetLimits(narrow(conn.Limits()))
	conn.SetTimeout(reverseWithin)
	return conn, nil
}

// request is what a broker is asked.
func (r *Reverser) request(target, id string, back cedar.Sinful) *classad.Ad {
	ad := classad.NewAd()
	ad.SetString("CCBID", target)
	ad.SetString("ClaimId", id)
	ad.SetString("MyAddress", back.String())
	if r.Name != nil {
		ad.SetString("Name", r.Name())
	}
	return ad
}

// called has the daemon connect to us.
func (r *Reverser) called(ctx context.Context, b cedar.Broker, back cedar.Sinful) (net.Conn, error) {
	id, to, err := r.expect()
	if err != nil {
		return nil, err
	}
	defer r.giveUp(id, to)
	conn, err := r.open(ctx, b)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer conn.Close()
	if back.Host == "" || back.Port <= 0 {
		var done func()
		if back, done, err = r.await(ctx); err != nil {
			return nil, err
		}
		defer done()
	}
	back.CCB = nil
	release := conn.Bind(ctx)
	conn.PutAd(r.request(b.ID, id, back), cedar.AdOptions{})
	err = conn.EndMessage()
	release()
	if err != nil {
		return nil, err
	}
	// The daemon may connect before the broker answers, and the broker
	// answers only if it could not.
	answer := make(chan error, 1)
	wg.Go(func() { answer <- refusal(conn) })
	for {
		select {
		case got := <-to:
			return got, nil
		case err := <-answer:
			if err != nil {
				return nil, err
			}
			answer = nil // all is well, it is on its way
		case <-ctx.Done():
			return nil, errs.E("listen.Dial", errs.Expired, b.String(), fmt.Errorf("no reversed connection came: %w", context.Cause(ctx)))
		}
	}
}

// refusal reads the broker's answer to a request.
func refusal(conn *cedar.Conn) error {
	ad, err := readAd(conn)
	if err != nil {
		return err
	}
	if ok, _ := ad.EvalBool("Result", nil); ok {
		return nil
	}
	why, _ := lookupString(ad, "ErrorString")
	return errs.E("listen.Dial", errs.Transient, conn.Peer(), fmt.Errorf("the broker has no connection for us: %.200q", why))
}
