// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// helloWithin is how long a starter may take to begin and to say hello. A machine that
// swaps may keep it from that for a while.
const helloWithin = time.Minute

// hear passes on what the starter says until it says no more. What is no message of
// this version ends it with an error.
func (h *Handle) hear(r io.Reader) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4096), protocol.MaxLine)
	known := h.leftBehind != nil // it said hello to the startd before
	lines := protocol.Starter.Reader()
	for in.Scan() {
		line, err := lines.Read(in.Bytes())
		if err != nil {
			kind := errs.Broken
			if errs.Is(err, errs.Unsupported) {
				kind = errs.Unsupported
			}
			return errs.E("launch.hear", kind, "", err)
		}
		h.heardOf()
		switch m := line.Message.(type) {
		case protocol.Busy:
			return errs.E("launch.hear", errs.Conflict, "", busy(m))
		case protocol.StarterHello:
			if known {
				return errs.E("launch.hear", errs.Broken, "", errors.New("the starter said hello twice"))
			}
			known = true
			h.greet(&m, nil)
		case protocol.Taken:
			h.orders.open.answered(m.Order)
			h.slotTold(m.Order)
		case protocol.Report:
			if !known {
				return errs.E("launch.hear", errs.Broken, m.Kind(), errors.New("the starter has not said hello"))
			}
			h.pass(protocol.Told{ID: line.ID, At: line.At, What: m})
		}
	}
	if err := in.Err(); err != nil {
		return errs.E("launch.hear", errs.Broken, "", err)
	}
	return nil
}

func busy(b protocol.Busy) error {
	if b.PID == 0 {
		return errors.New("the startd that began the starter is still there")
	}
	return fmt.Errorf("another startd is connected to the starter, process %d", b.PID)
}

// pass passes a report on, unless it was before.
func (h *Handle) pass(t protocol.Told) {
	h.mu.Lock()
	again := t.ID <= h.heard
	if !again {
		h.heard = t.ID
		if _, ok := t.What.(protocol.Ended); ok {
			h.ended = true
		}
	}
	h.mu.Unlock()
	if again {
		return
	}
	h.orders.open.unread.Add(1)
	h.reports <- t
	h.orders.open.unread.Add(-1)
	if _, ok := t.What.(protocol.Running); ok {
		h.settle()
	}
}

// greet notes the starter's hello, or why there is none. The first word counts.
func (h *Handle) greet(hello *protocol.StarterHello, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.first.there:
		return
	default:
	}
	if hello != nil {
		h.first.hello = *hello
	} else {
		h.first.none = err
	}
	close(h.first.there)
}

// awaitHello waits for the starter's hello, no longer than ctx.
func (h *Handle) awaitHello(ctx context.Context) error {
	select {
	case <-h.first.there:
	default:
		late := time.NewTimer(helloWithin)
		defer late.Stop()
		select {
		case <-h.first.there:
		case <-ctx.Done():
			return errs.E("launch.awaitHello", errs.Transient, "", ctx.Err())
		case <-late.C:
			return errs.E("launch.awaitHello", errs.Broken, "", fmt.Errorf("the starter did not say hello for %v", helloWithin))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first.none
}

// speaks reports whether the starter said hello: anything else is no starter, or one of
// another version.
func (h *Handle) speaks() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first.hello.Program != ""
}

// Heard says that a report was dealt with, and all before it. A starter that would tell
// them to a later startd forgets them.
func (h *Handle) Heard(report uint64) {
	h.mu.Lock()
	stays := h.stays
	if h.leftBehind != nil {
		h.leftBehind.dealt = max(h.leftBehind.dealt, report)
	}
	h.mu.Unlock()
	h.wake()
	if stays {
		h.orders.acknowledge(report)
	}
}

// acknowledgement is the line that says so.
func (h *Handle) acknowledgement(report uint64) []byte {
	line, err := protocol.Append(nil, protocol.Line{Message: protocol.Heard{Report: report}})
	if err != nil {
		panic("launch: " + err.Error()) // a number can be written
	}
	return line
}
