// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// wire is a Channel in memory whose other end is read by the test. It has no
// room: what is not read is not written.
type wire struct {
	net.Conn
	plain  bool // no connection can be passed
	mu     sync.Mutex
	passed []net.Conn
}

func (w *wire) Pass(line []byte, nc net.Conn) error {
	if w.plain {
		return errs.E("wire.Pass", errs.Unsupported, "", errors.New("no"))
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed = append(w.passed, nc)
	return nil
}

// launched is a starter that lives until it is killed or its input is read to
// the end, and reads its orders when the test does.
type launched struct {
	machine *hosttest.Machine
	wire    *wire
	orders  *bufio.Scanner
	log     bytes.Buffer
	l       *Launcher
}

func newLaunched(t *testing.T) *launched {
	w := &launched{machine: hosttest.New()}
	w.machine.Install("/starter", func(p *hosttest.Process) host.ExitStatus {
		return host.ExitStatus{Signal: p.Sleep(time.Hour)}
	})
	w.l = NewLauncher(Spec{
		Spawner: w.machine, Path: "/starter", Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Channel: func() (*os.File, Channel, error) {
			null, err := os.Open(os.DevNull)
			if err != nil {
				return nil, nil, err
			}
			ours, theirs := net.Pipe()
			t.Cleanup(func() { theirs.Close() })
			w.wire, w.orders = &wire{Conn: ours}, bufio.NewScanner(theirs)
			return null, w.wire, nil
		},
	})
	t.Cleanup(w.l.Close)
	return w
}

// launch gives a plan to the starter, which reads it.
func (w *launched) launch(t *testing.T, nc net.Conn) *Handle {
	t.Helper()
	var h *Handle
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		h, err = w.l.Launch(t.Context(), &protocol.Plan{Activation: "a"}, nc)
	}()
	synctest.Wait()
	if op := w.read(t).Op; op != protocol.OpPlan {
		t.Errorf("the first order is %q", op)
	}
	if <-done; err != nil {
		t.Fatal(err)
	}
	return h
}

func (w *launched) read(t *testing.T) (o protocol.Order) {
	t.Helper()
	if !w.orders.Scan() {
		t.Fatalf("no order: %v", w.orders.Err())
	}
	if err := json.Unmarshal(w.orders.Bytes(), &o); err != nil {
		t.Error(err)
	}
	return o
}

// killed waits for the end of a starter that was killed for not reading.
func (w *launched) killed(t *testing.T, h *Handle) {
	t.Helper()
	<-h.Exited()
	if h.Status().Signal != hosttest.SIGKILL || !errs.Is(h.Err(), errs.Broken) {
		t.Errorf("the starter %v: %v", h.Status(), h.Err())
	}
	if err := h.Send(protocol.Order{Op: protocol.OpSuspend}); !errs.Is(err, errs.NotFound) {
		t.Errorf("an order for a starter that is gone: %v", err)
	}
	if n := strings.Count(w.log.String(), "does not read its orders and is killed"); n != 1 {
		t.Errorf("the log says so %d times:\n%s", n, &w.log)
	}
}

// Who sends an order to a starter that does not read waits for nothing; the
// starter is killed when its time is over.
func TestOrderNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLaunched(t)
		h := w.launch(t, nil)
		began := time.Now()
		for range 3 {
			if err := h.Send(protocol.Order{Op: protocol.OpSuspend}); err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the sender waited %v", d)
		}
		w.killed(t, h)
		if d := time.Since(began); d != sendTimeout {
			t.Errorf("the starter was killed after %v", d)
		}
	})
}

// One that leaves too many orders unread is killed at once.
func TestTooManyOrders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLaunched(t)
		h := w.launch(t, nil)
		began := time.Now()
		taken := 0
		var err error
		for taken = 0; err == nil && taken < 1000; taken++ {
			err = h.Send(protocol.Order{Op: protocol.OpSuspend})
			synctest.Wait()
		}
		if !errs.Is(err, errs.Broken) || taken != mostWaiting+2 { // one is being written, one is too many
			t.Errorf("after %d orders: %v", taken, err)
		}
		w.killed(t, h)
		if d := time.Since(began); d != 0 {
			t.Errorf("the starter was killed after %v", d)
		}
	})
}

// Orders arrive in their order however late they are read, and connections with
// the line they were sent with.
func TestOrdersInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLaunched(t)
		nc, other := net.Pipe()
		defer other.Close()
		h := w.launch(t, nc)
		if _, err := nc.Write(nil); err == nil {
			t.Error("the launcher left the connection open")
		}
		w.wire.mu.Lock()
		if len(w.wire.passed) != 1 || w.wire.passed[0] != nc {
			t.Errorf("%d connections were passed", len(w.wire.passed))
		}
		w.wire.mu.Unlock()
		for i := range mostWaiting {
			if err := h.Send(protocol.Order{Op: protocol.OpSuspend, Reason: strconv.Itoa(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range mostWaiting {
			if o := w.read(t); o.Reason != strconv.Itoa(i) {
				t.Fatalf("order %d says %q", i, o.Reason)
			}
		}
		if err := h.Kill(); err != nil {
			t.Error(err)
		}
		<-h.Exited()
		if err := h.Send(protocol.Order{Op: protocol.OpSuspend}); !errs.Is(err, errs.NotFound) || h.Err() != nil {
			t.Errorf("after its end: %v, %v", err, h.Err())
		}
	})
}

// A plan that is not read is an error of the launch, which ends; one whose
// connection cannot be passed is so at once.
func TestPlanNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLaunched(t)
		began := time.Now()
		if _, err := w.l.Launch(t.Context(), &protocol.Plan{Activation: "a"}, nil); err == nil {
			t.Error("a starter that read nothing has a plan")
		}
		if d := time.Since(began); d != sendTimeout || !strings.Contains(w.log.String(), "is killed") {
			t.Errorf("after %v: %s", d, &w.log)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newLaunched(t)
		open := w.l.spec.Channel
		w.l.spec.Channel = func() (*os.File, Channel, error) {
			f, ch, err := open()
			w.wire.plain = true
			go func() { // it reads its end
				w.orders.Scan()
				_ = w.machine.Families()[0].Signal(hosttest.SIGTERM)
			}()
			return f, ch, err
		}
		nc, other := net.Pipe()
		defer other.Close()
		_, err := w.l.Launch(t.Context(), &protocol.Plan{Activation: "a"}, nc)
		if !errs.Is(err, errs.Unsupported) {
			t.Error(err)
		}
	})
}

