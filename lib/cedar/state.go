// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"net"

	"github.com/execpoint/execpoint/lib/errs"
)

// State is where a stream stands between two messages: all that another
// process needs to go on with it over the same connection. It is secret, for
// it holds the key and what was read ahead: it prints as who the peer is. As
// JSON it is whole, to be handed to a process of our own and to no other.
// The zero State is that of a connection over which nothing went.
type State struct{ in stateText }

// stateText is the text of a State.
type stateText struct {
	Peer        string          `json:"peer,omitempty"`
	PeerVersion string          `json:"peer_version,omitempty"`
	Packet      int             `json:"packet,omitempty"`
	Ahead       []byte          `json:"ahead,omitempty"` // read of the connection, not of the stream
	Clear       *transcriptText `json:"clear,omitempty"`
	AES         *aesText        `json:"aes,omitempty"`
}

// transcriptText is the text of a transcript.
type transcriptText struct {
	Sent          []byte `json:"sent,omitempty"`
	SentBytes     int    `json:"sent_bytes,omitempty"`
	Received      []byte `json:"received,omitempty"`
	ReceivedBytes int    `json:"received_bytes,omitempty"`
}

// aesText is the text of an aesState.
type aesText struct {
	Key      []byte           `json:"key"`
	Sent     []byte           `json:"sent"`
	Received []byte           `json:"received"`
	Out      aesDirectionText `json:"out"`
	In       aesDirectionText `json:"in"`
}

// aesDirectionText is the text of an aesDirection.
type aesDirectionText struct {
	Base    []byte `json:"base"`
	Counter uint32 `json:"counter"`
	Started bool   `json:"started"`
}

// Peer returns the peer's address, for messages to people.
func (s State) Peer() string { return s.in.Peer }

// Encrypted reports whether the stream is encrypted.
func (s State) Encrypted() bool { return s.in.AES != nil }

// Format prints who is at the other end under every verb.
func (s State) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "cedar.State(%s)", s.in.Peer) }

// LogValue logs the same.
func (s State) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

// MarshalJSON writes everything, the key too.
func (s State) MarshalJSON() ([]byte, error) { return json.Marshal(s.in) }

// UnmarshalJSON reads what MarshalJSON wrote. Resume looks at what it says.
func (s *State) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &s.in) }

// State returns where the stream stands. It fails inside a message, in either
// direction, and after an error. The Conn must not be used afterwards, except
// for NetConn: who reads or writes once more spends what the state counts on.
func (c *Conn) State() (State, error) {
	const op = "cedar.State"
	switch {
	case c.out.err != nil:
		return State{}, c.out.err
	case c.in.err != nil:
		return State{}, c.in.err
	case c.out.pending():
		return State{}, errs.E(op, errs.Conflict, c.peer, errors.New("a message is being written"))
	case c.in.open:
		return State{}, errs.E(op, errs.Conflict, c.peer, errors.New("a message has not been read to its end"))
	}
	s := stateText{Peer: c.peer, PeerVersion: c.peerVersion, Packet: c.out.packet}
	s.Ahead = append(s.Ahead, c.in.buf[c.in.raw:c.in.rawEnd]...)
	if a := c.aes; a != nil {
		s.AES = &aesText{
			Key: a.key[:], Sent: a.sent[:], Received: a.received[:],
			Out: aesDirectionText{a.out.base[:], a.out.counter, a.out.started}, In: aesDirectionText{a.in.base[:], a.in.counter, a.in.started},
		}
		return State{s}, nil
	}
	t := &c.transcript
	if t.sent == nil && t.received == nil {
		return State{s}, nil
	}
	s.Clear = &transcriptText{SentBytes: t.sentBytes, ReceivedBytes: t.receivedBytes}
	var err, err2 error
	s.Clear.Sent, err = freeze(t.sent)
	s.Clear.Received, err2 = freeze(t.received)
	if err = errors.Join(err, err2); err != nil {
		return State{}, errs.E(op, errs.Internal, c.peer, err)
	}
	return State{s}, nil
}

// Resume goes on with a stream where State left it, over the same connection,
// which it owns from then on. An error leaves nc to the caller.
func Resume(nc net.Conn, l Limits, s State) (*Conn, error) {
	const op = "cedar.Resume"
	c := NewConn(nc, l)
	in := &s.in
	if in.Peer != "" {
		c.peer = in.Peer
	}
	bad := func(err error) (*Conn, error) { return nil, errs.E(op, errs.Invalid, c.peer, err) }
	c.peerVersion = in.PeerVersion
	if in.Packet > 0 {
		c.SetPacketSize(in.Packet)
	}
	if n := len(in.Ahead); n > 0 {
		if n > headerSize+c.limits.Packet+2*c.limits.Message {
			return bad(fmt.Errorf("%d bytes were read ahead", n))
		}
		c.in.buf = append(c.in.buf, in.Ahead...)
		c.in.rawEnd = n
	}
	if t := in.Clear; t != nil {
		var err, err2 error
		c.transcript.sent, err = thaw(t.Sent)
		c.transcript.received, err2 = thaw(t.Received)
		if err = errors.Join(err, err2); err != nil || t.SentBytes < 0 || t.ReceivedBytes < 0 {
			return bad(errors.Join(errors.New("what was said in clear cannot be gone on with"), err))
		}
		c.transcript.sentBytes, c.transcript.receivedBytes = t.SentBytes, t.ReceivedBytes
	}
	if in.AES != nil {
		a, err := in.AES.resume()
		if err != nil {
			return bad(err)
		}
		c.aes = a
	}
	return c, nil
}

func (s *aesText) resume() (*aesState, error) {
	for _, x := range []struct {
		what       string
		have, want int
	}{
		{"key", len(s.Key), keySize}, {"digest", len(s.Sent), digestSize}, {"digest", len(s.Received), digestSize},
		{"IV", len(s.Out.Base), ivSize}, {"IV", len(s.In.Base), ivSize},
	} {
		if x.have != x.want {
			return nil, fmt.Errorf("the %s has %d bytes, want %d", x.what, x.have, x.want)
		}
	}
	a := &aesState{key: [keySize]byte(s.Key), sent: [digestSize]byte(s.Sent), received: [digestSize]byte(s.Received)}
	a.out = aesDirection{base: [ivSize]byte(s.Out.Base), counter: s.Out.Counter, started: s.Out.Started}
	a.in = aesDirection{base: [ivSize]byte(s.In.Base), counter: s.In.Counter, started: s.In.Started}
	return a, a.init()
}

// init makes the cipher of the key.
func (a *aesState) init() error {
	block, err := aes.NewCipher(a.key[:])
	if err != nil {
		return err
	}
	a.gcm, err = cipher.NewGCMWithNonceSize(block, ivSize)
	return err
}

// freeze returns what h has digested so far, nil for no digest.
func freeze(h hash.Hash) ([]byte, error) {
	if h == nil {
		return nil, nil
	}
	m, ok := h.(encoding.BinaryMarshaler)
	if !ok {
		return nil, errors.New("the digest cannot be taken along")
	}
	return m.MarshalBinary()
}

func thaw(b []byte) (hash.Hash, error) {
	if len(b) == 0 {
		return nil, nil
	}
	h := sha256.New()
	u, ok := h.(encoding.BinaryUnmarshaler)
	if !ok {
		return nil, errors.New("the digest cannot be taken along")
	}
	return h, u.UnmarshalBinary(b)
}
