// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// mostKept bounds what is kept of the reports that a job may cause as many of as it
// likes, in bytes. The oldest go first.
const mostKept = 256 << 10

// outbox is what the starter says: to the startd that listens now, or to a later
// one. It is safe for concurrent use.
type outbox struct {
	mu    sync.Mutex
	to    io.Writer // nil while nobody listens
	line  []byte    // for the next one
	there bool      // a startd is, which says what it has heard
	pid   int       // its process, 0 for the one that started the starter
	hello protocol.StarterHello
	last  uint64 // the number of the last report
	heard uint64 // the last that a startd has heard

	stays bool          // a later startd may come: what was not heard is kept
	kept  []kept        // in their order
	size  int           // of those that may be dropped, in bytes
	quiet chan struct{} // closed when nothing is kept any more; nil unless somebody waits
}

// kept is a report that no startd has heard.
type kept struct {
	id   uint64
	kind string
	line []byte
	many bool // one of many, which may be dropped
}

// report gives r its number and says it. When nobody listens it is kept, or, where no
// startd can come any more, forgotten: the record on disk tells the rest.
func (o *outbox) report(r protocol.Report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	o.note(r)
	line, err := protocol.Append(o.line[:0], protocol.Line{ID: o.last, At: time.Now(), Message: r})
	if err != nil {
		return
	}
	o.line = line
	if o.stays {
		o.keep(r, line)
	}
	o.write(line)
}

// note follows how far the activation is.
func (o *outbox) note(r protocol.Report) {
	switch r.(type) {
	case protocol.Running, protocol.Continued:
		o.hello.State = protocol.JobRuns
	case protocol.Suspended:
		o.hello.State = protocol.IsSuspended
	case protocol.TransferOutStart:
		o.hello.State = protocol.Finishing
	case protocol.Ended:
		o.hello.State = protocol.Over
	}
}

// keep keeps the report o.last. Of figures and addresses only the latest counts.
func (o *outbox) keep(r protocol.Report, line []byte) {
	k := kept{id: o.last, kind: r.Kind(), line: slices.Clone(line)}
	switch r.(type) {
	case protocol.Usage, protocol.OutputMoved, protocol.Contact:
		o.kept = slices.DeleteFunc(o.kept, func(old kept) bool { return old.kind == k.kind })
	case protocol.Attributes, protocol.Event:
		k.many = true
		o.size += len(k.line)
	}
	o.kept = append(o.kept, k)
	for o.size > mostKept {
		i := slices.IndexFunc(o.kept, func(old kept) bool { return old.many })
		o.size -= len(o.kept[i].line)
		o.kept = slices.Delete(o.kept, i, i+1)
		o.hello.Lost++
	}
}

// write writes to who listens. Who cannot be written to listens no more.
func (o *outbox) write(line []byte) {
	if o.to == nil {
		return
	}
	if _, err := o.to.Write(line); err != nil {
		o.to = nil
	}
}

// greet is the starter's hello to a startd, which listens from when it answers.
func (o *outbox) greet(to io.Writer) error {
	o.mu.Lock()
	line, err := protocol.Append(nil, protocol.Line{Message: o.hello})
	o.mu.Unlock()
	if err == nil {
		_, err = to.Write(line)
	}
	return err
}

// attach has a startd listen that has heard all up to a report. It is told what it has
// not heard.
func (o *outbox) attach(to io.Writer, heard uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(heard)
	o.to = to
	for _, k := range o.kept {
		o.write(k.line)
	}
}

// detach says that who listened to w is gone.
func (o *outbox) detach(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == w {
		o.to = nil
	}
}

// enter has a startd be the one that is there, unless another is.
func (o *outbox) enter(pid int) *protocol.Busy {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.there {
		return &protocol.Busy{PID: o.pid}
	}
	o.there, o.pid = true, pid
	return nil
}

// leave says that the startd is gone.
func (o *outbox) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.there, o.pid = false, 0
	o.wake()
}

// noteHeard is told up to where a startd has heard.
func (o *outbox) noteHeard(report uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(report)
}

// forget drops what was heard. What was never said cannot have been heard.
func (o *outbox) forget(heard uint64) {
	o.heard = max(o.heard, min(heard, o.last))
	n := 0
	for n < len(o.kept) && o.kept[n].id <= o.heard {
		if o.kept[n].many {
			o.size -= len(o.kept[n].line)
		}
		n++
	}
	o.kept = slices.Delete(o.kept, 0, n)
	if len(o.kept) == 0 {
		o.wake()
	}
}

// wake wakes who waits for what is kept to be heard.
func (o *outbox) wake() {
	if o.quiet != nil {
		close(o.quiet)
		o.quiet = nil
	}
}

// errAgain is an order that was taken before.
var errAgain = errors.New("it was taken before")

// take takes an order by its number, and answers it unless it is the plan. One that
// comes again is answered again and is errAgain.
func (o *outbox) take(id uint64, order protocol.Order) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	again := id <= o.hello.Taken
	if !again {
		o.hello.Taken = id
	}
	if p, ok := order.(*protocol.Plan); ok {
		if o.hello.Activation == "" {
			o.hello.Activation, o.hello.State, o.stays = p.Activation, protocol.Preparing, p.Orphan == protocol.OrphanStay
		}
	} else if line, err := protocol.Append(o.line[:0], protocol.Line{Message: protocol.Taken{Order: o.hello.Taken}}); err == nil {
		o.line = line
		o.write(line)
	}
	if again {
		return errAgain
	}
	return nil
}

// waits reports whether a later startd may come.
func (o *outbox) waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stays
}

// unheard returns the lines that nobody has heard, for which a startd that is there is
// given a while.
func (o *outbox) unheard(patience time.Duration) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.kept) > 0 && o.there {
		quiet := make(chan struct{})
		o.quiet = quiet
		o.mu.Unlock()
		late := time.NewTimer(patience)
		select {
		case <-quiet:
		case <-late.C:
		}
		late.Stop()
		o.mu.Lock()
	}
	var all []byte
	for _, k := range o.kept {
		all = append(all, k.line...)
	}
	return all
}
