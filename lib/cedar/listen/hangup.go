// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// ErrHungUp is why a peer is not answered that does not wait for the answer.
var ErrHungUp = errors.New("the other end hung up while it waited")

// WatchHangUp closes hungUp when the other end has closed its connection, has
// said something out of turn or has waited for longest. After
// stop the connection is as it was.
func WatchHangUp(conn *cedar.Conn, longest time.Duration) (hungUp <-chan struct{}, stop func()) {
	gone := make(chan struct{})
	return gone, onHangUp(conn, longest, func(bool) { close(gone) })
}

// UntilHangUp returns a context that ends as well when the other end hangs up, so
// that no answer is made that the peer does not wait for. Nothing may be read from conn
// from then on.
func UntilHangUp(ctx context.Context, conn *cedar.Conn, longest time.Duration) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, onHangUp(conn, longest, func(said bool) {
		if !said { // what it says now is too late for the query, and no reason to let it wait in vain
			cancel(errs.E("listen.UntilHangUp", errs.Transient, conn.Peer(), ErrHungUp))
		}
	})
}

// onHangUp calls f when one of WatchHangUp's reasons is there, or at stop, and
// tells it whether the other end has said something.
func onHangUp(conn *cedar.Conn, longest time.Duration, f func(said bool)) (stop func()) {
	gone, nc := make(chan struct{}), conn.NetConn()
	_ = nc.SetReadDeadline(time.Now().Add(longest))
	go func() {
		defer close(gone)
		n, _ := nc.Read(make([]byte, 1))
		f(n > 0)
	}()
	return func() {
		_ = nc.SetReadDeadline(time.Unix(1, 0))
		<-gone
	}
}
