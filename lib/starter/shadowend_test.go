// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// untilKilled leaves a file and then obeys any signal.
func untilKilled(p *hosttest.Process) host.ExitStatus {
	if err := os.WriteFile(filepath.Join(p.Spec().Dir, "state"), []byte("half"), 0o644); err != nil {
		return host.ExitStatus{Exited: true, Code: 99}
	}
	for {
		if sig := p.Sleep(1 << 40); sig != 0 {
			return host.ExitStatus{Signal: sig}
		}
	}
}

// What the shadow hears when the job has to leave.
func TestShadowEvictions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, ad string
		order    protocol.Order
		signal   int    // that the job gets
		moved    int    // output transfers
		final    bool   // the transfer goes to the files' final place
		held     int    // hold code, else the job exits
		reason   string // VacateReason
	}{
		{"soft", "", protocol.SoftKill{Leave: protocol.Leave{Reason: "PREEMPT is true", Code: 1011}}, hosttest.SIGTERM, 0, false, 0, "PREEMPT is true"},
		{"soft with output", "WhenToTransferOutput = \"ON_EXIT_OR_EVICT\"\n", protocol.SoftKill{Leave: protocol.Leave{Reason: "off", Code: 1013}}, hosttest.SIGTERM, 1, false, 0, "off"},
		{"soft, the last time", "", protocol.SoftKill{Leave: protocol.Leave{Reason: "removed", Code: 1023}, Final: true}, hosttest.SIGTERM, 1, true, 0, "removed"},
		{"removed", "RemoveKillSig = 12\n", protocol.SoftKill{Leave: protocol.Leave{Reason: "removed", Code: 1023}}, 12, 0, false, 0, "removed"},
		{"held by its user", "HoldKillSig = 10\n", protocol.SoftKill{Leave: protocol.Leave{Reason: "held", Code: 1}}, 10, 0, false, 0, "held"},
		{"hard", "WhenToTransferOutput = \"ON_EXIT_OR_EVICT\"\n", protocol.HardKill{Leave: protocol.Leave{Reason: "KILL", Code: 1009}}, hosttest.SIGKILL, 0, false, 0, "KILL"},
		{"held by the startd", "HoldKillSig = 10\nWhenToTransferOutput = \"ON_EXIT_OR_EVICT\"\n",
			protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Reason: "WANT_HOLD is true", Code: 21, Subcode: 7}}, 10, 0, false, 21, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, c.ad, untilKilled)
			until[protocol.Running](p)
			p.send(c.order)
			rec := p.last()
			end := <-p.ended
			if rec.Status.Signal != c.signal {
				t.Errorf("%+v, want signal %d", rec.Status, c.signal)
			}
			outs := p.outputs(c.moved)
			if len(outs) != c.moved || c.moved > 0 && outs[0].Final != c.final {
				t.Errorf("output was sent as %+v", outs)
			}
			if c.held != 0 {
				if end.Held == nil || slices.Contains(p.calls(), "job_exit") {
					t.Fatalf("%+v of %v", end, p.calls())
				}
				code, _ := end.Held.Ad.EvalInt("HoldReasonCode", nil)
				sub, _ := end.Held.Ad.EvalInt("HoldReasonSubCode", nil)
				if text, _ := end.Held.Ad.EvalString("ErrorMsg", nil); code != int64(c.held) || sub != 7 || text != leaveOf(c.order).Reason {
					t.Errorf("%s", end.Held.Ad.Text(classad.Old))
				}
				return
			}
			if end.Exit == nil || end.Exit.Ints[1] != int64(shadow.ShouldRequeue) || end.Exit.Ints[0] != int64(c.signal) {
				t.Fatalf("%+v", end.Exit)
			}
			why, _ := end.Exit.Ad.EvalString("VacateReason", nil)
			if code, _ := end.Exit.Ad.EvalInt("VacateReasonCode", nil); why != c.reason || code != int64(leaveOf(c.order).Code) {
				t.Errorf("%s", end.Exit.Ad.Text(classad.Old))
			}
		})
	}
}