// A starter that takes its orders from the pipe and answers none was stopped, by
// its job perhaps: it is killed after 20 s, and after three minutes when there are
// no orders.
func TestOrderNotAnswered(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]time.Duration{protocol.OpSoftKill: 20 * time.Second, protocol.OpPing: 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newLaunched(t)
				h := w.launch(t, nil)
				began := time.Now()
				if name != protocol.OpPing {
					if err := h.Send(protocol.Order{Op: name}); err != nil {
						t.Error(err)
					}
				}
				if got := w.read(t).Op; got != name {
					t.Errorf("the order is %q, want %q", got, name)
				}
				w.killed(t, h)
				if d := time.Since(began); d != want {
					t.Errorf("the starter was killed after %v, want %v", d, want)
				}
			})
		})
	}
}

// What counts as an answer in time.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	type event struct {
		at   time.Duration
		what string // an order, or what is below
	}
	const answer, busy, free, gone = "answer", "the startd is busy", "the startd is free", "the starter is gone"
	for _, c := range []struct {
		name   string
		events []event
		late   time.Duration // when the answers are late, never if they are not
	}{
		{"in time", []event{{0, protocol.OpSuspend}, {19 * time.Second, answer}}, never},
		{"one of two", []event{{0, protocol.OpSuspend}, {0, protocol.OpSoftKill}, {19 * time.Second, answer}}, 39 * time.Second},
		{"an order after a ping", []event{{0, protocol.OpPing}, {30 * time.Second, protocol.OpSoftKill}}, 50 * time.Second},
		{"an order after a slot's ad", []event{{0, protocol.OpSlotAd}, {30 * time.Second, protocol.OpSoftKill}}, 50 * time.Second},
		{"a slot's ad", []event{{0, protocol.OpSlotAd}, {0, protocol.OpPing}}, 2 * time.Minute},
		{"a ping after an order", []event{{0, protocol.OpSoftKill}, {5 * time.Second, protocol.OpPing}}, 20 * time.Second},
		{"the startd itself is slow", []event{{0, busy}, {0, protocol.OpSoftKill}, {5 * time.Minute, free}, {5 * time.Minute, answer}}, never},
		{"answers that nobody asked for", []event{{0, answer}, {0, answer}, {0, protocol.OpSoftKill}}, 20 * time.Second},
		{"the starter is gone", []event{{0, protocol.OpSoftKill}, {0, gone}, {0, protocol.OpHardKill}}, never},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				late := make(chan struct{})
				a := &answers{within: answerWithin, late: func(string, time.Duration) { close(late) }}
				began := time.Now()
				for _, e := range c.events {
					time.Sleep(e.at - time.Since(began))
					switch e.what {
					case answer:
						a.answered()
					case busy, free:
						a.unread.Store(map[string]int32{busy: 3}[e.what])
					case gone:
						a.stop()
					default:
						a.expect(e.what)
					}
				}
				select {
				case <-late:
				case <-time.After(never - time.Since(began)):
				}
				if d := time.Since(began); d != c.late {
					t.Errorf("late after %v, want %v", d, c.late)
				}
			})
		})
	}
}

// Of a slot's ads at most one is on its way to the starter, and the last one
// arrives.
func TestTellSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLaunched(t)
		h := w.launch(t, nil)
		tell := func(n int) {
			if err := h.TellSlot(protocol.Order{Op: protocol.OpSlotAd, SlotAd: strconv.Itoa(n)}); err != nil {
				t.Error(err)
			}
		}
		for n := range 3 * mostWaiting {
			tell(n)
		}
		if o := w.read(t); o.Op != protocol.OpSlotAd || o.SlotAd != "0" {
			t.Errorf("the first is %+v", o)
		}
		h.slotTold()
		if o, want := w.read(t), strconv.Itoa(3*mostWaiting-1); o.SlotAd != want {
			t.Errorf("the second is %q, want %s", o.SlotAd, want)
		}
		h.slotTold()
		h.slotTold() // which the starter makes up
		tell(7)
		if o := w.read(t); o.SlotAd != "7" {
			t.Errorf("the third is %+v", o)
		}
		if err := h.Kill(); err != nil {
			t.Error(err)
		}
		<-h.Exited()
	})
}

// What is no report ends the conversation, and what came before it is heard.
func TestNotAReport(t *testing.T) {
	t.Parallel()
	n := 0
	if err := readReports(strings.NewReader("{\"op\":\"ready\"}\nnonsense\n"), func(protocol.Report) { n++ }); err == nil || n != 1 {
		t.Errorf("%d reports were read, then %v", n, err)
	}
}
