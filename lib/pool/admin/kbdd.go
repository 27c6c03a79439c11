// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"net"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
)

// touched hears of keys that were pressed. Only this machine's own
// condor_kbdd is believed; it keeps its connection.
func (s *Server) touched(_ context.Context, c *listen.Call) error {
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	if !fromHere(c) {
		return errs.E("admin.X_EVENT_NOTIFICATION", errs.Denied, "", errors.New("it does not come from this machine"))
	}
	if s.cfg.Touched != nil {
		s.cfg.Touched()
	}
	return nil
}

// fromHere reports whether a connection begins and ends on this machine.
func fromHere(c *listen.Call) bool {
	if !c.Addr.IsValid() {
		return false
	}
	from := c.Addr.Addr().Unmap()
	if from.IsLoopback() {
		return true
	}
	local, ok := c.Conn.NetConn().LocalAddr().(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap() == from
}
