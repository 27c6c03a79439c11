// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// Shadow is the access point's side of an activation: the connection by which
// it was asked for, where it stands between two messages, and the whole id of
// the claim. Whoever has it closes Conn.
type Shadow struct {
	Conn   net.Conn
	Stream cedar.State
	Claim  claim.Secret
}

// handed is a Shadow or why there is none.
type handed struct {
	shadow Shadow
	err    error
}

func (h handed) close() {
	if h.shadow.Conn != nil {
		_ = h.shadow.Conn.Close()
	}
}

// handing are the connections on their way from the command that asked for an
// activation to the starter.
type handing struct {
	mu  sync.Mutex
	way map[claim.ActivationID]chan handed
}

func (h *handing) init() { h.way = make(map[claim.ActivationID]chan handed) }

// begin notes that the connection of an activation will come, before anybody
// can want it.
func (h *handing) begin(act claim.ActivationID) {
	h.mu.Lock()
	h.way[act] = make(chan handed, 1)
	h.mu.Unlock()
}

func (h *handing) get(act claim.ActivationID) (chan handed, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch, ok := h.way[act]
	return ch, ok
}

// deliver passes on what becomes of a connection; one that nobody waits for any
// more is closed.
func (h *handing) deliver(act claim.ActivationID, v handed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch, ok := h.way[act]; ok {
		ch <- v // there is room for it
		return
	}
	v.close()
}

// end notes that nobody waits for the connection of an activation any more.
func (h *handing) end(act claim.ActivationID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.way[act]
	delete(h.way, act)
	select {
	case v := <-ch:
		v.close()
	default:
	}
}

// Address is where we are reached at present, a sinful.
func (p *Pool) Address() string { return p.cfg.Address().String() }

// Complete adds to a slot's ad what the pool is shown besides: where we are and
// since when.
func (p *Pool) Complete(ad *classad.Ad) {
	id := p.identity()
	id.public(ad)
}

// HasShadow reports whether an activation was asked for by a shadow, in the
// goroutine that performs its ep.StartStarter. If so Shadow must be called,
// once.
func (p *Pool) HasShadow(act claim.ActivationID) bool {
	_, ok := p.handing.get(act)
	return ok
}

// Shadow waits until the shadow of an activation has been told that its job
// will run, and returns its connection. An error says that the shadow is gone,
// or ctx, and with it the connection.
func (p *Pool) Shadow(ctx context.Context, act claim.ActivationID) (Shadow, error) {
	const op = "pool.Shadow"
	ch, ok := p.handing.get(act)
	if !ok {
		return Shadow{}, errs.E(op, errs.NotFound, string(act), errors.New("no shadow asked for it"))
	}
	select {
	case h := <-ch:
		p.handing.end(act)
		return h.shadow, h.err
	case <-ctx.Done():
		p.handing.end(act)
		return Shadow{}, errs.E(op, errs.Expired, string(act), ctx.Err())
	}
}

// hand tells the shadow yes and sends its connection on its way. Whatever
// happens, who waits for it hears of it.
func (p *Pool) hand(c *listen.Call, id claim.ID, act claim.ActivationID) (err error) {
	if !p.HasShadow(act) {
		return errs.E("pool.ACTIVATE_CLAIM", errs.Internal, string(act), errors.New("nobody starts it"))
	}
	h := handed{err: errs.E("pool.ACTIVATE_CLAIM", errs.Internal, string(act), errors.New("its connection was lost"))}
	defer func() { p.handing.deliver(act, h) }()
	c.Conn.PutInt(command.OK)
	if err := c.Conn.EndMessage(); err != nil {
		h.err = err
		return err
	}
	if !c.Detach() {
		h.err = errs.E("pool.ACTIVATE_CLAIM", errs.Transient, c.Conn.Peer(), errors.New("the connection was closed"))
		return h.err
	}
	state, err := c.Conn.State()
	if err != nil {
		h.err = err
		_ = c.Conn.Close()
		return err
	}
	c.Log.Info("activated", "claim", id.String(), "activation", string(act))
	h = handed{shadow: Shadow{Conn: c.Conn.NetConn(), Stream: state, Claim: claim.Secret(id.Wire())}}
	return nil
}
