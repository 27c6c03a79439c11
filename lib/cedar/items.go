// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// nullMark stands in place of a string that is not there.
const nullMark = 0xAD

// PutInt puts an integer, boolean or time.
func (c *Conn) PutInt(i int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(i))
	c.put(b[:])
}

// PutBool puts a boolean.
func (c *Conn) PutBool(b bool) {
	if b {
		c.PutInt(1)
	} else {
		c.PutInt(0)
	}
}

// PutByte puts a single character.
func (c *Conn) PutByte(b byte) { c.put([]byte{b}) }

// floatScale is what mantissas are multiplied with.
const floatScale = 2147483647

// PutFloat puts a real number. 31 bits of its mantissa arrive.
func (c *Conn) PutFloat(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		c.refuse("PutFloat", "the number is not finite")
		return
	}
	frac, exp := math.Frexp(f)
	c.PutInt(int64(frac * floatScale))
	c.PutInt(int64(exp))
}

// PutString puts a string. A NUL cannot be in it.
func (c *Conn) PutString(s string) {
	if strings.IndexByte(s, 0) >= 0 {
		c.refuse("PutString", "a string holds a NUL")
		return
	}
	if c.counted() {
		c.PutInt(int64(len(s)) + 1)
	}
	c.putString(s)
	c.put([]byte{0})
}

// PutNull puts the mark for a string that is not there. It is one byte, behind
// which no NUL stands.
func (c *Conn) PutNull() {
	if c.counted() {
		c.PutInt(1)
	}
	c.put([]byte{nullMark})
}

// PutSecret puts a secret. On a stream without encryption it goes out in
// clear, as HTCondor does it.
func (c *Conn) PutSecret(s Secret) { c.PutString(s.Reveal()) }

// PutBytes puts bytes as they are, without their number.
func (c *Conn) PutBytes(b []byte) { c.put(b) }

// refuse makes the message fail that is being written.
func (c *Conn) refuse(op, why string) {
	if c.out.err == nil {
		c.out.err = errs.E("cedar."+op, errs.Invalid, c.peer, errors.New(why))
	}
}

// Int reads an integer.
func (c *Conn) Int() (int64, error) {
	b, err := c.take("Int", 8)
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

// IntIn reads an integer that must lie between low and high.
func (c *Conn) IntIn(low, high int64) (int64, error) {
	i, err := c.Int()
	if err == nil && (i < low || i > high) {
		return 0, c.malformed("Int", fmt.Sprintf("number is %d, want %d to %d", i, low, high))
	}
	return i, err
}

// Byte reads a single character.
func (c *Conn) Byte() (byte, error) {
	b, err := c.take("Byte", 1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// Float reads a real number.
func (c *Conn) Float() (float64, error) {
	frac, err := c.IntIn(-floatScale-1, floatScale)
	if err != nil {
		return 0, err
	}
	exp, err := c.IntIn(math.MinInt32, math.MaxInt32)
	if err != nil {
		return 0, err
	}
	return math.Ldexp(float64(frac)/floatScale, int(exp)), nil
}

// text reads a string and returns its bytes without the NUL, valid until the
// next read. One that is not there is the mark alone; what follows the mark in a
// string with a length counts for nothing, as HTCondor has it.
func (c *Conn) text(op string) ([]byte, error) {
	if c.counted() {
		n, err := c.Int()
		switch {
		case err != nil:
			return nil, err
		case n < 1:
			return nil, c.malformed(op, "length of a string is less than 1")
		case n > int64(c.limits.String)+1:
			return nil, c.beyond(op, fmt.Sprintf("string of more than %d bytes", c.limits.String))
		}
		b, err := c.take(op, int(n))
		if err != nil {
			return nil, err
		}
		if b[0] == nullMark {
			return b[:1], nil
		}
		end := bytes.IndexByte(b, 0)
		if end < 0 {
			return nil, c.malformed(op, "a string does not end with NUL")
		}
		return b[:end], nil
	}
	if err := c.begin(op); err != nil {
		return nil, err
	}
	in := &c.in
	rest := in.buf[in.pos:in.end]
	if len(rest) > 0 && rest[0] == nullMark {
		in.pos++
		return rest[:1], nil
	}
	end := bytes.IndexByte(rest[:min(len(rest), c.limits.String+1)], 0)
	switch {
	case end >= 0:
	case len(rest) > c.limits.String:
		return nil, c.beyond(op, fmt.Sprintf("string of more than %d bytes", c.limits.String))
	default:
		return nil, c.malformed(op, "the message ends within a string")
	}
	in.pos += end + 1
	return rest[:end], nil
}

// String reads a string; one that is not there reads as empty.
func (c *Conn) String() (string, error) {
	s, _, err := c.NullableString()
	return s, err
}

// NullableString reads a string that may be absent.
func (c *Conn) NullableString() (s string, there bool, err error) {
	b, err := c.text("String")
	if err != nil || len(b) > 0 && b[0] == nullMark {
		return "", false, err
	}
	return string(b), true, nil
}

// Secret reads a secret.
func (c *Conn) Secret() (Secret, error) {
	s, err := c.String()
	return Secret(s), err
}

// Bytes reads n bytes that have no form. The caller owns them.
func (c *Conn) Bytes(n int) ([]byte, error) {
	b, err := c.take("Bytes", n)
	return bytes.Clone(b), err
}

// Rest reads all that is left of the message in hand, or all of the next one
// if none is. The caller owns the bytes; EndOfMessage must follow.
func (c *Conn) Rest() ([]byte, error) {
	if err := c.begin("Rest"); err != nil {
		return nil, err
	}
	b := bytes.Clone(c.in.buf[c.in.pos:c.in.end])
	c.in.pos = c.in.end
	return b, nil
}
