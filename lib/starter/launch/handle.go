// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Handle is the startd's side of one running starter. Methods are safe for
// concurrent use. The owner reads Reports until it is closed.
type Handle struct {
	spec    Spec
	family  host.Family
	reports chan protocol.Report
	exited  chan struct{}

	orders *outgoing

	mu       sync.Mutex
	quiet    *time.Timer // until the starter is pinged; nil before it has a plan
	settled  func()      // see whenSettled
	ads      slotAds
	execute  string // of the plan
	ended    bool
	problem  error
	leftover int
}

func newHandle(spec Spec, family host.Family, stdin Channel, stdout *os.File) *Handle {
	h := &Handle{
		spec: spec, family: family,
		reports: make(chan protocol.Report, 16), exited: make(chan struct{}),
	}
	h.orders = newOutgoing(stdin, spec.AnswerWithin, h.stuck)
	go h.follow(stdout)
	return h
}

// Proc names the starter's process.
func (h *Handle) Proc() host.ProcID { return h.family.Main() }

// Reports delivers what the starter says, in order. It is closed when the
// starter has said its last word; if that was not "ended" the activation ended
// without a record.
func (h *Handle) Reports() <-chan protocol.Report { return h.reports }

// Exited is closed when the starter is gone, with everything that was below
// it and, if it died before its time, what it had left.
func (h *Handle) Exited() <-chan struct{} { return h.exited }

// Status tells how the starter's own process ended; 0 is well.
func (h *Handle) Status() host.ExitStatus { return h.family.Status() }

// Err tells what was wrong with the conversation or the clean-up, once Exited
// is closed; nil if nothing was.
func (h *Handle) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.problem
}

// Leftovers tells how many processes a starter that died before its time left
// behind, all of them killed by now. It is final once Exited is closed.
func (h *Handle) Leftovers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leftover
}

// Send hands an order to the starter. It waits neither for it to be read nor
// for it to be obeyed; orders arrive in the order they were sent. A starter that
// is gone is NotFound. One that does not read its orders is Broken when too many
// wait; it is killed then, and likewise when it leaves one unread for 20 s. Without
// orders it is asked after a minute of silence whether it reads any, and has two
// more to answer.
func (h *Handle) Send(o protocol.Order) error { return h.send(message{op: o.Op}, o) }

// slotAds has one OpSlotAd on its way at most: a starter that is slow to read
// gets the latest when it has read the last.
type slotAds struct {
	owed bool            // one has no answer yet
	next *protocol.Order // the latest that waits for it
}

// TellSlot hands the slot's ad to the starter, in the place of one that it has not
// been sent yet. The order must be an OpSlotAd.
func (h *Handle) TellSlot(o protocol.Order) error {
	h.mu.Lock()
	if h.ads.owed {
		h.ads.next = &o
		h.mu.Unlock()
		return nil
	}
	h.ads.owed = true
	h.mu.Unlock()
	return h.Send(o)
}

// slotTold sends the ad that waits, if any.
func (h *Handle) slotTold() {
	h.mu.Lock()
	next := h.ads.next
	h.ads = slotAds{owed: next != nil}
	h.mu.Unlock()
	if next != nil {
		_ = h.Send(*next) // one that is gone needs none
	}
}

// send is Send for a message that lacks only its line.
func (h *Handle) send(m message, o protocol.Order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return errs.E("launch.Send", errs.Invalid, o.Op, err)
	}
	if len(line) >= protocol.MaxLine {
		return errs.E("launch.Send", errs.Invalid, o.Op, errors.New("order is too long"))
	}
	select {
	case <-h.family.Done():
		return errs.E("launch.Send", errs.NotFound, o.Op, errGone)
	default:
	}
	m.line = append(line, '\n')
	return h.orders.put(m)
}

// stuck ends a starter that does not read its orders.
func (h *Handle) stuck(why error) {
	h.spec.Log.Error("the starter does not read its orders and is killed", "pid", h.family.Main().PID, "err", why)
	_, err := h.family.Kill()
	h.mu.Lock()
	h.problem = errors.Join(h.problem, why, err)
	h.mu.Unlock()
}

