// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
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
	number  uint64 // of the last order that was read
	log     bytes.Buffer
	l       *Launcher
}

// greeter has each starter say hello, whatever it does then.
type greeter struct {
	host.Spawner
	hello string
}

// Spawn implements host.Spawner.
func (g greeter) Spawn(spec host.SpawnSpec) (host.Family, error) {
	if _, err := spec.Stdout.WriteString(g.hello); err != nil {
		return nil, err
	}
	return g.Spawner.Spawn(spec)
}

const hello = `{"v":1,"kind":"hello","body":{"program":"execpoint-test","proc":{"pid":1000,"start":1},"state":"waiting"}}` + "\n"

func newLaunched(t *testing.T) *launched { return launchedWith(t, hello) }

// launchedWith is newLaunched for a starter that says something else.
func launchedWith(t *testing.T, hello string) *launched {
	w := &launched{machine: hosttest.New()}
	w.machine.Install("/starter", func(p *hosttest.Process) host.ExitStatus {
		return host.ExitStatus{Signal: p.Sleep(time.Hour)}
	})
	w.l = NewLauncher(Spec{
		Spawner: greeter{w.machine, hello}, Path: "/starter", Log: slog.New(slog.NewTextHandler(&w.log, nil)),
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
	if m, ok := w.line(t).Message.(protocol.StartdHello); !ok || m.Program != protocol.Program {
		t.Errorf("the first line is %+v", m)
	}
	if _, ok := w.read(t).(*protocol.Plan); !ok {
		t.Error("the first order is no plan")
	}
	if <-done; err != nil {
		t.Fatal(err)
	}
	return h
}

// line reads the next line for the starter.
func (w *launched) line(t *testing.T) protocol.Line {
	t.Helper()
	if !w.orders.Scan() {
		t.Fatalf("no line: %v", w.orders.Err())
	}
	l, err := protocol.Startd.Reader().Read(w.orders.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// read reads the next order, which has the number after the last one's.
func (w *launched) read(t *testing.T) protocol.Order {
	t.Helper()
	l := w.line(t)
	if w.number++; l.ID != w.number {
		t.Errorf("order %+v has number %d, want %d", l.Message, l.ID, w.number)
	}
	o, _ := l.Message.(protocol.Order)
	return o
}

// killed waits for the end of a starter that was killed for not reading.
func (w *launched) killed(t *testing.T, h *Handle) {
	t.Helper()
	<-h.Exited()
	if st, err := h.Exit(); st.Signal != hosttest.SIGKILL || !errs.Is(err, errs.Broken) {
		t.Errorf("the starter %v: %v", st, err)
	}
	if err := h.Send(protocol.Suspend{}); !errs.Is(err, errs.NotFound) {
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
			if err := h.Send(protocol.Suspend{}); err != nil {
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
			err = h.Send(protocol.Suspend{})
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
			if err := h.Send(protocol.SoftKill{Leave: protocol.Leave{Reason: strconv.Itoa(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range mostWaiting {
			if o := w.read(t).(protocol.SoftKill); o.Reason != strconv.Itoa(i) {
				t.Fatalf("order %d says %q", i, o.Reason)
			}
		}
		if err := h.Kill(); err != nil {
			t.Error(err)
		}
		<-h.Exited()
		if err := h.Send(protocol.Suspend{}); !errs.Is(err, errs.NotFound) {
			t.Errorf("after its end: %v", err)
		}
		if _, err := h.Exit(); err != nil {
			t.Error(err)
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
	for o, want := range map[protocol.Order]time.Duration{protocol.SoftKill{}: 20 * time.Second, protocol.Ping{}: 3 * time.Minute} {
		name := o.Kind()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newLaunched(t)
				h := w.launch(t, nil)
				began := time.Now()
				if _, ping := o.(protocol.Ping); !ping {
					if err := h.Send(o); err != nil {
						t.Error(err)
					}
				}
				if got := w.read(t).Kind(); got != name {
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
		what any // an order, or what is below
	}
	const answer, busy, free, gone = "answer", "the startd is busy", "the startd is free", "the starter is gone"
	for _, c := range []struct {
		name   string
		events []event
		late   time.Duration // when the answers are late, never if they are not
	}{
		{"in time", []event{{0, protocol.Suspend{}}, {19 * time.Second, answer}}, never},
		{"one of two", []event{{0, protocol.Suspend{}}, {0, protocol.SoftKill{}}, {19 * time.Second, answer}}, 39 * time.Second},
		{"an order after a ping", []event{{0, protocol.Ping{}}, {30 * time.Second, protocol.SoftKill{}}}, 50 * time.Second},
		{"an order after a slot's ad", []event{{0, protocol.SlotAd{}}, {30 * time.Second, protocol.SoftKill{}}}, 50 * time.Second},
		{"a slot's ad", []event{{0, protocol.SlotAd{}}, {0, protocol.Ping{}}}, 2 * time.Minute},
		{"a ping after an order", []event{{0, protocol.SoftKill{}}, {5 * time.Second, protocol.Ping{}}}, 20 * time.Second},
		{"the startd itself is slow", []event{{0, busy}, {0, protocol.SoftKill{}}, {5 * time.Minute, free}, {5 * time.Minute, answer}}, never},
		{"answers that nobody asked for", []event{{0, answer}, {0, answer}, {0, protocol.SoftKill{}}}, 20 * time.Second},
		{"the starter is gone", []event{{0, protocol.SoftKill{}}, {0, gone}, {0, protocol.HardKill{}}}, never},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				late := make(chan struct{})
				a := &answers{within: answerWithin, late: func(string, time.Duration) { close(late) }}
				var sent, next uint64
				began := time.Now()
				for _, e := range c.events {
					time.Sleep(e.at - time.Since(began))
					switch e.what {
					case answer:
						next++
						a.answered(next)
					case busy, free:
						a.unread.Store(map[any]int32{busy: 3}[e.what])
					case gone:
						a.stop()
					default:
						sent++
						a.expect(Numbered{sent, e.what.(protocol.Order)})
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
func TestSlotAds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLaunched(t)
		h := w.launch(t, nil)
		tell := func(n int) {
			if err := h.Send(protocol.SlotAd{Slot: strconv.Itoa(n)}); err != nil {
				t.Error(err)
			}
		}
		for n := range 3 * mostWaiting {
			tell(n)
		}
		if o := w.read(t); o != (protocol.SlotAd{Slot: "0"}) {
			t.Errorf("the first is %+v", o)
		}
		h.slotTold(w.number - 1) // an order before it
		h.slotTold(w.number)
		if o, want := w.read(t).(protocol.SlotAd), strconv.Itoa(3*mostWaiting-1); o.Slot != want {
			t.Errorf("the second is %q, want %s", o.Slot, want)
		}
		h.slotTold(w.number)
		h.slotTold(w.number) // which the starter makes up
		tell(7)
		if o := w.read(t); o != (protocol.SlotAd{Slot: "7"}) {
			t.Errorf("the third is %+v", o)
		}
		if err := h.Kill(); err != nil {
			t.Error(err)
		}
		<-h.Exited()
	})
}

// What is no message ends the conversation, and what came before it is heard, once.
func TestHear(t *testing.T) {
	t.Parallel()
	const report = `{"v":1,"id":%d,"kind":"running","at":"2026-01-02T03:04:05Z","body":{"proc":{"pid":7,"start":8}}}` + "\n"
	first, second := fmt.Sprintf(report, 1), fmt.Sprintf(report, 5)
	for _, c := range []struct {
		name, said string
		heard      []uint64
		kind       errs.Kind
	}{
		{"all is well", hello + first + second, []uint64{1, 5}, errs.Other},
		{"some come again", hello + first + first + second + first + second, []uint64{1, 5}, errs.Other},
		{"nonsense", hello + first + "nonsense\n" + second, []uint64{1}, errs.Broken},
		{"no hello", first, nil, errs.Broken},
		{"two", hello + first + hello, []uint64{1}, errs.Broken},
		{"a number too few", hello + strings.Replace(first, `"id":1,`, "", 1), nil, errs.Broken},
		{"an order", hello + `{"v":1,"id":1,"kind":"suspend","body":{}}` + "\n", nil, errs.Broken},
		{"busy", `{"v":1,"kind":"busy","body":{"pid":9}}` + "\n", nil, errs.Conflict},
	} {
		h := newHandle(newAdopted(host.ProcID{}, nil), nowhere{}, 0, nil, nil, slog.New(slog.DiscardHandler))
		err := h.hear(strings.NewReader(c.said))
		close(h.reports)
		var heard []uint64
		for r := range h.reports {
			heard = append(heard, r.ID)
		}
		if !slices.Equal(heard, c.heard) || (err != nil) != (c.kind != errs.Other) || err != nil && errs.KindOf(err) != c.kind {
			t.Errorf("%s: heard %v, then %v; want %v", c.name, heard, err, c.heard)
		}
		h.hangUp()
		h.orders.wait()
	}
}

// A starter of another version, or none at all, is given no plan, and the error names
// both.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string
		want       []string
	}{
		{"newer", `{"v":2,"kind":"hello","body":{"program":"execpoint-9.9","mood":"good"}}` + "\n", []string{"version 2", "execpoint-9.9", "version 1", protocol.Program}},
		{"before there were versions", `{"op":"ready","at":"2026-01-02T03:04:05Z","proc":{"pid":7,"start":8}}` + "\n", []string{"no version", "version 1", protocol.Program}},
		{"no starter", "usage: cat [file]\n", []string{"/starter is no starter"}},
		{"silent", "", []string{"did not say hello"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := launchedWith(t, c.says)
				_, err := w.l.Launch(t.Context(), &protocol.Plan{Activation: "a"}, nil)
				if !errs.Is(err, errs.Broken) {
					t.Fatal(err)
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q: %v", want, err)
					}
				}
				if w.orders.Scan() {
					t.Errorf("it was sent %s", w.orders.Text())
				}
				if f := w.machine.Families(); len(f) != 1 || f[0].Status().Signal != hosttest.SIGKILL {
					t.Error("it was not ended")
				}
			})
		})
	}
}
