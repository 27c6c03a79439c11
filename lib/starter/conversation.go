// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Door is where later startds knock: the starter's socket, which is open from when
// there is a sandbox until the starter ends.
type Door interface {
	// Accept returns the connection of a process of the starter's own user that is
	// not of its job, and the pid of that process. Whoever else knocks is turned away
	// and told in a problem, with which waiting goes on.
	Accept() (nc net.Conn, pid int, problem, err error)
	io.Closer
}

// slowStartd is how long a later startd may take to say hello, and to take what it is
// told.
const slowStartd = 10 * time.Second

// conversation is what is said between the starter and its startd, or the startds
// that come after it.
type conversation struct {
	host   Host
	out    *outbox
	orders chan protocol.Order
	over   chan struct{} // closed when no order is taken any more

	mu   sync.Mutex
	door Door
}

// first is the conversation with the startd that started the starter. When it is over
// the orders end, unless a later startd may come.
func (c *conversation) first(stdin io.Reader, stdout io.Writer) error {
	err := c.listen(stdin, stdout, nil)
	c.out.leave() // it may still read what is said
	if !c.out.waits() {
		close(c.orders)
	}
	return err
}

// listen does what a startd says until it says no more. What is no message of this
// version ends it with an error. greeted is called when the startd has said hello.
func (c *conversation) listen(r io.Reader, w io.Writer, greeted func()) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 16<<10), protocol.MaxLine)
	lines, known := protocol.Startd.Reader(), false
	for in.Scan() {
		line, err := lines.Read(in.Bytes())
		if err != nil {
			return err
		}
		switch m := line.Message.(type) {
		case protocol.StartdHello:
			if known {
				return errs.E("starter.listen", errs.Invalid, m.Kind(), errors.New("it was said before"))
			}
			known = true
			if greeted != nil {
				greeted()
			}
			c.out.attach(w, m.Heard)
			continue
		case protocol.Heard:
			c.out.noteHeard(m.Report)
			continue
		case protocol.Order:
			if known {
				if !c.order(line.ID, m) {
					return nil
				}
				continue
			}
		}
		return errs.E("starter.listen", errs.Invalid, line.Message.Kind(), errors.New("the startd has not said hello"))
	}
	return in.Err()
}

// order hands an order on, once; false when nobody takes it any more.
func (c *conversation) order(id uint64, o protocol.Order) bool {
	if c.out.take(id, o) != nil {
		return true
	}
	if _, ok := o.(protocol.Ping); ok {
		return true
	}
	select {
	case c.orders <- o:
		return true
	case <-c.over:
		return false
	}
}

// open opens the door in the starter's own directory, where a later startd may come.
func (c *conversation) open(box *sandbox.Sandbox) error {
	if !c.out.waits() {
		return nil
	}
	const op = "starter.open"
	if c.host.Listen == nil {
		return errs.E(op, errs.Unsupported, box.Dir(), errors.New("a later startd cannot reach a starter on this system"))
	}
	dir, err := box.OpenOwn()
	if err != nil {
		return err
	}
	defer dir.Close()
	door, err := c.host.Listen(dir, sandbox.DoorFile)
	if err != nil {
		return errs.E(op, errs.Broken, box.Dir(), err)
	}
	c.mu.Lock()
	c.door = door
	c.mu.Unlock()
	go c.serve(door)
	return nil
}

// serve lets later startds in, one at a time.
func (c *conversation) serve(door Door) {
	for {
		nc, pid, problem, err := door.Accept()
		switch {
		case err != nil:
			return
		case problem != nil:
			if c.host.Log != nil {
				c.host.Log.Warn("somebody was turned away from the starter's socket", "err", problem)
			}
			continue
		}
		_ = nc.SetWriteDeadline(time.Now().Add(slowStartd))
		if busy := c.out.enter(pid); busy != nil {
			if line, err := protocol.Append(nil, protocol.Line{Message: *busy}); err == nil {
				_, _ = nc.Write(line)
			}
			nc.Close()
			continue
		}
		go c.visit(nc)
	}
}

// visit is the conversation with a later startd.
func (c *conversation) visit(nc net.Conn) {
	w := patient{nc}
	defer func() {
		nc.Close()
		c.out.detach(w)
		c.out.leave()
	}()
	if err := c.out.greet(w); err != nil {
		return
	}
	_ = nc.SetReadDeadline(time.Now().Add(slowStartd))
	err := c.listen(nc, w, func() { _ = nc.SetReadDeadline(time.Time{}) })
	if err != nil && c.host.Log != nil {
		c.host.Log.Warn("the conversation with a later startd ended", "err", err)
	}
}

// patient is a connection whose reader is given slowStartd for each line: then it is
// as good as gone, and may come again.
type patient struct{ net.Conn }

// Write implements io.Writer.
func (p patient) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(slowStartd))
	n, err := p.Conn.Write(b)
	if err != nil {
		p.Conn.Close() // so that its reader ends too
	}
	return n, err
}

// farewell leaves what no startd has heard in the sandbox, for a later one. It reports
// whether something is left there.
func (c *conversation) farewell(box *sandbox.Sandbox) (bool, error) {
	if !c.out.waits() {
		return false, nil
	}
	lines := c.out.unheard(slowStartd)
	if len(lines) == 0 {
		return false, nil
	}
	if err := box.WriteUnheard(lines); err != nil {
		return false, fmt.Errorf("what no startd has heard is lost: %w", err)
	}
	return true, nil
}

// close ends what is still going on.
func (c *conversation) close() {
	close(c.over)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.door != nil {
		c.door.Close()
	}
}