// What the shadow hears of a job that could not be run, or whose files could
// not be moved.
func TestShadowHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, ad  string
		input     string
		code, sub int
		text      string // a part of what is said
		mock      bool   // job_termination comes first
	}{
		{"no program", "Cmd = \"/no/such\"\n", "", 6, 2, "Failed to execute '/no/such'", false},
		{"no input", "", "missing", 13, 2, "missing", false},
		{"no output", "TransferOutput = \"nothing\"\n", "", 13, 2, "nothing", true},
		{"no directory", "ShouldTransferFiles = \"NO\"\nIwd = \"/no/such\"\n", "", 14, 2, "Cannot access initial working directory /no/such", false},
		{"nothing said of files", "ShouldTransferFiles = \"MAYBE\"\n", "", 6, 0, "MAYBE", false},
		{"standard input is not there", "In = \"in\"\n", "", 8, 2, "as standard input", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var input []string
			if c.input != "" {
				input = append(input, c.input)
			}
			p := newPool(t, c.ad, func(*hosttest.Process) host.ExitStatus { return host.ExitStatus{Exited: true} }, input...)
			rec := p.last()
			end := <-p.ended
			if end.Held == nil {
				t.Fatalf("%+v of %v", end, p.calls())
			}
			ad := end.Held.Ad
			code, _ := ad.EvalInt("HoldReasonCode", nil)
			sub, _ := ad.EvalInt("HoldReasonSubCode", nil)
			text, _ := ad.EvalString("ErrorMsg", nil)
			if code != int64(c.code) || sub != int64(c.sub) || !strings.Contains(text, c.text) || strings.HasPrefix(text, "Error from") {
				t.Errorf("%d/%d %s", code, sub, text)
			}
			if rec.Held == nil || rec.Held.Code != c.code {
				t.Errorf("%+v", rec.Held)
			}
			if slices.Contains(p.calls(), "job_termination") != c.mock || slices.Contains(p.calls(), "job_exit") {
				t.Errorf("%v", p.calls())
			}
		})
	}
}

