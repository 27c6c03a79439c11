// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"errors"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
)

// SharedPortSelf is the id of the shared port daemon itself.
const SharedPortSelf = "self"

// maxSharedPortID bounds an id; the name of a unix socket has little more.
const maxSharedPortID = 100

// maxExtraArgs bounds what newer clients may add to a request.
const maxExtraArgs = 64

// SharedPortRequest is what a client tells a shared port.
type SharedPortRequest struct {
	ID       string        // of the daemon it wants
	Client   string        // its name, for logs
	Deadline time.Duration // how long it waits, less than 0 without end
}

// ValidSharedPortID reports whether id may name an endpoint: letters, digits
// and . _ -, and not the name of a folder.
func ValidSharedPortID(id string) bool {
	if id == "" || id == "." || id == ".." || len(id) > maxSharedPortID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// ConnectSharedPort asks the shared port at the other end for an endpoint.
// There is no answer; what follows reaches the endpoint, or the connection
// closes. It must be the first on a connection.
func (c *Conn) ConnectSharedPort(r SharedPortRequest) error {
	if !ValidSharedPortID(r.ID) {
		return c.malformed("ConnectSharedPort", fmt.Sprintf("id %q has other characters than letters, digits and . _ -", clip(r.ID)))
	}
	seconds := int64(-1)
	if r.Deadline >= 0 {
		seconds = int64((r.Deadline + time.Second - 1) / time.Second)
	}
	c.PutInt(command.SharedPortConnect)
	c.PutString(r.ID)
	c.PutString(r.Client)
	c.PutInt(seconds)
	c.PutInt(0)
	if err := c.EndMessage(); err != nil {
		return err
	}
	if r.ID != SharedPortSelf {
		c.ResetDigests()
	}
	return nil
}

// SharedPortRequest reads the rest of a request, after its command was read.
func (c *Conn) SharedPortRequest() (SharedPortRequest, error) {
	var r SharedPortRequest
	var err error
	if r.ID, err = c.String(); err != nil {
		return r, err
	}
	if !ValidSharedPortID(r.ID) {
		return r, c.malformed("SharedPortRequest", "the id has other characters than letters, digits and . _ -")
	}
	if r.Client, err = c.String(); err != nil {
		return r, err
	}
	seconds, err := c.IntIn(-1<<31, 1<<31)
	if err != nil {
		return r, err
	}
	r.Deadline = max(-time.Second, time.Duration(seconds)*time.Second)
	extra, err := c.IntIn(0, maxExtraArgs)
	if err != nil {
		return r, err
	}
	for range extra {
		if _, err := c.text("SharedPortRequest"); err != nil {
			return r, err
		}
	}
	return r, c.EndOfMessage()
}

// PassSocket announces that a socket follows on the connection of an
// endpoint.
func (c *Conn) PassSocket() error {
	c.PutInt(command.SharedPortPassSock)
	return c.EndMessage()
}

// SocketFollows reads that announcement. Nothing is read beyond it, so that
// the socket can be received from NetConn.
func (c *Conn) SocketFollows() error {
	if len(c.in.buf) == 0 {
		c.in.buf = make([]byte, headerSize+8)
	}
	number, err := c.Int()
	if err != nil {
		return err
	}
	if number != command.SharedPortPassSock {
		return c.malformed("SocketFollows", fmt.Sprintf("command is %d, want %d", number, command.SharedPortPassSock))
	}
	if err := c.EndOfMessage(); err != nil {
		return err
	}
	if c.Buffered() > 0 {
		return c.breakOff(c.fail("SocketFollows", errors.New("too much was read ahead")))
	}
	return nil
}
