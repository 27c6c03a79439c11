// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
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
	starter host.Process // the family that it leads, or a starter that another startd began
	reclaim reclaimer
	log     *slog.Logger
	reports chan protocol.Told
	exited  chan struct{}
	orders  *outgoing

	mu         sync.Mutex
	first      greeting
	number     uint64      // of the last order
	heard      uint64      // the last report that was passed on
	stays      bool        // the starter keeps reports until they are heard
	quiet      *time.Timer // until the starter is pinged; nil before it has a plan
	settled    func()      // see whenSettled
	ads        slotAds
	ended      bool
	problem    error
	leftover   int
	leftBehind *leftBehind // nil of a starter that lives
}

// greeting is the starter's first word.
type greeting struct {
	there chan struct{} // closed when hello or none is there
	hello protocol.StarterHello
	none  error // why there was no hello
}

// reclaimer clears away what a starter left that did not come to its own end.
type reclaimer struct {
	execute string          // of the plan, "" before there is one
	census  host.Census     // nil leaves it to the next sweep
	private sandbox.Private // whose directories its record is believed in
	mounter host.Mounter    // of the startd
}

// newHandle is a handle that reads reports from where follow is told.
func newHandle(p host.Process, to Channel, within time.Duration, census host.Census, private sandbox.Private, log *slog.Logger) *Handle {
	h := &Handle{
		starter: p, reclaim: reclaimer{census: census, private: private}, log: log,
		reports: make(chan protocol.Told, 16), exited: make(chan struct{}), first: greeting{there: make(chan struct{})},
	}
	h.orders = newOutgoing(to, within, h.stuck, h.acknowledgement)
	return h
}

// Proc names the starter's process.
func (h *Handle) Proc() host.ProcID { return h.starter.Main() }

// Reports delivers what the starter says, in order and each report once. It is closed
// when the starter has said its last word; if that was not protocol.Ended the
// activation ended without a record.
func (h *Handle) Reports() <-chan protocol.Told { return h.reports }

// Exited is closed when the starter is gone, with everything that was below
// it and, if it died before its time, what it had left.
func (h *Handle) Exited() <-chan struct{} { return h.exited }

// Exit tells, once Exited is closed, how the starter's own process ended, 0 is well,
// and what was wrong with the conversation or the clean-up; nil if nothing was.
func (h *Handle) Exit() (host.ExitStatus, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.starter.Status(), h.problem
}

// Leftovers tells how many processes a starter that died before its time left
// behind, all of them killed by now. It is final once Exited is closed.
func (h *Handle) Leftovers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leftover
}

// Hello is what the starter said of itself first.
func (h *Handle) Hello() protocol.StarterHello {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first.hello
}

// Kill ends the starter and everything below it at once, with SIGKILL. The
// sandbox is removed before Exited is closed.
func (h *Handle) Kill() error {
	h.giveUp()
	_, err := h.starter.Kill()
	return err
}

// stuck ends a starter that does not read its orders.
func (h *Handle) stuck(why error) {
	h.log.Error("the starter does not read its orders and is killed", "pid", h.starter.Main().PID, "err", why)
	_, err := h.starter.Kill()
	h.mu.Lock()
	h.problem = errors.Join(h.problem, why, err)
	h.mu.Unlock()
}

// give sends the startd's hello and the plan, with the connection nc, and waits until
// they are written. It may take a few seconds with a starter that does not read.
func (h *Handle) give(ctx context.Context, plan *protocol.Plan, nc net.Conn) error {
	if err := h.awaitHello(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	h.reclaim.execute, h.stays = plan.Execute, plan.Orphan == protocol.OrphanStay
	h.mu.Unlock()
	lines, err := protocol.Append(nil, protocol.Line{Message: protocol.StartdHello{Program: protocol.Program}})
	if err != nil {
		return err
	}
	m := message{line: lines, nc: nc, sent: make(chan error, 1)}
	if err := h.send(m, plan); err != nil {
		return err
	}
	h.watch()
	return <-m.sent
}

// watch pings the starter when it says nothing for long.
func (h *Handle) watch() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.exited:
	default:
		h.quiet = time.AfterFunc(pingAfter, func() { _ = h.Send(protocol.Ping{}) }) // one that is gone needs none
	}
}

// heardOf puts the next ping off.
func (h *Handle) heardOf() {
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

// hangUp closes the way of orders to the starter, which tells it that the startd is
// gone.
func (h *Handle) hangUp() { h.orders.close() }

// follow is the handle's goroutine beside that of its orders: it passes the reports on, waits for
// the end of the process and clears away what it left.
func (h *Handle) follow(from io.ReadCloser) {
	defer close(h.exited)
	err := h.hear(from)
	from.Close()
	h.greet(nil, cmp.Or(err, errs.E("launch.hear", errs.Broken, "", errors.New("the starter did not say hello"))))
	close(h.reports)
	if s, ok := h.starter.(*adopted); ok {
		h.awaitDealtWith()
		s.await(h.saidAll())
	}
	<-h.starter.Done()
	h.mu.Lock()
	if h.quiet != nil {
		h.quiet.Stop()
	}
	h.mu.Unlock()
	h.hangUp()
	h.orders.wait()
	n, cerr := h.starter.Close()
	killed, rerr := h.reclaimLeft()
	h.mu.Lock()
	h.leftover += n + killed
	h.problem = errors.Join(h.problem, err, cerr, rerr)
	h.mu.Unlock()
	h.settle()
}

// reclaimLeft clears away what the starter left, if it did not come to its own end.
func (h *Handle) reclaimLeft() (killed int, err error) {
	h.mu.Lock()
	r, well := h.reclaim, h.ended && h.leftBehind == nil && h.starter.Status().Success()
	h.mu.Unlock()
	if well || r.execute == "" || r.census == nil {
		return 0, nil
	}
	swept, err := sandbox.Sweeper{Census: r.census, Private: r.private, Mounter: r.mounter}.Reclaim(r.execute, h.starter.Main())
	for _, who := range swept.Suspects {
		h.log.Warn("a process may be of a job whose starter died; nothing proves it, and it was left running", "process", who)
	}
	return swept.Killed, err
}