// When the input does not come, the files for failures are sent, once the
// shadow is done with the input, and before it hears of the hold.
func TestShadowFailureFiles(t *testing.T) {
	t.Parallel()
	p := newPool(t, "FailureFiles = \"kept\"\nTransferOutput = \"other\"\n", untilKilled, "kept", "missing")
	rec := p.last()
	end := <-p.ended
	if end.Held == nil || rec.Held == nil || rec.Held.Code != int(reason.TransferInputError) || len(p.machine.Families()) != 0 {
		t.Fatalf("%+v, %+v", end, rec)
	}
	moved, err := p.shadow.WaitTransfers(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if m := moved[1]; m.Command != command.FiletransDownload || !m.Stats.Final || m.Stats.Bytes != int64(len("input")) {
		t.Errorf("%+v", moved)
	}
	want := []string{"get_job_info", "register_starter_info", "get_sec_session_info", "register_job_info", "get_job_info", "request_guidance", "register_job_info", "ulog"}
	if diff := cmp.Diff(want, p.calls()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A shadow that never shows that it is done with the input is not asked to
// take anything: it would give itself up.
func TestShadowFailureFilesUnsafe(t *testing.T) {
	t.Parallel()
	p := newPoolPlan(t, "TransferInFinished = 1\n", untilKilled, func(p *pool, _ *protocol.Plan) {
		p.shadow.Misbehave(func(_ int, request *shadow.Request, reply *shadow.Reply) shadowtest.Action {
			if request.Call == shadow.CallGetJobInfo {
				reply.Ad.SetInt("TransferInFinished", 1)
				reply.Ad.Delete("NumInputTransferStarts")
			}
			return shadowtest.Send
		})
	}, "missing")
	p.last()
	if end := <-p.ended; end.Held == nil {
		t.Fatalf("%+v", end)
	}
	if moved, err := p.shadow.WaitTransfers(t.Context(), 1); err != nil || len(moved) != 1 {
		t.Errorf("%+v, %v", moved, err)
	}
}

// A job whose time to start has passed is not started.
func TestShadowMissedDeferral(t *testing.T) {
	t.Parallel()
	p := newPool(t, "DeferralTime = 1000\nDeferralWindow = 10\n", untilKilled)
	rec := p.last()
	if end := <-p.ended; end.Exit == nil || end.Exit.Ints[0] != shadow.NoStatus || end.Exit.Ints[1] != int64(shadow.MissedDeferralTime) {
		t.Errorf("%+v", end)
	}
	if rec.Held == nil || rec.Held.Code != int(reason.MissedDeferredTime) || len(p.machine.Families()) != 0 {
		t.Errorf("%+v", rec)
	}
}

// A suspended job is told as one, and as running before it is evicted.
func TestShadowSuspension(t *testing.T) {
	t.Parallel()
	p := newPool(t, "", untilKilled)
	until[protocol.Running](p)
	p.send(protocol.Suspend{})
	until[protocol.Suspended](p)
	p.send(protocol.SoftKill{Leave: protocol.Leave{Reason: "r", Code: 1011}})
	p.last()
	<-p.ended
	var states []string
	for _, c := range p.shadow.Calls() {
		if c.Request.Call == shadow.CallRegisterJobInfo {
			s, _ := c.Request.Ad.EvalString("JobState", nil)
			states = append(states, s)
		}
	}
	if want := []string{"", "Suspended", "Running", "Exited"}; !slices.Equal(states, want) {
		t.Errorf("%q, want %q", states, want)
	}
}

// What monitors measured is in what the shadow is told next, and the slot's ad
// where the job finds it.
func TestShadowMetered(t *testing.T) {
	t.Parallel()
	p := newPool(t, "", untilKilled)
	until[protocol.Running](p)
	p.send(protocol.SlotAd{Slot: "Fish = 4\n", Usage: "SQUIDsAverageUsage = 2.5\nSQUIDsMemoryUsage = undefined\n"}, protocol.Suspend{})
	until[protocol.Suspended](p)
	if text, err := os.ReadFile(filepath.Join(p.execute, "dir_1000/htcondor/.update.ad")); string(text) != "Fish = 4\n" {
		t.Errorf("%q, %v", text, err)
	}
	p.send(protocol.SlotAd{Slot: "Fish = 5\n", Usage: "SQUIDsAverageUsage = 3.5\nSQUIDsMemoryUsage = 9.0\n"},
		protocol.SlotAd{Slot: "Fish = 5\n", Usage: "no ad"}, protocol.SoftKill{Leave: protocol.Leave{Reason: "r", Code: 1011}})
	p.last()
	end := <-p.ended
	var told []string
	for _, c := range p.shadow.Calls() {
		if c.Request.Call == shadow.CallRegisterJobInfo {
			told = append(told, used(c.Request.Ad))
		}
	}
	if want := []string{"/", "2.5/undefined", "3.5/9.0", "3.5/9.0"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
	if end.Exit == nil || used(end.Exit.Ad) != "3.5/9.0" {
		t.Errorf("at the end: %+v", end.Exit)
	}
}

// used is what an ad says of squids.
func used(ad *classad.Ad) string {
	var out [2]string
	for i, name := range [...]string{"SQUIDsAverageUsage", "SQUIDsMemoryUsage"} {
		if e, ok := ad.Lookup(name); ok {
			out[i] = e.Text(classad.Old)
		}
	}
	return out[0] + "/" + out[1]
}

// A shadow that goes away while the job runs finds it again; what was to be
// told meanwhile is told then.
func TestShadowReconnect(t *testing.T) {
	t.Parallel()
	for _, exited := range []bool{false, true} {
		name := "while it runs"
		if exited {
			name = "after it ended"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			p := newPool(t, "", func(h *hosttest.Process) host.ExitStatus {
				<-release
				return writes("result", "42", host.ExitStatus{Exited: true})(h)
			})
			address := until[protocol.Contact](p).Address
			until[protocol.Running](p)
			if _, err := p.shadow.Wait(t.Context(), shadow.CallBeginExecution, 0); err != nil {
				t.Fatal(err)
			}
			p.shadow.Vanish()
			<-p.ended
			if exited {
				close(release)
				p.closed()
			}
			p.back(address)
			if !exited {
				close(release)
			}
			rec := p.last()
			end := <-p.ended
			if end.Exit == nil || end.Exit.Ints[1] != int64(shadow.Exited) || rec.Lost || rec.Evicted {
				t.Errorf("%+v, %+v", end, rec)
			}
			if text, err := os.ReadFile(filepath.Join(p.submit, "result")); err != nil || string(text) != "42" {
				t.Errorf("%q, %v", text, err)
			}
			var states []string // as they were told since it is back
			exits := 0
			for back, c := 0, p.shadow.Calls(); len(c) > 0; c = c[1:] {
				switch ad := c[0].Request.Ad; c[0].Request.Call {
				case shadow.CallSessions:
					back++
				case shadow.CallNotify:
					exits++
				case shadow.CallRegisterJobInfo:
					if state, _ := ad.EvalString("JobState", nil); back == 2 {
						states = append(states, state)
					}
				}
			}
			if exits > 1 || !exited && exits != 1 || exited && slices.Contains(states, "Running") || !slices.Contains(states, "Exited") {
				t.Errorf("told %q since it is back, and of %d exits", states, exits)
			}
			if n := strings.Count(strings.Join(p.calls(), " "), "get_sec_session_info"); n != 2 {
				t.Errorf("the sessions were asked for %d times: %v", n, p.calls())
			}
		})
	}
}

// The shadow of a schedd that was killed does not get the job back from that of
// its successor, unless this is gone.
func TestShadowReplaced(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p := newPool(t, "", func(h *hosttest.Process) host.ExitStatus {
		<-release
		return writes("result", "42", host.ExitStatus{Exited: true})(h)
	})
	address := until[protocol.Contact](p).Address
	until[protocol.Running](p)
	if _, err := p.shadow.Wait(t.Context(), shadow.CallBeginExecution, 0); err != nil {
		t.Fatal(err)
	}
	first := *p // whose files are elsewhere
	p.shadow = shadowtest.New(shadowtest.Job{Ad: first.shadow.ReconnectAd(), Claim: p.claim, Root: p.root})
	var err error
	if p.files, err = shadowtest.Listen(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	p.back(address)
	<-first.ended // its connection was closed
	if _, err := p.shadow.Wait(t.Context(), shadow.CallSessions, 0); err != nil {
		t.Fatal(err)
	}
	startd, err := shadowtest.NewStartd("<127.0.0.1:9>", "<127.0.0.1:8>", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := first.shadow.ReconnectAt(t.Context(), startd, address); err == nil || errors.Is(err, shadowtest.ErrRefused) {
		t.Fatalf("the first shadow was answered: %v, %v", conn, err)
	}
	p.shadow.Vanish()
	<-p.ended
	first.take(shadowtest.Files{})
	conn, err := first.shadow.ReconnectAt(t.Context(), startd, address)
	for err != nil && !errors.Is(err, shadowtest.ErrRefused) { // the starter may not have seen it yet
		conn, err = first.shadow.ReconnectAt(t.Context(), startd, address)
	}
	if err != nil {
		t.Fatal(err)
	}
	first.serve(conn)
	close(release)
	rec := p.last()
	end := <-p.ended
	if end.Exit == nil || rec.Lost || rec.Evicted || len(first.shadow.Calls()) == 0 {
		t.Errorf("%+v, %+v", end, rec)
	}
	if text, err := os.ReadFile(filepath.Join(p.submit, "result")); err != nil || string(text) != "42" {
		t.Errorf("%q, %v", text, err)
	}
}

// A shadow that does not come back while the lease lasts loses the job.
func TestShadowLeaseOver(t *testing.T) {
	t.Parallel()
	p := newPool(t, "JobLeaseDuration = 0\n", untilKilled)
	until[protocol.Running](p)
	p.shadow.Vanish()
	if rec := p.last(); !rec.Lost || !rec.Evicted || rec.Status.Signal != hosttest.SIGKILL || rec.Code != int(reason.ReconnectFailed) {
		t.Errorf("%+v", rec)
	}
}

// sleepy is the clock of a machine that sleeps for two hours once somebody has
// looked at it. Go's timers do not count that.
type sleepy struct {
	clock.Clock
	tired atomic.Bool
	slept atomic.Int64 // nanoseconds
}

func (s *sleepy) Now() clock.Instant {
	now := s.Clock.Now().Add(time.Duration(s.slept.Load()))
	if s.tired.CompareAndSwap(true, false) {
		s.slept.Store(int64(2 * time.Hour))
	}
	return now
}

// A machine that sleeps while the shadow is away finds at the next look that the
// lease is over, and not as much later as it slept.
func TestShadowLeaseOverWhileAsleep(t *testing.T) {
	t.Parallel()
	c := &sleepy{Clock: clock.System()}
	lost := make(chan struct{})
	p := newPoolOn(t, "JobLeaseDuration = 3600\n", untilKilled, func(h *Host) {
		h.Clock = c
		socket := h.Socket
		h.Socket = func() (net.Conn, error) {
			nc, err := socket()
			return &watched{Conn: nc, closed: lost}, err
		}
	})
	until[protocol.Running](p)
	if _, err := p.shadow.Wait(t.Context(), shadow.CallBeginExecution, 0); err != nil {
		t.Fatal(err)
	}
	p.shadow.Vanish()
	<-lost              // from here on only the lease is looked at
	c.tired.Store(true) // it may have been already: then the next look is the first
	late := time.AfterFunc(6*leaseLook, func() { p.send(protocol.HardKill{Leave: protocol.Leave{Reason: "the test ends it", Code: 1009}}) })
	defer late.Stop()
	if rec := p.last(); !rec.Lost || rec.Code != int(reason.ReconnectFailed) {
		t.Errorf("after a sleep of two hours with a lease of one: %+v", rec)
	}
}

// watched tells when a connection is closed first.
type watched struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (w *watched) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// A job that is held while its shadow is away is held when that is back.
func TestShadowHeldMeanwhile(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	p := newPoolOn(t, "", untilKilled, func(h *Host) {
		socket := h.Socket
		h.Socket = func() (net.Conn, error) {
			nc, err := socket()
			return &watched{Conn: nc, closed: seen}, err
		}
	})
	address := until[protocol.Contact](p).Address
	until[protocol.Running](p)
	if _, err := p.shadow.Wait(t.Context(), shadow.CallBeginExecution, 0); err != nil {
		t.Fatal(err)
	}
	p.shadow.Vanish()
	<-p.ended
	<-seen
	p.send(protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Reason: "WANT_HOLD is true", Code: 21, Subcode: 7}})
	p.closed()
	p.back(address)
	rec := p.last()
	end := <-p.ended
	if end.Held == nil || rec.Held == nil || rec.Held.Code != 21 {
		t.Fatalf("%+v, %+v of %v", end, rec, p.calls())
	}
	if code, _ := end.Held.Ad.EvalInt("HoldReasonCode", nil); code != 21 {
		t.Errorf("%s", end.Held.Ad.Text(classad.Old))
	}
}

// silence has the shadow not answer the calls that are of any of the kinds, the
// first n of each.
func silence(p *pool, n int, calls ...shadow.Call) {
	seen := map[shadow.Call]int{}
	p.shadow.Misbehave(func(_ int, request *shadow.Request, _ *shadow.Reply) shadowtest.Action {
		if seen[request.Call]++; slices.Contains(calls, request.Call) && seen[request.Call] <= n {
			return shadowtest.Silent
		}
		return shadowtest.Send
	})
}

// A starter that has to end does so in a moment, whatever the shadow does not
// answer.
func TestShadowSilent(t *testing.T) {
	t.Parallel()
	kill := protocol.HardKill{Leave: protocol.Leave{Reason: "KILL", Code: 1009}}
	for _, c := range []struct {
		name  string
		call  shadow.Call // that is not answered
		order protocol.Order
	}{
		{"the job", shadow.CallGetJobInfo, kill},
		{"the starter", shadow.CallRegisterStarterInfo, kill},
		{"the beginning", shadow.CallBeginExecution, kill},
		{"the beginning of one to be held", shadow.CallBeginExecution, protocol.HardKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Reason: "HOLD", Code: 21}}},
		{"the end", shadow.CallJobExit, kill},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startPool(t, "", func(h *hosttest.Process) host.ExitStatus {
				if c.call == shadow.CallJobExit {
					return host.ExitStatus{Exited: true}
				}
				return untilKilled(h)
			}, func(h *Host) { h.Moment = 50 * time.Millisecond }, func(p *pool, _ *protocol.Plan) { silence(p, 1, c.call) })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if _, err := p.shadow.Wait(ctx, c.call, 0); err != nil {
				t.Fatal(err)
			}
			p.send(c.order)
			select {
			case status := <-p.status:
				if status != exitDone {
					t.Errorf("exit status %d", status)
				}
			case <-ctx.Done():
				t.Fatal("the starter waits for the shadow")
			}
		})
	}
}

