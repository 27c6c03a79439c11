// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// talk is a starter on a machine in memory, in virtual time. Its sandbox is
// real.
type talk struct {
	*testing.T
	machine *hosttest.Machine
	execute string
	in      *io.PipeWriter
	out     *bufio.Scanner
	orders  uint64 // sent so far
	status  chan int
	began   time.Time
	stderr  bytes.Buffer
}

func newTalk(t *testing.T, execute string, program hosttest.Program, change ...func(*Host)) *talk {
	k := &talk{T: t, machine: hosttest.New(), execute: execute, status: make(chan int, 1), began: time.Now()}
	k.machine.Install("/bin/job", program)
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	k.in, k.out = in, bufio.NewScanner(out)
	h := Host{Spawner: k.machine, Census: k.machine, Errno: hosttest.Errno, Signal: hosttest.SignalNumber}
	for _, c := range change {
		c(&h)
	}
	go func() {
		k.status <- converse(context.Background(), nil, stdin, stdout, &k.stderr, h)
		stdin.Close()
		stdout.Close()
	}()
	return k
}

// send does not wait until the orders are read: the starter may have to be
// listened to first.
func (k *talk) send(orders ...protocol.Order) {
	k.Helper()
	var lines []byte
	say := func(l protocol.Line) {
		var err error
		if lines, err = protocol.Append(lines, l); err != nil {
			k.Fatal(err)
		}
	}
	if k.orders == 0 {
		say(protocol.Line{Message: protocol.StartdHello{Program: "the test"}})
	}
	for _, o := range orders {
		k.orders++
		say(protocol.Line{ID: k.orders, Message: o})
	}
	go func() {
		if _, err := k.in.Write(lines); err != nil {
			k.Error(err)
		}
	}()
}

func (k *talk) plan(change func(*protocol.Plan)) {
	k.Helper()
	p := &protocol.Plan{
		Activation: "slot1#1", SlotName: "slot1", SlotFullName: "slot1@h", Execute: k.execute, Orphan: protocol.OrphanDie, Settings: configured(k, ""),
		JobAd: "Cmd = \"/bin/job\"\nShouldTransferFiles = \"YES\"\nTransferExecutable = false\nIwd = \"/\"\n",
	}
	if change != nil {
		change(p)
	}
	k.send(p)
}

// heard reads the next line of the starter; false at its end.
func (k *talk) heard() (protocol.Line, bool) {
	k.Helper()
	if !k.out.Scan() {
		return protocol.Line{}, false
	}
	line, err := protocol.Starter.Reader().Read(k.out.Bytes())
	if err != nil {
		k.Fatal(err)
	}
	return line, true
}

// report reads the next report; nil at the end.
func (k *talk) report() protocol.Report {
	k.Helper()
	for {
		line, ok := k.heard()
		if !ok {
			return nil
		}
		if r, is := line.Message.(protocol.Report); is {
			return r
		}
	}
}

// next reads the next report, which has to be an R.
func next[R protocol.Report](k *talk) R {
	k.Helper()
	is := k.report()
	r, ok := is.(R)
	if !ok {
		k.Fatalf("the starter says %+v, want %s", is, r.Kind())
	}
	return r
}

// hears reads reports of these kinds.
func (k *talk) hears(kinds ...string) {
	k.Helper()
	for _, kind := range kinds {
		if r := k.report(); r == nil || r.Kind() != kind {
			k.Fatalf("the starter says %+v, want %s", r, kind)
		}
	}
}

func (k *talk) running() {
	k.Helper()
	k.hears("sandbox", "transfer-in-start", "transfer-in-done", "running")
}

// passed is how much virtual time went by.
func (k *talk) passed() time.Duration { return time.Since(k.began) }

// last reads the last word and waits for the starter.
func (k *talk) last() protocol.ExitRecord {
	k.Helper()
	r := next[protocol.Ended](k)
	if line, more := k.heard(); more {
		k.Errorf("after the last word: %+v", line)
	}
	if status := <-k.status; status != exitDone {
		k.Errorf("the starter exits %d: %s", status, k.stderr.String())
	}
	return r.Record
}

// end is last for a starter that leaves nothing.
func (k *talk) end() protocol.ExitRecord {
	k.Helper()
	rec := k.last()
	if entries, err := os.ReadDir(k.execute); err != nil || len(entries) != 0 {
		k.Errorf("EXECUTE holds %v (%v)", entries, err)
	}
	return rec
}

