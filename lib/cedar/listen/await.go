// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/errs"
)

// await opens sockets for one reversed connection, served until done.
func (r *Reverser) await(ctx context.Context) (back cedar.Sinful, done func(), err error) {
	if r.Listen == nil {
		return back, nil, errs.E("listen.Dial", errs.Unsupported, "", errors.New("we have no address yet to which a daemon behind a broker could connect"))
	}
	table, err := NewTable(r.Command())
	if err != nil {
		return back, nil, err
	}
	listeners, back, err := r.Listen(ctx)
	if err != nil {
		return back, nil, err
	}
	server := &Server{
		Table: table, Security: bare{}, Log: slog.New(slog.DiscardHandler), Wire: narrow(cedar.Limits{}),
		Limits: Limits{Conns: maxCallers, PerPeer: maxCallers, Handshakes: maxCallers, Handshake: 20 * time.Second, Message: 20 * time.Second},
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() { _ = server.Serve(ctx, l) }) // of no more use then; the caller that waits sees that no connection comes
	}
	return back, func() {
		cancel()
		wg.Wait()
		server.Wait(ctx)
	}, nil
}

// maxCallers bounds the connections to a socket where one is awaited.
const maxCallers = 64

// bare lets in every peer that begins a reversed connection, and no other:
// who it is shows the id, and what comes after it.
type bare struct{}

// Narrow implements Security: the streams of such a server are narrow already.
func (bare) Narrow(*cedar.Conn) (restore func()) { return func() {} }

// Handshake implements Security.
func (bare) Handshake(_ context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error) {
	n, err := conn.Int()
	if err != nil {
		return nil, err
	}
	if n != command.CCBReverseConnect {
		return nil, errs.E("listen.Reverser", errs.Denied, conn.Peer(), fmt.Errorf("command %d where a reversed connection is awaited", n))
	}
	return &security.Request{Command: command.CCBReverseConnect, Bare: true, Addr: from}, nil
}

// Next implements Security: there is never a second command.
func (bare) Next(context.Context, *cedar.Conn, *security.Request) (*security.Request, error) {
	return nil, errs.E("listen.Reverser", errs.Denied, "", errors.New("nothing follows a reversed connection"))
}