// A starter whose last word waits for the shadow still heeds orders to end.
func TestShadowSilentHold(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		p := startPool(t, "", untilKilled, func(h *Host) { h.Moment = 50 * time.Millisecond }, func(p *pool, _ *protocol.Plan) { silence(p, 1, shadow.CallBeginExecution) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := p.shadow.Wait(ctx, shadow.CallBeginExecution, 0); err != nil {
			t.Fatal(err)
		}
		p.send(protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Reason: "WANT_HOLD is true", Code: 21}})
		until[protocol.Ended](p)
		if gone {
			_ = p.in.Close()
		} else {
			p.send(protocol.HardKill{Leave: protocol.Leave{Reason: "KILL", Code: 1009}})
		}
		select {
		case <-p.status:
		case <-ctx.Done():
			t.Fatalf("the starter waits for the shadow; startd gone: %v", gone)
		}
	}
}

// A shadow that comes back before the starter has seen that it was gone hears
// how the job ended, which it did not before.
func TestShadowBackUnnoticed(t *testing.T) {
	t.Parallel()
	p := newPoolPlan(t, "", writes("result", "42", host.ExitStatus{Exited: true}), func(p *pool, _ *protocol.Plan) { silence(p, 1, shadow.CallJobExit) })
	address := until[protocol.Contact](p).Address
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := p.shadow.Wait(ctx, shadow.CallJobExit, 0); err != nil {
		t.Fatal(err)
	}
	p.back(address)
	if _, err := p.shadow.Wait(ctx, shadow.CallJobExit, 1); err != nil {
		t.Fatalf("the end was not told again: %v", p.calls())
	}
	if rec := p.last(); rec.Lost || rec.Evicted || len(rec.Problems) != 0 {
		t.Errorf("%+v", rec)
	}
}