// Kill ends the starter and everything below it at once, with SIGKILL. The
// sandbox is removed before Exited is closed.
func (h *Handle) Kill() error {
	_, err := h.family.Kill()
	return err
}

// give sends the plan, with the connection nc, and waits until it is written.
// It may take a few seconds with a starter that does not read.
func (h *Handle) give(plan *protocol.Plan, nc net.Conn) error {
	h.mu.Lock()
	h.execute = plan.Execute
	h.quiet = time.AfterFunc(pingAfter, func() { _ = h.Send(protocol.Order{Op: protocol.OpPing}) }) // one that is gone needs none
	h.mu.Unlock()
	m := message{op: protocol.OpPlan, nc: nc, sent: make(chan error, 1)}
	if err := h.send(m, protocol.Order{Op: protocol.OpPlan, Plan: plan}); err != nil {
		return err
	}
	return <-m.sent
}

// heard puts the next ping off.
func (h *Handle) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.quiet != nil {
		h.quiet.Reset(pingAfter)
	}
}

// whenSettled has f called once, when the job runs or the starter is gone.
func (h *Handle) whenSettled(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = f
}

func (h *Handle) settle() {
	h.mu.Lock()
	f := h.settled
	h.settled = nil
	h.mu.Unlock()
	if f != nil {
		f()
	}
}

// hangUp closes the starter's standard input, which tells it that the startd
// is gone.
func (h *Handle) hangUp() { h.orders.close() }

// follow is the handle's goroutine beside that of its orders: it passes the reports on, waits for
// the end of the process and clears away what it left.
func (h *Handle) follow(stdout *os.File) {
	defer close(h.exited)
	err := readReports(stdout, func(r protocol.Report) {
		h.heard()
		if r.Op == protocol.OpTaken {
			h.orders.open.answered()
			if r.Order == protocol.OpSlotAd {
				h.slotTold()
			}
			return
		}
		if r.Op == protocol.OpEnded {
			h.mu.Lock()
			h.ended = true
			h.mu.Unlock()
		}
		h.orders.open.unread.Add(1)
		h.reports <- r
		h.orders.open.unread.Add(-1)
		if r.Op == protocol.OpRunning {
			h.settle()
		}
	})
	stdout.Close()
	close(h.reports)
	<-h.family.Done()
	h.mu.Lock()
	if h.quiet != nil {
		h.quiet.Stop()
	}
	h.mu.Unlock()
	h.hangUp()
	h.orders.wait()
	n, cerr := h.family.Close()
	killed, rerr := h.reclaim()
	h.mu.Lock()
	h.leftover += n + killed
	h.problem = errors.Join(h.problem, err, cerr, rerr)
	h.mu.Unlock()
	h.settle()
}

// reclaim clears away what a starter left that did not come to its own end.
func (h *Handle) reclaim() (killed int, err error) {
	h.mu.Lock()
	execute, well := h.execute, h.ended && h.family.Status().Success()
	h.mu.Unlock()
	if well || execute == "" || h.spec.Census == nil {
		return 0, nil
	}
	swept, err := sandbox.Reclaim(execute, h.family.Main(), h.spec.Census, h.spec.Private)
	for _, who := range swept.Suspects {
		h.spec.Log.Warn("a process may be of a job whose starter died; nothing proves it, and it was left running", "process", who)
	}
	return swept.Killed, err
}

func readReports(r io.Reader, each func(protocol.Report)) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4096), protocol.MaxLine)
	for in.Scan() {
		var rep protocol.Report
		if err := json.Unmarshal(in.Bytes(), &rep); err != nil {
			return errs.E("launch.Reports", errs.Broken, "", err)
		}
		each(rep)
	}
	if err := in.Err(); err != nil {
		return errs.E("launch.Reports", errs.Broken, "", err)
	}
	return nil
}
