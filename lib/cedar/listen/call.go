// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"log/slog"
	"net/netip"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
)

// Call is one command that arrived and was allowed.
type Call struct {
	// Conn is at the payload of the command. Its timeout is Limits.Message.
	Conn *cedar.Conn
	// Command is the row of the table that was asked for.
	Command Command
	// Request says who asks and under which session.
	Request *security.Request
	// Addr is where the connection comes from; not valid for one that is no
	// internet connection.
	Addr netip.AddrPort
	// Log names the peer and the command in every line.
	Log *slog.Logger

	detach func() bool
	gone   bool
}

// Ad reads a payload that is one ad of at most that many bytes, to its end.
func (c *Call) Ad(most int) (*classad.Ad, error) {
	c.Conn.LimitMessage(most)
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err == nil {
		err = c.Conn.EndOfMessage()
	}
	return ad, err
}

// Shown is what a peer calls something, cut to what a line of the log can hold.
func Shown(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	return name[:most] + "…"
}

// Detach takes the connection from the server: it is the handler's from then
// on, to be used after the handler returned and to be closed. It no longer
// counts against the limits. It returns false when the server has closed the
// connection already.
func (c *Call) Detach() bool {
	if c.gone {
		return true
	}
	c.gone = c.detach()
	return c.gone
}