// An output transfer that may succeed another time brings the shadow back on
// purpose.
func TestShadowOutputAgain(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p := newPool(t, "", func(h *hosttest.Process) host.ExitStatus {
		<-release
		return writes("result", "42", host.ExitStatus{Exited: true})(h)
	})
	address := until[protocol.Contact](p).Address
	until[protocol.Running](p)
	p.take(shadowtest.Files{}) // the starter's key is wrong now
	close(release)
	until[protocol.TransferOutDone](p)
	if end := <-p.ended; end.Exit != nil || end.Held != nil {
		t.Fatalf("%+v", end)
	}
	p.back(address)
	rec := p.last()
	if end := <-p.ended; end.Exit == nil || rec.Held != nil {
		t.Errorf("%+v, %+v", end, rec)
	}
	if text, err := os.ReadFile(filepath.Join(p.submit, "result")); err != nil || string(text) != "42" {
		t.Errorf("%q, %v", text, err)
	}
}

// A job that saves its state is started again, and goes on with its output.
func TestShadowCheckpoint(t *testing.T) {
	t.Parallel()
	runs := 0
	p := newPool(t, "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\nTransferCheckpoint = \"state\"\n", func(h *hosttest.Process) host.ExitStatus {
		runs++
		h.Use(host.Usage{UserCPU: 2e9})
		if runs == 1 {
			return writes("state", "half", host.ExitStatus{Exited: true, Code: 85})(h)
		}
		if text, err := os.ReadFile(filepath.Join(h.Spec().Dir, "state")); err != nil || string(text) != "half" {
			return host.ExitStatus{Exited: true, Code: 98}
		}
		return writes("result", "42", host.ExitStatus{Exited: true})(h)
	})
	rec := p.last()
	end := <-p.ended
	if end.Exit == nil || end.Exit.Ints[0] != 0 || runs != 2 || len(rec.Problems) != 0 {
		t.Fatalf("%d runs, %+v, %+v", runs, end.Exit, rec)
	}
	if cpu, _ := end.Exit.Ad.EvalReal("RemoteUserCpu", nil); cpu != 4 || rec.Usage.UserCPU != 4*time.Second {
		t.Errorf("RemoteUserCpu = %v, %+v", cpu, rec.Usage)
	}
	var finals []bool
	for _, stats := range p.outputs(2) {
		finals = append(finals, stats.Final)
	}
	if !slices.Equal(finals, []bool{false, true}) {
		t.Errorf("output was sent as %v", finals)
	}
	var events []string
	for _, c := range p.shadow.Calls() {
		if c.Request.Call == shadow.CallNotify {
			text, _ := c.Request.Ad.EvalString("EventType", nil)
			events = append(events, text)
		}
	}
	if want := []string{"ActivationExecutionExit", "SuccessfulCheckpoint", "ActivationExecutionExit"}; !slices.Equal(events, want) {
		t.Errorf("%q", events)
	}
}

