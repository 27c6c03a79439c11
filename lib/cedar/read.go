// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	firstRead = 4 << 10 // the smallest read buffer
	keepRead  = 8 << 10 // a larger one is given back between messages
	maxFlag   = 10      // the largest flag of a packet header
)

// input is the reading half of a Conn. Its buffer holds the plain text of
// the message in hand and behind it what was read ahead:
//
//	buf: … [start,pos) read [pos,end) unread … [raw,rawEnd) read ahead …
type input struct {
	buf         []byte
	start       int
	pos, end    int
	raw, rawEnd int
	open        bool // a message is in hand
	fileDone    bool // a file was received, and nothing since
	keep        bool // a large buffer is kept between messages
	err         error
}

// Buffered returns how many bytes were read ahead of the message in hand.
func (c *Conn) Buffered() int { return c.in.rawEnd - c.in.raw }

// begin receives the next message if none is in hand.
func (c *Conn) begin(op string) error {
	in := &c.in
	in.fileDone = false
	if in.open {
		return nil
	}
	if in.err != nil {
		return in.err
	}
	if err := c.receive(); err != nil {
		waited := in.end == in.start && (isTimeout(err) || c.canceled() != nil)
		err = c.fail(op, err)
		if !waited { // nothing was lost by waiting, so that may be tried again
			in.err = err
		}
		return err
	}
	in.open = true
	return nil
}

// receive reads the packets of one message.
func (c *Conn) receive() error {
	in := &c.in
	in.start, in.pos, in.end = in.raw, in.raw, in.raw
	if in.raw == in.rawEnd {
		in.start, in.pos, in.end, in.raw, in.rawEnd = 0, 0, 0, 0, 0
		if len(in.buf) > keepRead && !in.keep {
			c.dropInput()
		}
	}
	if err := c.arm(c.nc.SetReadDeadline); err != nil {
		return err
	}
	for first := true; ; first = false {
		if err := c.fill(headerSize); err != nil {
			if first && errors.Is(err, io.ErrUnexpectedEOF) && in.raw == in.rawEnd {
				return io.EOF
			}
			return err
		}
		flag := in.buf[in.raw]
		size := int(binary.BigEndian.Uint32(in.buf[in.raw+1:]))
		switch {
		case flag > maxFlag:
			return errs.E("", errs.Invalid, "", fmt.Errorf("packet flag is %d, want 0 to %d", flag, maxFlag))
		case size == 0:
			return errs.E("", errs.Invalid, "", errors.New("packet is empty"))
		case size > c.limits.Packet:
			return errs.E("", errs.Exhausted, "", fmt.Errorf("packet of %d bytes, the limit is %d", size, c.limits.Packet))
		case in.end-in.start+size > c.mostMessage()+2*ivSize:
			return errs.E("", errs.Exhausted, "", fmt.Errorf("message of more than %d bytes", c.mostMessage()))
		}
		if err := c.fill(headerSize + size); err != nil {
			return err
		}
		plain, err := c.open(in.buf[in.raw : in.raw+headerSize+size])
		if err != nil {
			return err
		}
		if in.end == in.start { // the first bytes stay where they are
			in.start = in.raw + headerSize
			if c.aes != nil && len(plain) > 0 {
				in.start = in.raw + headerSize + size - tagSize - len(plain)
			}
			in.pos, in.end = in.start, in.start+len(plain)
		} else {
			in.end += copy(in.buf[in.end:], plain)
		}
		in.raw += headerSize + size
		if flag != 0 {
			return nil
		}
	}
}

// open returns the plain text of a packet, which it decrypts in place.
func (c *Conn) open(packet []byte) ([]byte, error) {
	header, payload := packet[:headerSize], packet[headerSize:]
	if c.aes == nil {
		c.transcript.addReceived(packet)
		return payload, nil
	}
	d := &c.aes.in
	if !d.started {
		if len(payload) < ivSize {
			return nil, errs.E("", errs.Invalid, "", errors.New("the first encrypted packet has no IV"))
		}
		d.base = [ivSize]byte(payload)
		payload = payload[ivSize:]
	}
	if len(payload) < tagSize {
		return nil, errs.E("", errs.Invalid, "", errors.New("an encrypted packet has no tag"))
	}
	nonce, aad, err := d.next(header, &c.aes.received, &c.aes.sent)
	if err != nil {
		return nil, err
	}
	plain, err := c.aes.gcm.Open(payload[:0], nonce, payload, aad)
	if err != nil {
		return nil, errs.E("", errs.Denied, "", errors.New("a packet does not authenticate: it was changed, or the keys differ"))
	}
	if !c.proven {
		if err := c.prove(); err != nil {
			return nil, err
		}
	}
	return plain, nil
}

