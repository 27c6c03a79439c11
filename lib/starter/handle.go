// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

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
)

// sendTimeout bounds how long an order may wait for a starter that does not
// read. Such a starter is stopped or stuck.
const sendTimeout = 10 * time.Second

// Handle is the startd's side of one running starter. Methods are safe for
// concurrent use. The owner reads Reports until it is closed.
type Handle struct {
	spec    LaunchSpec
	family  host.Family
	reports chan Report
	exited  chan struct{}

	sendMu sync.Mutex
	stdin  Channel

	mu       sync.Mutex
	settled  func() // see whenSettled
	execute  string // of the plan
	ended    bool
	problem  error
	leftover int
}

func newHandle(spec LaunchSpec, family host.Family, stdin Channel, stdout *os.File) *Handle {
	h := &Handle{
		spec: spec, family: family, stdin: stdin,
		reports: make(chan Report, 16), exited: make(chan struct{}),
	}
	go h.follow(stdout)
	return h
}

// Proc names the starter's process.
func (h *Handle) Proc() host.ProcID { return h.family.Main() }

// Reports delivers what the starter says, in order. It is closed when the
// starter has said its last word; if that was not "ended" the activation ended
// without a record.
func (h *Handle) Reports() <-chan Report { return h.reports }

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

// Send hands an order to the starter. It does not wait for it to be obeyed. A
// starter that is gone is NotFound.
func (h *Handle) Send(o Order) error { return h.send(o, nil) }

// send is Send with a connection that goes along, nil for none.
func (h *Handle) send(o Order, nc net.Conn) error {
	line, err := json.Marshal(o)
	if err != nil {
		return errs.E("starter.Send", errs.Invalid, o.Op, err)
	}
	if len(line) >= MaxLine {
		return errs.E("starter.Send", errs.Invalid, o.Op, errors.New("order is too long"))
	}
	h.sendMu.Lock()
	defer h.sendMu.Unlock()
	_ = h.stdin.SetWriteDeadline(time.Now().Add(sendTimeout)) // unsupported on some systems: then it waits
	line = append(line, '\n')
	if nc != nil {
		err = h.stdin.Pass(line, nc)
	} else {
		_, err = h.stdin.Write(line)
	}
	if err != nil {
		kind := errs.NotFound
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			kind = errs.Transient
		case errs.Is(err, errs.Unsupported):
			kind = errs.Unsupported
		}
		return errs.E("starter.Send", kind, o.Op, err)
	}
	return nil
}

// Kill ends the starter and everything below it at once, with SIGKILL. The
// sandbox is removed before Exited is closed.
func (h *Handle) Kill() error {
	_, err := h.family.Kill()
	return err
}

func (h *Handle) give(plan *Plan, nc net.Conn) error {
	h.mu.Lock()
	h.execute = plan.Execute
	h.mu.Unlock()
	return h.send(Order{Op: OpPlan, Plan: plan}, nc)
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
func (h *Handle) hangUp() {
	h.sendMu.Lock()
	defer h.sendMu.Unlock()
	h.stdin.Close()
}

// follow is the handle's one goroutine: it passes the reports on, waits for
// the end of the process and clears away what it left.
func (h *Handle) follow(stdout *os.File) {
	defer close(h.exited)
	err := readReports(stdout, func(r Report) {
		if r.Op == OpEnded {
			h.mu.Lock()
			h.ended = true
			h.mu.Unlock()
		}
		h.reports <- r
		if r.Op == OpRunning {
			h.settle()
		}
	})
	stdout.Close()
	close(h.reports)
	<-h.family.Done()
	h.hangUp()
	n, cerr := h.family.Close()
	killed, rerr := h.reclaim()
	h.mu.Lock()
	h.leftover += n + killed
	h.problem = errors.Join(err, cerr, rerr)
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
	swept, err := sandbox.Reclaim(execute, h.family.Main(), h.spec.Census)
	return swept.Killed, err
}

func readReports(r io.Reader, each func(Report)) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4096), MaxLine)
	for in.Scan() {
		var rep Report
		if err := json.Unmarshal(in.Bytes(), &rep); err != nil {
			return errs.E("starter.Reports", errs.Broken, "", err)
		}
		each(rep)
	}
	if err := in.Err(); err != nil {
		return errs.E("starter.Reports", errs.Broken, "", err)
	}
	return nil
}
