// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	defaultPacket = 64 << 10
	keepWrite     = 16 << 10 // a larger write buffer is given back between messages
)

// ClassicPacket is the clear size of the packets that HTCondor sends. In
// an encrypted message each one that it cuts off is larger than the one before
// by a tag, and so it is here.
const ClassicPacket = 4096 - headerSize

// output is the writing half of a Conn. Its buffer holds the packet that is
// being filled: room for header and IV, then plain text.
type output struct {
	buf      []byte
	head     int // where the plain text begins
	packet   int // plain bytes of a full packet
	sent     int // plain bytes of the message that went out already
	cut      int // packets of the message that went out already
	fileDone bool
	keep     bool
	err      error
}

// pending reports whether a message has been begun.
func (o *output) pending() bool { return len(o.buf) > o.head || o.sent > 0 }

// SetPacketSize changes how many clear bytes go into one packet. ClassicPacket
// cuts messages as HTCondor does.
func (c *Conn) SetPacketSize(n int) { c.out.packet = max(1, min(n, MaxPacket-ivSize-tagSize)) }

// free is how many more bytes the packet takes.
func (c *Conn) free() int {
	o := &c.out
	size := o.packet
	if size == ClassicPacket && c.aes != nil {
		size += o.cut * tagSize
	}
	return max(0, size-(len(o.buf)-o.head))
}

// room makes the buffer ready for n more bytes.
func (c *Conn) room(n int) {
	o := &c.out
	o.fileDone = false
	if len(o.buf) == 0 {
		o.head = headerSize
		if c.aes != nil && !c.aes.out.started {
			o.head += ivSize
		}
		o.buf = slices.Grow(o.buf, max(512, min(n, o.packet))+o.head+tagSize)[:o.head]
	}
}

// put appends the bytes of an item and sends packets that are full. A packet
// that is exactly full waits, for it may be the last one.
func (c *Conn) put(b []byte) {
	c.room(len(b))
	o := &c.out
	for o.err == nil {
		n := min(len(b), c.free())
		o.buf = append(o.buf, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return
		}
		c.send("Put", 0)
		c.room(len(b))
	}
}

func (c *Conn) putString(s string) {
	c.room(len(s))
	o := &c.out
	for o.err == nil {
		n := min(len(s), c.free())
		o.buf = append(o.buf, s[:n]...)
		if s = s[n:]; len(s) == 0 {
			return
		}
		c.send("Put", 0)
		c.room(len(s))
	}
}

// send sends the packet in the buffer with a flag.
func (c *Conn) send(op string, flag byte) {
	o := &c.out
	if o.err != nil {
		return
	}
	if o.sent == 0 {
		if err := c.arm(c.nc.SetWriteDeadline); err != nil {
			o.err = c.fail(op, err)
			return
		}
	}
	plain := len(o.buf) - o.head
	o.sent += plain
	o.cut++
	header := o.buf[:headerSize]
	header[0] = flag
	if c.aes == nil {
		binary.BigEndian.PutUint32(header[1:], uint32(plain))
		c.transcript.addSent(o.buf)
	} else {
		d := &c.aes.out
		if !d.started {
			copy(o.buf[headerSize:], d.base[:])
		}
		binary.BigEndian.PutUint32(header[1:], uint32(o.head-headerSize+plain+tagSize))
		nonce, aad, err := d.next(header, &c.aes.sent, &c.aes.received)
		if err != nil {
			o.err = c.fail(op, err)
			return
		}
		o.buf = slices.Grow(o.buf, tagSize)
		o.buf = c.aes.gcm.Seal(o.buf[:o.head], nonce, o.buf[o.head:], aad)
	}
	if _, err := c.nc.Write(o.buf); err != nil {
		o.err = c.fail(op, err)
	}
	o.buf = o.buf[:0]
}

// EndMessage sends what was put since the last end as one message, and
// returns the first error since then. A message without items does not exist
// and is an error, except right after PutFile, which ends its own messages.
func (c *Conn) EndMessage() error {
	o := &c.out
	if o.fileDone {
		o.fileDone = false
		return o.err
	}
	if o.err == nil && len(o.buf) <= o.head {
		o.reset()
		return errs.E("cedar.EndMessage", errs.Invalid, c.peer, errors.New("the message is empty"))
	}
	c.send("EndMessage", 1)
	o.reset()
	return o.err
}

// reset makes ready for the next message. Errors of the connection stay.
func (o *output) reset() {
	o.sent, o.cut = 0, 0
	o.buf = o.buf[:0]
	o.head = 0
	if cap(o.buf) > keepWrite && !o.keep {
		o.buf = nil
	}
}