// A job that saves its state goes on with the streams that it had.
func TestShadowCheckpointStreams(t *testing.T) {
	t.Parallel()
	runs := 0
	used := make(chan struct{}, 2)
	p := newPoolOn(t, "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\nTransferCheckpoint = \"\"\nStreamOut = true\nStreamErr = true\n", func(h *hosttest.Process) host.ExitStatus {
		defer func() { used <- struct{}{} }()
		runs++
		for i, f := range []*os.File{h.Spec().Stdout, h.Spec().Stderr} {
			if f == nil {
				return host.ExitStatus{Exited: true, Code: 90 + i}
			}
			if _, err := fmt.Fprintf(f, "%d of run %d;", i, runs); err != nil {
				return host.ExitStatus{Exited: true, Code: 97}
			}
		}
		if runs == 1 {
			return host.ExitStatus{Exited: true, Code: 85}
		}
		return host.ExitStatus{Exited: true}
	}, func(h *Host) { h.Spawner = slowSpawner{h.Spawner, used} })
	rec := p.last()
	if end := <-p.ended; end.Exit == nil || end.Exit.Ints[0] != 0 || runs != 2 {
		t.Errorf("%d runs, %+v, %+v", runs, end.Exit, rec)
	}
	for name, want := range map[string]string{"out.txt": "0 of run 1;0 of run 2;", "err.txt": "1 of run 1;1 of run 2;"} {
		if text, err := os.ReadFile(filepath.Join(p.submit, name)); err != nil || string(text) != want {
			t.Errorf("%s holds %q, %v; want %q", name, text, err, want)
		}
	}
}

// slowSpawner returns when the program has used the files that it was given,
// which are the caller's to close then.
type slowSpawner struct {
	host.Spawner
	used chan struct{}
}

func (s slowSpawner) Spawn(spec host.SpawnSpec) (host.Family, error) {
	f, err := s.Spawner.Spawn(spec)
	if err == nil {
		<-s.used
	}
	return f, err
}

// Standard files that stream are at the submit machine before the job is over,
// and are not moved afterwards.
//
// row: S1-033
func TestShadowStreams(t *testing.T) {
	t.Parallel()
	used := make(chan struct{})
	p := newPoolOn(t, "StreamOut = true\nStreamIn = true\nIn = \"in\"\nTransferIn = false\n", func(h *hosttest.Process) host.ExitStatus {
		defer close(used)
		spec := h.Spec()
		text, err := io.ReadAll(spec.Stdin)
		if err == nil {
			_, err = spec.Stdout.Write(append([]byte("read "), text...))
		}
		if err != nil {
			return host.ExitStatus{Exited: true, Code: 97}
		}
		return host.ExitStatus{Exited: true}
	}, func(h *Host) { h.Spawner = slowSpawner{h.Spawner, used} }, "in")
	rec := p.last()
	if end := <-p.ended; end.Exit == nil || rec.Status.Code != 0 {
		t.Fatalf("%+v, %+v", end, rec)
	}
	if text, err := os.ReadFile(filepath.Join(p.submit, "out.txt")); err != nil || string(text) != "read input" {
		t.Errorf("%q, %v", text, err)
	}
	for _, m := range p.shadow.Transfers() {
		if slices.Contains(m.Stats.Spooled, "_condor_stdout") {
			t.Errorf("%+v", m)
		}
	}
}

// A job that wants to know gets lists of what was there before and after it,
// and its environment.
func TestShadowManifest(t *testing.T) {
	t.Parallel()
	p := newPool(t, "ManifestDir = \"told\"\nTransferOutput = \"result\"\nEnvironment = \"A='b c'\"\n", writes("result", "42", host.ExitStatus{Exited: true}), "in")
	p.last()
	if end := <-p.ended; end.Exit == nil {
		t.Fatalf("%+v", end)
	}
	for name, want := range map[string][]string{
		"in":          {"./.job.ad\n", "./.machine.ad\n", "./in\n", "./told/\n", "./told/in\n"},
		"out":         {"./result\n", "./_condor_stdout\n", "./told/environment\n", "./told/out\n"},
		"environment": {"A=b' 'c ", " _CONDOR_SLOT="},
	} {
		text, err := os.ReadFile(filepath.Join(p.submit, "told", name))
		if err != nil {
			t.Error(err)
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q: %s", name, part, text)
			}
		}
		if strings.Contains(string(text), "_CONDOR_ANCESTOR") {
			t.Errorf("%s tells what is the starter's own: %s", name, text)
		}
	}
}

