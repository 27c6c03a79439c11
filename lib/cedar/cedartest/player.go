// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
)

// Player plays one end of a recorded connection against code under test that
// holds the other end.
//
// Exact plays the recorded packets as they are, and demands the recorded
// packets: the code under test must have been given the recorded randomness
// (ECDH key, base IV through Conn.SetRand(conn.Rand(role)), ra or rb) and
// cedar.ClassicPacket as its packet size.
//
// Otherwise the player is a live peer that encrypts and decrypts itself with
// the recorded session key, sends the recorded plain texts and looks at those
// that arrive, so that the clear part of a conversation may differ.
type Player struct {
	Conn  *Connection
	Role  Role // the end that the player plays
	Exact bool

	// Key replaces the recorded session key, if it is not nil. It is asked
	// when encryption goes on.
	Key func() []byte

	// Check looks at a message of the code under test, live only. Nil demands
	// the recorded plain text.
	Check func(m *Message, got []byte) error

	// Edit returns what to send in place of a recorded plain text, live only.
	// Nil sends what was recorded.
	Edit func(m *Message) []byte

	// Skip drops the messages for which it returns true.
	Skip func(m *Message) bool
}

// Rand yields the base IV that r used, as the source of randomness for a
// Conn that takes its place.
func (c *Connection) Rand(r Role) io.Reader {
	if iv := c.BaseIV(r); iv != nil {
		return bytes.NewReader(iv)
	}
	return bytes.NewReader(make([]byte, directionIVSize))
}

// Start plays in the background and returns the end for the code under test.
// When the test ends both ends are closed and a deviation from the record
// fails the test; wait does so at once.
func (p *Player) Start(t testing.TB) (nc net.Conn, wait func()) {
	t.Helper()
	client, server := Pipe()
	mine, yours := client, server
	if p.Role == Server {
		mine, yours = server, client
	}
	done := make(chan error, 1)
	go func() {
		done <- p.Play(mine)
		_ = mine.Close()
	}()
	wait = sync.OnceFunc(func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Errorf("%s, playing the %s: %v", p.Conn, p.Role, err)
		}
	})
	t.Cleanup(func() {
		_ = yours.Close()
		wait()
	})
	return yours, wait
}

// Play plays the recorded connection over nc and returns the first deviation.
func (p *Player) Play(nc net.Conn) error {
	c := cedar.NewConn(nc, cedar.Limits{Timeout: 10 * time.Second})
	c.SetPacketSize(cedar.ClassicPacket)
	c.SetRand(p.Conn.Rand(p.Role))
	for i, m := range p.Conn.Messages {
		if p.Skip != nil && p.Skip(m) {
			continue
		}
		if m.Event != "" {
			done, err := p.event(c, nc, m.Event)
			if err != nil {
				return fmt.Errorf("message %d, %s: %w", i, m.Event, err)
			}
			if done {
				return nil
			}
			continue
		}
		var err error
		switch {
		case m.From == p.Role && p.Exact:
			err = sendExact(nc, m)
		case m.From == p.Role:
			err = p.send(c, m)
		case p.Exact:
			err = receiveExact(nc, m)
		default:
			err = p.receive(c, m)
		}
		if err != nil {
			return fmt.Errorf("message %d from the %s, %q: %w", i, m.From, m.Note, err)
		}
	}
	return nil
}

func (p *Player) event(c *cedar.Conn, nc net.Conn, event string) (done bool, err error) {
	switch event {
	case EncryptionOn:
		if p.Exact {
			return false, nil
		}
		key := []byte(p.Conn.Session.Key)
		if p.Key != nil {
			key = p.Key()
		}
		return false, c.EnableAES(key)
	case DigestsRestart:
		c.ResetDigests()
	case ClientClosed, ServerClosed:
		closer := Client
		if event == ServerClosed {
			closer = Server
		}
		if closer == p.Role {
			return true, nc.Close()
		}
		if c.Buffered() > 0 {
			return true, fmt.Errorf("%d bytes more than recorded", c.Buffered())
		}
		_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := nc.Read(make([]byte, 1))
		if n > 0 {
			return true, errors.New("there is more than recorded")
		}
		if !errors.Is(err, io.EOF) {
			return true, fmt.Errorf("want the end of the connection: %w", err)
		}
		return true, nil
	default:
		return false, errors.New("unknown event")
	}
	return false, nil
}

func sendExact(nc net.Conn, m *Message) error {
	for _, b := range m.Packets {
		if _, err := nc.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func receiveExact(nc net.Conn, m *Message) error {
	_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
	for i, want := range m.Packets {
		head := make([]byte, 5)
		if _, err := io.ReadFull(nc, head); err != nil {
			return fmt.Errorf("packet %d: %w", i, err)
		}
		size := binary.BigEndian.Uint32(head[1:])
		if size > cedar.MaxPacket {
			return fmt.Errorf("packet %d of %d bytes", i, size)
		}
		got := append(head, make([]byte, size)...)
		if _, err := io.ReadFull(nc, got[5:]); err != nil {
			return fmt.Errorf("packet %d: %w", i, err)
		}
		if err := Diff(want, got); err != nil {
			return fmt.Errorf("packet %d: %w", i, err)
		}
	}
	return nil
}

func (p *Player) send(c *cedar.Conn, m *Message) error {
	b := []byte(m.Plaintext)
	if p.Edit != nil {
		b = p.Edit(m)
	}
	c.PutBytes(b)
	return c.EndMessage()
}

func (p *Player) receive(c *cedar.Conn, m *Message) error {
	got, err := c.Rest()
	if err == nil {
		err = c.EndOfMessage()
	}
	if err != nil {
		return err
	}
	if p.Check != nil {
		return p.Check(m, got)
	}
	return Diff(m.Plaintext, got)
}

// Diff returns an error that shows the first difference of two byte strings,
// nil if there is none.
func Diff(want, got []byte) error {
	if bytes.Equal(want, got) {
		return nil
	}
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	around := func(b []byte) []byte { return b[min(len(b), max(0, at-24)):min(len(b), at+40)] }
	return fmt.Errorf("differs at byte %d of %d (got %d):\nwant … %q …\ngot  … %q …", at, len(want), len(got), around(want), around(got))
}