// unheard are the reports that a starter left for a later startd, by their kinds, which
// is all that is left of it but its records.
func (k *talk) unheard() (kinds []string) {
	k.Helper()
	own := filepath.Join(k.execute, "dir_1000")
	if entries, err := os.ReadDir(own); err != nil || len(entries) != 1 {
		k.Errorf("the sandbox holds %v (%v)", entries, err)
	}
	text, err := os.ReadFile(filepath.Join(own, "htcondor/unheard.reports"))
	if err != nil {
		k.Fatal(err)
	}
	id := uint64(0)
	for l := range bytes.Lines(text) {
		line, err := protocol.Starter.Reader().Read(l)
		if err != nil || line.ID <= id || line.At.IsZero() {
			k.Errorf("%s after number %d: %v", l, id, err)
		}
		id = line.ID
		kinds = append(kinds, line.Message.Kind())
	}
	return kinds
}

func sleeper(d time.Duration, code int) hosttest.Program {
	return func(p *hosttest.Process) host.ExitStatus {
		p.Use(host.Usage{UserCPU: time.Second, PeakRSSKiB: 5})
		if sig := p.Sleep(d); sig != 0 {
			return host.ExitStatus{Signal: sig}
		}
		return host.ExitStatus{Exited: true, Code: code}
	}
}

// deaf ignores all signals that can be ignored.
func deaf(p *hosttest.Process) host.ExitStatus {
	for p.Sleep(time.Hour) != hosttest.SIGKILL {
	}
	return host.ExitStatus{}
}

// inBubble runs a test in virtual time with a directory for EXECUTE.
func inBubble(t *testing.T, test func(t *testing.T, execute string)) {
	t.Parallel()
	execute := t.TempDir()
	synctest.Test(t, func(t *testing.T) { test(t, execute) })
}

// Usage is reported 8 s after the start and then every 300 s (note 21 of the
// recorded starter).
func TestUsageIntervals(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, sleeper(10*time.Minute, 4))
		k.plan(nil)
		k.running()
		for _, at := range []time.Duration{8 * time.Second, 308 * time.Second} {
			if r := next[protocol.Usage](k); k.passed() != at || r.Usage.UserCPU != time.Second || r.Usage.Procs != 1 {
				t.Errorf("after %v: %+v, want it after %v", k.passed(), r.Usage, at)
			}
		}
		next[protocol.TransferOutStart](k)
		next[protocol.TransferOutDone](k)
		rec := k.end()
		if k.passed() != 10*time.Minute || rec.Status.Code != 4 || rec.Usage.PeakRSSKiB != 5 || rec.Ended.Sub(rec.Started) != 10*time.Minute {
			t.Errorf("after %v: %+v", k.passed(), rec)
		}
	})
}

func TestConfiguredIntervals(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, sleeper(time.Minute, 0))
		k.plan(func(p *protocol.Plan) {
			p.Settings = configured(t, "STARTER_INITIAL_UPDATE_INTERVAL = 20\nSTARTER_UPDATE_INTERVAL = 30\n")
		})
		k.running()
		next[protocol.Usage](k)
		next[protocol.Usage](k)
		if k.passed() != 50*time.Second {
			t.Errorf("the second report came after %v", k.passed())
		}
		next[protocol.TransferOutStart](k)
		next[protocol.TransferOutDone](k)
		k.end()
	})
}

// The deadline of a soft kill is kept to the moment, and a job that was
// suspended is let go on for it.
//
// row: S0-148
func TestSoftKillDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, deaf)
		k.plan(nil)
		k.running()
		k.send(protocol.Suspend{})
		if r := next[protocol.Suspended](k); r.Count != 1 {
			t.Errorf("%+v", r)
		}
		k.send(protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerVacate, Asked: "startd", Reason: "PREEMPT", Code: 1011}, Deadline: 5 * time.Second})
		next[protocol.Continued](k)
		rec := k.end()
		f := k.machine.Families()[0]
		if k.passed() != 5*time.Second || !cmp.Equal(f.Received(), []int{hosttest.SIGTERM}) || !f.Closed() {
			t.Errorf("after %v, signals %v", k.passed(), f.Received())
		}
		if !rec.Evicted || rec.Status.Signal != hosttest.SIGKILL || rec.Reason != "PREEMPT" || rec.Code != 1011 || rec.Asked != "startd" {
			t.Errorf("%+v", rec)
		}
	})
}