// fill reads until n bytes are there behind raw. The buffer grows with what
// arrives.
func (c *Conn) fill(n int) error {
	in := &c.in
	for in.rawEnd-in.raw < n {
		if in.rawEnd == len(in.buf) {
			if err := c.makeRoom(n); err != nil {
				return err
			}
		}
		m, err := c.await(in.buf[in.rawEnd:])
		in.rawEnd += m
		if err != nil && in.rawEnd-in.raw < n {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// await reads what the peer has sent, and waits until there is something.
func (c *Conn) await(b []byte) (int, error) {
	if c.yielder == nil {
		return c.nc.Read(b)
	}
	c.yielder.Idle()
	defer c.yielder.Busy()
	return c.nc.Read(b)
}

// makeRoom makes room behind rawEnd for a part of n bytes: by closing the gaps
// if that frees half of the buffer, else by a buffer twice as large. So bytes
// are moved a bounded number of times, and a buffer is at most four times what
// has arrived. It is also not much larger than the largest message and a part;
// the quarter more keeps what is moved bounded there too.
func (c *Conn) makeRoom(n int) error {
	in := &c.in
	message, ahead := in.buf[in.start:in.end], in.buf[in.raw:in.rawEnd]
	used := len(message) + len(ahead)
	to := in.buf
	if used > len(in.buf)/2 || len(in.buf) == 0 {
		size := max(firstRead, 2*len(in.buf))
		if most := c.limits.Message + c.limits.Message/4 + n; size > most {
			size = max(most, used+firstRead)
		}
		if size > len(in.buf) {
			if err := c.settle(size); err != nil {
				return err
			}
			to = make([]byte, size)
		}
	}
	copy(to, message)
	copy(to[len(message):], ahead)
	in.pos -= in.start
	in.start, in.end = 0, len(message)
	in.raw, in.rawEnd = len(message), used
	in.buf = to
	return nil
}

// EndOfMessage ends reading the message in hand. It fails if items are left,
// which are dropped. Without a message in hand there is nothing to do: a
// message without items does not exist on the wire.
func (c *Conn) EndOfMessage() error {
	in := &c.in
	if in.fileDone {
		in.fileDone = false
		return nil
	}
	if !in.open {
		return in.err
	}
	left := in.end - in.pos
	c.DiscardMessage()
	if left > 0 {
		return c.malformed("EndOfMessage", fmt.Sprintf("%d bytes are left in the message", left))
	}
	return nil
}

// DiscardMessage drops what is left of the message in hand.
func (c *Conn) DiscardMessage() {
	in := &c.in
	in.open = false
	in.pos, in.end = in.start, in.start
	if in.raw == in.rawEnd && len(in.buf) > keepRead && !in.keep {
		*in = input{err: in.err}
		c.dropInput()
	}
}

// Await waits until a message is in hand: all of its packets have arrived and,
// on an encrypted stream, were verified. Nothing of it is read.
func (c *Conn) Await() error { return c.begin("Await") }

// More reports whether items are left in the message in hand. It does not
// wait for the next one.
func (c *Conn) More() bool { return c.in.open && c.in.pos < c.in.end }

// InMessage reports whether a message is in hand, read to its end or not.
func (c *Conn) InMessage() bool { return c.in.open }

// take returns the next n bytes of the message, valid until the next read.
func (c *Conn) take(op string, n int) ([]byte, error) {
	if err := c.begin(op); err != nil {
		return nil, err
	}
	in := &c.in
	if n < 0 || n > in.end-in.pos {
		return nil, c.malformed(op, "the message ends too early")
	}
	b := in.buf[in.pos : in.pos+n]
	in.pos += n
	return b, nil
}
