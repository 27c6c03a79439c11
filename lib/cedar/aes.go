// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	headerSize = 5  // flag, length
	ivSize     = 16 // base IV, nonce
	tagSize    = 16
	keySize    = 32
	digestSize = sha256.Size

	// transcriptMax is how many clear bytes of one direction enter its digest.
	transcriptMax = 1 << 20
)

// transcript digests what went over the connection in clear.
type transcript struct {
	sent, received           hash.Hash // nil if there was nothing
	sentBytes, receivedBytes int
}

func (t *transcript) addSent(b []byte) {
	if t.sentBytes >= transcriptMax {
		return
	}
	if t.sent == nil {
		t.sent = sha256.New()
	}
	t.sent.Write(b)
	t.sentBytes += len(b)
}

func (t *transcript) addReceived(b []byte) {
	if t.receivedBytes >= transcriptMax {
		return
	}
	if t.received == nil {
		t.received = sha256.New()
	}
	t.received.Write(b)
	t.receivedBytes += len(b)
}

// ResetDigests forgets what went over the connection in clear so far: after
// SHARED_PORT_CONNECT and CCB_REVERSE_CONNECT, which the process at the other
// end never saw.
func (c *Conn) ResetDigests() { c.transcript = transcript{} }

// aesState is AES-256-GCM in both directions.
type aesState struct {
	key            [keySize]byte
	gcm            cipher.AEAD
	sent, received [digestSize]byte // of the clear transcript; zeros if it is empty
	out, in        aesDirection
}

// aesDirection counts the packets of one direction.
type aesDirection struct {
	base    [ivSize]byte
	counter uint32
	started bool
	nonce   [ivSize]byte
	aad     [2*digestSize + headerSize]byte
}

// EnableAES encrypts both directions from the next packet on, with a key of
// 32 bytes. It cannot be switched off again. It fails if a message is being
// written or has not been read to its end.
func (c *Conn) EnableAES(key []byte) error {
	switch {
	case len(key) != keySize:
		return errs.E("cedar.EnableAES", errs.Invalid, c.peer, fmt.Errorf("the key has %d bytes, want %d", len(key), keySize))
	case c.aes != nil:
		return errs.E("cedar.EnableAES", errs.Conflict, c.peer, errors.New("the stream is encrypted already"))
	case c.out.pending():
		return errs.E("cedar.EnableAES", errs.Conflict, c.peer, errors.New("a message is being written"))
	case c.in.open:
		return errs.E("cedar.EnableAES", errs.Conflict, c.peer, errors.New("a message has not been read to its end"))
	}
	s := &aesState{key: [keySize]byte(key)}
	if err := s.init(); err != nil {
		return errs.E("cedar.EnableAES", errs.Internal, c.peer, err)
	}
	if _, err := io.ReadFull(c.random, s.out.base[:]); err != nil {
		return errs.E("cedar.EnableAES", errs.Internal, c.peer, err)
	}
	if c.transcript.sent != nil {
		c.transcript.sent.Sum(s.sent[:0])
	}
	if c.transcript.received != nil {
		c.transcript.received.Sum(s.received[:0])
	}
	c.transcript = transcript{}
	c.aes = s
	c.proven = false
	return nil
}

// Proven reports whether the peer has shown that it has the key of the stream:
// one of its encrypted packets was read and verified.
func (c *Conn) Proven() bool { return c.proven }

// WhenProven has f called by the call that reads the first encrypted packet of
// the peer, which has then shown that it has the key. An error of f fails that
// call. It is to be called before anything encrypted was read.
func (c *Conn) WhenProven(f func() error) { c.whenProven = f }

// prove notes that a packet was verified.
func (c *Conn) prove() error {
	f := c.whenProven
	c.proven, c.whenProven = true, nil
	if f == nil {
		return nil
	}
	return f()
}

// Encrypted reports whether the stream is encrypted.
func (c *Conn) Encrypted() bool { return c.aes != nil }

// SendsEncrypted is Encrypted, and true also for a message that is written for
// datagrams which are encrypted.
func (c *Conn) SendsEncrypted() bool { return c.aes != nil || c.form == Counted }

// next returns nonce and additional data of the next packet of a direction:
// mine and theirs are the digests as its sender sees them.
func (d *aesDirection) next(header []byte, mine, theirs *[digestSize]byte) (nonce, aad []byte, err error) {
	if d.counter == 1<<32-1 {
		return nil, nil, errs.E("", errs.Exhausted, "", errors.New("the packet counter of the key is used up"))
	}
	d.nonce = d.base
	binary.BigEndian.PutUint32(d.nonce[:4], binary.BigEndian.Uint32(d.base[:4])+d.counter)
	a := append(d.aad[:0], header...)
	if !d.started {
		a = append(d.aad[:0], mine[:]...)
		a = append(a, theirs[:]...)
		a = append(a, header...)
		d.started = true
	}
	d.counter++
	return d.nonce[:], a, nil
}
