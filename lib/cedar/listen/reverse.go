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
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// Reverser reaches daemons behind brokers: it asks a broker to have the daemon
// connect to our command socket, and hands that connection to whoever asked.
// Its Command must be in the table of the server at Return.
type Reverser struct {
	// Open opens a connection to a broker for command 68.
	Open func(ctx context.Context, broker cedar.Sinful) (*cedar.Conn, error)
	// Return is the address of our command socket as the daemon sees it.
	Return func() cedar.Sinful
	// Name says who we are, for logs of brokers.
	Name func() string

	mu      sync.Mutex
	waiting map[string]chan net.Conn // by connect id
}

// reverseWithin bounds how long a reversed connection is waited for.
const reverseWithin = 600 * time.Second

// maxWaiting bounds the reversed connections that are waited for at a time.
const maxWaiting = 1024

// Command is the row of CCB_REVERSE_CONNECT: everyone may send it, but nothing
// comes of it without an id that we made.
func (r *Reverser) Command() Command {
	return Command{Number: CCBReverseConnect, Name: "CCB_REVERSE_CONNECT", Level: security.Allow, Handle: r.arrived}
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
		return errs.E("listen.Reverser", errs.Invalid, c.Conn.Peer(), errors.New("a reversed connection goes on before we said anything"))
	}
	if !c.Detach() {
		return errs.E("listen.Reverser", errs.Expired, c.Conn.Peer(), errors.New("the connection was closed"))
	}
	to <- c.Conn.NetConn() // has room for the only one
	return nil
}

// claim returns who waits for an id, at most once.
func (r *Reverser) claim(id string) chan net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	for want, to := range r.waiting {
		if subtle.ConstantTimeCompare([]byte(want), []byte(id)) == 1 {
			delete(r.waiting, want)
			return to
		}
	}
	return nil
}

func (r *Reverser) expect() (id string, to chan net.Conn, err error) {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	id, to = hex.EncodeToString(b[:]), make(chan net.Conn, 1)
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

// connect asks one broker after the other.
func (r *Reverser) connect(ctx context.Context, brokers []cedar.Broker) (net.Conn, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, reverseWithin)
		defer cancel()
	}
	var all []error
	for _, b := range brokers[:min(len(brokers), maxTargets)] {
		conn, err := r.ask(ctx, b)
		if err == nil {
			return conn, nil
		}
		all = append(all, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errs.E("listen.Dial", errs.Transient, brokers[0].String(), errors.Join(all...))
}

// ask has the daemon connect to us through one broker.
func (r *Reverser) ask(ctx context.Context, b cedar.Broker) (net.Conn, error) {
	broker, err := b.Sinful()
	if err != nil {
		return nil, err
	}
	if len(broker.CCB) > 0 {
		return nil, errs.E("listen.Dial", errs.Unsupported, b.String(), errors.New("the broker is behind a broker"))
	}
	id, to, err := r.expect()
	if err != nil {
		return nil, err
	}
	defer r.giveUp(id, to)
	conn, err := r.Open(ctx, broker)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer conn.Close()
	back := r.Return()
	back.CCB = nil
	ad := classad.NewAd()
	ad.SetString("CCBID", b.ID)
	ad.SetString("ClaimId", id)
	ad.SetString("MyAddress", back.String())
	if r.Name != nil {
		ad.SetString("Name", r.Name())
	}
	conn.PutAd(ad, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return nil, err
	}
	// The daemon may connect before the broker answers, and the broker
	// answers only if it could not.
	answer := make(chan error, 1)
	conn.SetLimits(narrow(conn.Limits()))
	conn.SetTimeout(reverseWithin)
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
			return nil, errs.E("listen.Dial", errs.Expired, b.String(), context.Cause(ctx))
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