// A starter that cannot do what it is told says so, and goes on.
func TestCheckpointIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, deaf)
		k.plan(nil)
		k.running()
		for _, o := range []protocol.Order{protocol.Checkpoint{}, &protocol.Plan{Activation: "another"}} {
			k.send(o)
			if r := next[protocol.Refused](k); r.Order != o.Kind() || !strings.Contains(r.Why, "unsupported") {
				t.Errorf("%+v", r)
			}
		}
		k.send(protocol.HardKill{})
		k.end()
	})
}

func TestHardKillTakesChildren(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, func(p *hosttest.Process) host.ExitStatus {
			p.Fork(4)
			return deaf(p)
		})
		k.plan(nil)
		k.running()
		k.send(protocol.HardKill{Leave: protocol.Leave{Reason: "KILL"}})
		rec := k.end()
		if rec.Reason != "KILL" || rec.Status.Signal != 9 || k.machine.Families()[0].Status().Signal != 9 {
			t.Errorf("%+v", rec)
		}
	})
}

func TestLeftoversAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, func(p *hosttest.Process) host.ExitStatus {
			p.Fork(3)
			return host.ExitStatus{Exited: true}
		})
		k.plan(nil)
		k.running()
		next[protocol.TransferOutStart](k)
		next[protocol.TransferOutDone](k)
		if rec := k.end(); rec.Leftovers != 3 || rec.Evicted {
			t.Errorf("%+v", rec)
		}
	})
}

// A starter whose startd goes away kills the job and cleans up, without
// anybody to tell.
func TestOrphanDies(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, deaf)
		k.plan(nil)
		k.running()
		k.in.Close()
		if rec := k.end(); !rec.Evicted || rec.Status.Signal != 9 || !strings.Contains(rec.Reason, "startd is gone") {
			t.Errorf("%+v", rec)
		}
	})
}

// One that is to stay goes on to the job's end, and its exit record is on disk
// before it is told. What nobody acknowledged is there for a later startd.
func TestOrphanStays(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		var onDisk protocol.ExitRecord
		k := newTalk(t, execute, sleeper(time.Hour, 5))
		k.plan(func(p *protocol.Plan) {
			p.Orphan = protocol.OrphanStay
			p.Settings = configured(t, "STARTER_INITIAL_UPDATE_INTERVAL = 100000\nSTARTER_UPDATE_INTERVAL = 100000\n")
		})
		k.running()
		k.in.Close()
		next[protocol.TransferOutStart](k)
		next[protocol.TransferOutDone](k)
		synctest.Wait() // it waits to say its last word
		text, err := os.ReadFile(filepath.Join(execute, "dir_1000/htcondor/exit.record"))
		if err == nil {
			err = json.Unmarshal(text, &onDisk)
		}
		rec := k.last()
		if got, want := k.unheard(), []string{"sandbox", "transfer-in-start", "transfer-in-done", "running", "transfer-out-start", "transfer-out-done", "ended"}; !slices.Equal(got, want) {
			t.Errorf("%q is left for a later startd, want %q", got, want)
		}
		if err != nil || k.passed() != time.Hour || rec.Evicted || rec.Status.Code != 5 || onDisk.Status != rec.Status {
			t.Errorf("after %v: %+v, on disk %+v (%v)", k.passed(), rec, onDisk, err)
		}
	})
}

// While the job runs the record on disk says who it is and how to prove it.
func TestRecordOnDisk(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, sleeper(time.Hour, 0))
		k.plan(nil)
		k.running()
		synctest.Wait()
		text, err := os.ReadFile(filepath.Join(execute, "dir_1000/htcondor/starter.record"))
		if err != nil {
			t.Fatal(err)
		}
		rec, err := sandbox.ParseRecord(text)
		f := k.machine.Families()[0]
		if err != nil || rec.Job != f.Main() || rec.Starter != k.machine.Self() || rec.Boot != "boot" || rec.Activation != "slot1#1" {
			t.Errorf("%+v, %v", rec, err)
		}
		marked := false
		for _, entry := range f.Spec.Env {
			marked = marked || entry == rec.Marker
		}
		if !marked || f.Spec.Bond != host.Bound || f.Spec.Marker != rec.Marker {
			t.Errorf("marker %q, spawned as %+v", rec.Marker, f.Spec)
		}
		k.send(protocol.HardKill{})
		k.end()
	})
}