// Nothing that a job puts in its place leads out of the scratch directory.
func TestShadowManifestHostile(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for _, dir := range []string{"/etc", "../x", "a/b"} {
		p := newPool(t, "ManifestDir = \""+dir+"\"\nTransferOutput = \"\"\n", writes("result", "42", host.ExitStatus{Exited: true}))
		p.last()
		if end := <-p.ended; end.Exit == nil || end.Exit.Ints[0] != 0 {
			t.Errorf("%s: %+v", dir, end)
		}
	}
	p := newPool(t, "ManifestDesired = true\nTransferOutput = \"\"\n", func(h *hosttest.Process) host.ExitStatus {
		at := filepath.Join(h.Spec().Dir, "1_0_manifest")
		if os.RemoveAll(at) != nil || os.Symlink(outside, at) != nil {
			return host.ExitStatus{Exited: true, Code: 9}
		}
		return host.ExitStatus{Exited: true}
	})
	p.last()
	if end := <-p.ended; end.Exit != nil && end.Exit.Ints[0] != 0 {
		t.Errorf("%+v", end)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Input arrives under the names that the job wants for it.
func TestShadowInputRemaps(t *testing.T) {
	t.Parallel()
	p := newPool(t, "TransferInputRemaps = \"in = name\"\nIn = \"\"\n", func(h *hosttest.Process) host.ExitStatus {
		if text, err := os.ReadFile(filepath.Join(h.Spec().Dir, "name")); err != nil || string(text) != "input" {
			return host.ExitStatus{Exited: true, Code: 1}
		}
		return host.ExitStatus{Exited: true}
	}, "in")
	p.last()
	if end := <-p.ended; end.Exit == nil || end.Exit.Ints[0] != 0 {
		t.Errorf("%+v", end.Exit)
	}
}

// A job whose input is renamed to where it may not be is not started.
func TestShadowInputRemapsHostile(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"../out", "/tmp/execpoint-none/out"} {
		p := newPool(t, "TransferInputRemaps = \"in = "+to+"\"\n", untilKilled, "in")
		rec := p.last()
		<-p.ended
		if !rec.Started.IsZero() {
			t.Errorf("%s: %+v", to, rec)
		}
	}
}

// What the shadow commands after input that did not come is done.
func TestShadowGuidance(t *testing.T) {
	t.Parallel()
	asked := 0
	p := newPoolPlan(t, "", writes("result", "42", host.ExitStatus{Exited: true}), func(p *pool, _ *protocol.Plan) {
		p.shadow.Misbehave(func(_ int, request *shadow.Request, reply *shadow.Reply) shadowtest.Action {
			if request.Call != shadow.CallGuidance {
				return shadowtest.Send
			}
			reply.Ad = classad.NewAd()
			switch asked++; asked {
			case 1:
				reply.Ad.SetString("Command", "RunDiagnostic")
				reply.Ad.SetString("Diagnostic", "send_ep_logs")
			case 2:
				reply.Ad.SetString("Command", "RetryReqest")
				reply.Ad.SetInt("RetryDelay", 0)
			default:
				if err := os.WriteFile(filepath.Join(p.submit, "missing"), []byte("here"), 0o644); err != nil {
					t.Error(err)
				}
				reply.Ad.SetString("Command", "RetryTransfer")
			}
			return shadowtest.Send
		})
	}, "missing")
	p.last()
	end := <-p.ended
	if end.Exit == nil || end.Exit.Ints[0] != 0 || asked != 3 {
		t.Fatalf("%+v, asked %d times: %v", end, asked, p.calls())
	}
	said := ""
	for _, c := range p.shadow.Calls() {
		if c.Request.Call == shadow.CallNotify && said == "" {
			said, _ = c.Request.Ad.EvalString("Result", nil)
		}
	}
	if said != "Completed" {
		t.Errorf("the diagnostic's result is %q", said)
	}
}

// StartJob starts a job though its input did not come, and a shadow is asked nothing
// where the owner says so.
func TestShadowGuidanceStartJob(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		p := newPoolPlan(t, "", writes("result", "42", host.ExitStatus{Exited: true}), func(p *pool, plan *protocol.Plan) {
			plan.Complete()
			set, of := *plan.Settings, *plan.Settings.Pool
			of.Guidance.Silent = silent
			set.Pool = &of
			plan.Settings = &set
			p.shadow.Misbehave(func(_ int, request *shadow.Request, reply *shadow.Reply) shadowtest.Action {
				if request.Call == shadow.CallGuidance {
					reply.Ad = classad.NewAd()
					reply.Ad.SetString("Command", "StartJob")
				}
				return shadowtest.Send
			})
		}, "missing")
		rec := p.last()
		<-p.ended
		asked := slices.Contains(p.calls(), "request_guidance")
		if asked == silent || rec.Started.IsZero() != silent || (rec.Held != nil) != silent {
			t.Errorf("silent %v: asked %v, %+v", silent, asked, rec)
		}
	}
}

