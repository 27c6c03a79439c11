// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"net"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
)

// smallCommands are what a startd is asked besides.
func (p *Pool) smallCommands() []listen.Command {
	return listen.Answer(command.Startd, map[int]listen.Handler{
		command.XEventNotification:    p.touched,
		command.GetHistory:            p.getHistory,
		command.DelegateGSICredStartd: p.delegate,
		command.CoalesceSlots:         p.coalesceSlots,
		command.Rehome:                p.rehome,
	})
}

// touched hears of somebody at the keyboard. Only this machine's own
// condor_kbdd is believed; it keeps its connection.
func (p *Pool) touched(_ context.Context, c *listen.Call) error {
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	if !fromHere(c) {
		return errs.E("pool.X_EVENT_NOTIFICATION", errs.Denied, "", errors.New("it does not come from this machine"))
	}
	if p.cfg.Touched != nil {
		p.cfg.Touched()
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

// delegate refuses a proxy that no starter asks for any more.
func (p *Pool) delegate(_ context.Context, c *listen.Call) error {
	c.Conn.DiscardMessage()
	c.Conn.PutInt(command.NotOK)
	return c.Conn.EndMessage()
}