func TestHeldAndReported(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, deaf)
		k.plan(func(p *protocol.Plan) {
			p.JobAd = "Cmd = \"/bin/nothing\"\nArgs = \"a b\"\nShouldTransferFiles = \"YES\"\nTransferExecutable = false\nIwd = \"/\"\n"
		})
		k.hears("sandbox", "transfer-in-start", "transfer-in-done")
		want := protocol.Hold{Code: 6, Subcode: 2, Reason: "Error from slot1@h: Failed to execute '/bin/nothing' with arguments a b: (errno=2: 'No such file or directory')"}
		if r := next[protocol.Held](k); r.Hold != want {
			t.Errorf("%+v", r.Hold)
		}
		if rec := k.end(); rec.Held == nil || *rec.Held != want || rec.Status.Ended() || rec.Evicted {
			t.Errorf("%+v", rec)
		}
	})
}

func TestStdinGoneBeforePlan(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, deaf)
		k.in.Close()
		if rec := k.end(); !rec.Evicted {
			t.Errorf("%+v", rec)
		}
	})
}

// A line that is no order ends the conversation like a startd that is gone,
// and the starter says so.
func TestNotAnOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, deaf)
		k.heard() // its hello
		if _, err := io.WriteString(k.in, "{nonsense\n"); err != nil {
			t.Fatal(err)
		}
		next[protocol.Ended](k)
		if status := <-k.status; status != exitSpoken || !strings.Contains(k.stderr.String(), "nonsense") {
			t.Errorf("status %d: %s", status, k.stderr.String())
		}
	})
}

func TestMainRefusesArguments(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	if status := Main(t.Context(), []string{"-x"}, nil, nil, nil, &stderr, Host{}); status != exitUsage || !strings.Contains(stderr.String(), `"-x"`) {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}

// Whatever a startd says, no order is taken before its hello, none twice, and none
// after the last one wanted.
func FuzzListen(f *testing.F) {
	say := func(lines ...protocol.Line) (text []byte) {
		for _, l := range lines {
			var err error
			if text, err = protocol.Append(text, l); err != nil {
				f.Fatal(err)
			}
		}
		return text
	}
	hello := protocol.Line{Message: protocol.StartdHello{Program: "x", Heard: 1}}
	kill := protocol.Line{ID: 2, Message: protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Reason: "r\n", Code: 1011}, Deadline: time.Second}}
	f.Add(say(hello, protocol.Line{ID: 1, Message: &protocol.Plan{Activation: "a", JobAd: "A = \"\\\"x\"\n", Settings: configured(f, "JOB_RENICE_INCREMENT = TARGET.'a b'\n")}}, kill))
	f.Add(say(hello, kill, kill, protocol.Line{Message: protocol.Heard{Report: 9}}))
	f.Add(say(kill, hello))
	f.Add([]byte("{}\n{\"op\":1}\n"))
	f.Add([]byte("\n\n[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &conversation{out: new(outbox), orders: make(chan protocol.Order), over: make(chan struct{})}
		ended := make(chan error, 1)
		go func() {
			ended <- c.listen(bytes.NewReader(text), io.Discard, nil)
			close(c.orders)
		}()
		var l life
		n := 0
		for o := range c.orders {
			l.ordered(o)
			if n++; n == 100 {
				close(c.over)
			}
		}
		if <-ended; n > 100 {
			t.Errorf("%d orders after the last one wanted", n)
		}
		if bytes.Count(text, []byte("hello")) == 0 && n > 0 {
			t.Errorf("%d orders without a hello", n)
		}
	})
}

// A starter is told once that it waits now, when its job has run for a second; one
// whose job is over before is not.
func TestWaits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lasts time.Duration
		want  []time.Duration
	}{{10 * time.Minute, []time.Duration{time.Second}}, {500 * time.Millisecond, nil}} {
		t.Run(tt.lasts.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, execute string) {
				began := time.Now()
				var waits []time.Duration
				k := newTalk(t, execute, sleeper(tt.lasts, 0), func(h *Host) { h.Waits = func() { waits = append(waits, time.Since(began)) } })
				k.plan(nil)
				k.running()
				for r := k.report(); r != nil; r = k.report() { // to its end
					if _, over := r.(protocol.Ended); over {
						break
					}
				}
				if status := <-k.status; status != exitDone {
					t.Errorf("exit status %d", status)
				}
				if diff := cmp.Diff(tt.want, waits); diff != "" {
					t.Errorf("a job of %v (-want +got):\n%s", tt.lasts, diff)
				}
			})
		})
	}
}