// What the shadow commands, and what is done of it, is in the log in HTCondor's
// words. What nobody does here is not said to be done.
func TestShadowGuidanceWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ command, diagnostic, want string }{
		{"CarryOn", "", "Received the following guidance: 'CarryOn'\nCarrying on according to guidance...\n"},
		{"Abort", "", "Received the following guidance: 'Abort'\nAborting job as guided...\n"},
		{"StartJob", "", "Received the following guidance: 'StartJob'\nStarting job as guided...\n"},
		{"Dance", "", "Received the following guidance: 'Dance'\nGuidance 'Dance' unknown, carrying on.\n"},
		{"", "", "Received guidance but didn't understand it; carrying on.\n"},
		{"RunDiagnostic", "", "Received the following guidance: 'RunDiagnostic'\nReceived guidance 'RunDiagnostic', but could not find a diagnostic to run; carrying on, instead.\n"},
		{"RunDiagnostic", "unknown", "Received the following guidance: 'RunDiagnostic'\nRunning diagnostic 'unknown' as guided...\n" +
			"... diagnostic 'unknown' not registered in param table (STARTER_DIAGNOSTIC_unknown).\n" +
			"Received the following guidance: 'CarryOn'\nCarrying on according to guidance...\n"},
		{"RetryTransfer", "", "Received the following guidance: 'RetryTransfer'\nRetrying transfer as guided...\n" +
			"Received the following guidance: 'CarryOn'\nCarrying on according to guidance...\n"},
	} {
		t.Run(tt.command+" "+tt.diagnostic, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			said, asked := "", 0
			log := slog.New(messages(func(m string) {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(m, "uid") || strings.Contains(m, "diagnostic") {
					said += m + "\n"
				}
			}))
			p := startPool(t, "", writes("result", "42", host.ExitStatus{Exited: true}), func(h *Host) { h.Log = log }, func(p *pool, _ *protocol.Plan) {
				p.shadow.Misbehave(func(_ int, request *shadow.Request, reply *shadow.Reply) shadowtest.Action {
					if request.Call != shadow.CallGuidance {
						return shadowtest.Send
					}
					reply.Ad = classad.NewAd()
					switch asked++; {
					case asked > 1:
						reply.Ad.SetString("Command", "CarryOn")
					case tt.command != "":
						reply.Ad.SetString("Command", tt.command)
						if tt.diagnostic != "" {
							reply.Ad.SetString("Diagnostic", tt.diagnostic)
						}
					}
					return shadowtest.Send
				})
			}, "missing")
			p.last()
			<-p.ended
			mu.Lock()
			defer mu.Unlock()
			const asking = "Requesting guidance from the shadow about JobEnvironment...\n"
			if got := strings.ReplaceAll(said, asking, ""); got != tt.want || !strings.HasPrefix(said, asking) {
				t.Errorf("got\n%swant\n%s", said, tt.want)
			}
		})
	}
}

// messages is a handler that passes messages on.
type messages func(string)

func (messages) Enabled(context.Context, slog.Level) bool { return true }
func (m messages) Handle(_ context.Context, r slog.Record) error {
	m(r.Message)
	return nil
}
func (m messages) WithAttrs([]slog.Attr) slog.Handler { return m }
func (m messages) WithGroup(string) slog.Handler      { return m }

// A job that has left because it was told to keeps its slot for nobody: without
// output that is wanted the starter does not wait for a shadow that is gone.
func TestShadowGoneNothingToWaitFor(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"gone before the order": {"vanish", "kill"}, "gone after the order": {"kill", "vanish"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leave := make(chan struct{})
			p := newPool(t, "JobLeaseDuration = 3600\n", func(h *hosttest.Process) host.ExitStatus {
				status := untilKilled(h)
				<-leave
				return status
			})
			until[protocol.Running](p)
			if _, err := p.shadow.Wait(t.Context(), shadow.CallBeginExecution, 0); err != nil {
				t.Fatal(err)
			}
			for _, what := range order {
				if what == "kill" {
					p.send(protocol.SoftKill{Leave: protocol.Leave{Reason: "Startd was shutdown", Code: int(reason.StartdShutdown)}}, protocol.Checkpoint{})
					until[protocol.Refused](p)
					continue
				}
				p.shadow.Vanish()
				<-p.ended
			}
			close(leave)
			if rec := p.last(); !rec.Evicted || rec.Reason != "Startd was shutdown" {
				t.Errorf("%+v", rec)
			}
		})
	}
}

// leaveOf is what an order to leave says.
func leaveOf(o protocol.Order) protocol.Leave {
	if h, hard := o.(protocol.HardKill); hard {
		return h.Leave
	}
	return o.(protocol.SoftKill).Leave
}
