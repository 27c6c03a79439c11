// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
)

// A connection that nobody waits for any more is closed, whether it came before
// or after that.
func TestActivationConnGivenUp(t *testing.T) {
	t.Parallel()
	const act claim.ActivationID = "slot1#1"
	for _, early := range []bool{true, false} {
		s := &Server{}
		s.conns.init()
		s.conns.begin(act)
		ours, theirs := net.Pipe()
		if early {
			s.conns.deliver(act, activationConn{shadow: Shadow{Conn: ours}})
			s.conns.end(act)
		} else {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.Shadow(ctx, act); !errs.Is(err, errs.Expired) {
				t.Errorf("%v", err)
			}
			s.conns.deliver(act, activationConn{shadow: Shadow{Conn: ours}})
		}
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("early %v: the connection is left open: %v", early, err)
		}
		if s.HasShadow(act) {
			t.Errorf("early %v: it is still waited for", early)
		}
	}
}
