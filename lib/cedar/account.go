// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

// An Account grants a Conn the memory for what arrives and is not read yet. The
// first 8 KiB of a Conn are free: who has many of them bounds their number.
type Account interface {
	// Take asks for n bytes more. An error ends reading from the stream.
	Take(n int) error
	// Give returns n bytes.
	Give(n int)
}

// A Yielder is called when the stream waits for its peer, so that others may work
// meanwhile.
type Yielder interface {
	Idle() // before bytes of the peer are awaited
	Busy() // once they are there; it may take its time
}

// SetYielder has y called from now on, none if it is nil. No goroutine may read
// meanwhile.
func (c *Conn) SetYielder(y Yielder) { c.yielder = y }

// SetAccount has a grant the memory of the stream from now on; nil lets the
// limits alone decide. The account before it gets back what it had granted.
// No goroutine may read meanwhile.
func (c *Conn) SetAccount(a Account) {
	c.settle(0)
	c.account = a
	if a != nil && len(c.in.buf) > keepRead {
		_ = c.settle(len(c.in.buf)) // it is there already; what it grows by is granted or not
	}
}

// settle has the account grant as much as a read buffer of n bytes takes.
func (c *Conn) settle(n int) error {
	if n <= keepRead {
		n = 0
	}
	switch {
	case c.account == nil || n == c.granted:
		return nil
	case n < c.granted:
		c.account.Give(c.granted - n)
	default:
		if err := c.account.Take(n - c.granted); err != nil {
			return err
		}
	}
	c.granted = n
	return nil
}

// dropInput gives a large read buffer back.
func (c *Conn) dropInput() {
	c.in.buf = nil
	_ = c.settle(0)
}
