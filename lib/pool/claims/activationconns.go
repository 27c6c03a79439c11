// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
)

// Shadow is the access point's side of an activation: the connection by which
// it was asked for, where it stands between two messages, and the whole id of
// the claim. Its owner closes Conn.
type Shadow struct {
	Conn   net.Conn
	Stream cedar.State
	Claim  claim.Secret
}

// activationConn is a Shadow or why there is none.
type activationConn struct {
	shadow Shadow
	err    error
}

func (h activationConn) close() {
	if h.shadow.Conn != nil {
		_ = h.shadow.Conn.Close()
	}
}

// activationConns are the connections on their way from the command that asked for
// an activation to the starter.
type activationConns struct {
	mu    sync.Mutex
	byAct map[claim.ActivationID]chan activationConn
}

func (h *activationConns) init() { h.byAct = make(map[claim.ActivationID]chan activationConn) }

// begin notes that the connection of an activation will come, before anybody
// can want it.
func (h *activationConns) begin(act claim.ActivationID) {
	h.mu.Lock()
	h.byAct[act] = make(chan activationConn, 1)
	h.mu.Unlock()
}

func (h *activationConns) get(act claim.ActivationID) (chan activationConn, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch, ok := h.byAct[act]
	return ch, ok
}

// deliver passes on what becomes of a connection; one that is not waited for any
// more is closed.
func (h *activationConns) deliver(act claim.ActivationID, v activationConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch, ok := h.byAct[act]; ok {
		ch <- v // there is room for it
		return
	}
	v.close()
}

// end notes that the connection of an activation is not waited for any more.
func (h *activationConns) end(act claim.ActivationID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.byAct[act]
	delete(h.byAct, act)
	select {
	case v := <-ch:
		v.close()
	default:
	}
}

// HasShadow reports whether an activation was asked for by a shadow, in the
// goroutine that performs its ep.StartStarter. If so Shadow must be called,
// once.
func (s *Server) HasShadow(act claim.ActivationID) bool {
	_, ok := s.conns.get(act)
	return ok
}

// Shadow waits until the shadow of an activation has been answered OK, and returns its connection. An error says that the shadow is gone,
// or ctx, and with it the connection.
func (s *Server) Shadow(ctx context.Context, act claim.ActivationID) (Shadow, error) {
	const op = "claims.Shadow"
	ch, ok := s.conns.get(act)
	if !ok {
		return Shadow{}, errs.E(op, errs.NotFound, string(act), errors.New("no shadow asked for it"))
	}
	select {
	case h := <-ch:
		s.conns.end(act)
		return h.shadow, h.err
	case <-ctx.Done():
		s.conns.end(act)
		return Shadow{}, errs.E(op, errs.Expired, string(act), ctx.Err())
	}
}

// passOn answers the shadow OK and passes its connection on. Whatever happens, a
// caller of Shadow gets the connection or an error.
func (s *Server) passOn(c *listen.Call, id claim.ID, act claim.ActivationID) (err error) {
	if !s.HasShadow(act) {
		return errs.E("claims.ACTIVATE_CLAIM", errs.Internal, string(act), errors.New("nobody starts it"))
	}
	h := activationConn{err: errs.E("claims.ACTIVATE_CLAIM", errs.Internal, string(act), errors.New("its connection was lost"))}
	defer func() { s.conns.deliver(act, h) }()
	c.Conn.PutInt(command.OK)
	if err := c.Conn.EndMessage(); err != nil {
		h.err = err
		return err
	}
	if !c.Detach() {
		h.err = errs.E("claims.ACTIVATE_CLAIM", errs.Transient, c.Conn.Peer(), errors.New("the connection was closed"))
		return h.err
	}
	state, err := c.Conn.State()
	if err != nil {
		h.err = err
		_ = c.Conn.Close()
		return err
	}
	c.Log.Info("activated", "claim", id.String(), "activation", string(act))
	h = activationConn{shadow: Shadow{Conn: c.Conn.NetConn(), Stream: state, Claim: claim.Secret(id.Wire())}}
	return nil
}
