// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
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
	out     *json.Decoder
	status  chan int
	began   time.Time
	stderr  bytes.Buffer
}

func newTalk(t *testing.T, execute string, program hosttest.Program, change ...func(*Host)) *talk {
	k := &talk{T: t, machine: hosttest.New(), execute: execute, status: make(chan int, 1), began: time.Now()}
	k.machine.Install("/bin/job", program)
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	k.in, k.out = in, json.NewDecoder(out)
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
	for _, o := range orders {
		line, err := json.Marshal(o)
		if err != nil {
			k.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
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
	k.send(protocol.Order{Op: protocol.OpPlan, Plan: p})
}

// next reads the next report, which has to be of op.
func (k *talk) next(op string) protocol.Report {
	k.Helper()
	r := protocol.Report{Op: protocol.OpTaken}
	for r.Op == protocol.OpTaken && op != protocol.OpTaken {
		r = protocol.Report{}
		if err := k.out.Decode(&r); err != nil {
			k.Fatalf("waiting for %s: %v", op, err)
		}
	}
	if r.Op != op {
		k.Fatalf("the starter says %+v, want %s", r, op)
	}
	return r
}

func (k *talk) running() {
	k.Helper()
	for _, op := range []string{protocol.OpReady, protocol.OpSandbox, protocol.OpTransferInStart, protocol.OpTransferInDone, protocol.OpRunning} {
		k.next(op)
	}
}

// passed is how much virtual time went by.
func (k *talk) passed() time.Duration { return time.Since(k.began) }

// end reads the last word and waits for the starter.
func (k *talk) end() protocol.ExitRecord {
	k.Helper()
	r := k.next(protocol.OpEnded)
	if err := k.out.Decode(&protocol.Report{}); err != io.EOF {
		k.Errorf("after the last word: %v", err)
	}
	if status := <-k.status; status != exitDone {
		k.Errorf("the starter exits %d: %s", status, k.stderr.String())
	}
	if entries, err := os.ReadDir(k.execute); err != nil || len(entries) != 0 {
		k.Errorf("EXECUTE holds %v (%v)", entries, err)
	}
	return *r.Record
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
			if r := k.next(protocol.OpUsage); k.passed() != at || r.Usage.UserCPU != time.Second || r.Usage.Procs != 1 {
				t.Errorf("after %v: %+v, want it after %v", k.passed(), r.Usage, at)
			}
		}
		k.next(protocol.OpTransferOutStart)
		k.next(protocol.OpTransferOutDone)
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
		k.next(protocol.OpUsage)
		k.next(protocol.OpUsage)
		if k.passed() != 50*time.Second {
			t.Errorf("the second report came after %v", k.passed())
		}
		k.next(protocol.OpTransferOutStart)
		k.next(protocol.OpTransferOutDone)
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
		k.send(protocol.Order{Op: protocol.OpSuspend})
		if r := k.next(protocol.OpSuspended); r.Count != 1 {
			t.Errorf("%+v", r)
		}
		k.send(protocol.Order{Op: protocol.OpSoftKill, Manner: protocol.MannerVacate, Asked: "startd", Reason: "PREEMPT", Code: 1011, Deadline: 5 * time.Second})
		k.next(protocol.OpContinued)
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
		for _, op := range []string{protocol.OpCheckpoint, "dance"} {
			k.send(protocol.Order{Op: op})
			if r := k.next(protocol.OpRefused); r.Order != op || !strings.Contains(r.Why, "unsupported") {
				t.Errorf("%+v", r)
			}
		}
		k.send(protocol.Order{Op: protocol.OpHardKill})
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
		k.send(protocol.Order{Op: protocol.OpHardKill, Reason: "KILL"})
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
		k.next(protocol.OpTransferOutStart)
		k.next(protocol.OpTransferOutDone)
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
// before it is told.
func TestOrphanStays(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		var onDisk protocol.ExitRecord
		k := newTalk(t, execute, sleeper(time.Hour, 5))
		k.plan(func(p *protocol.Plan) {
			p.Orphan = protocol.OrphanStay
			p.Settings = configured(t, "STARTER_INITIAL_UPDATE_INTERVAL = 100000\n")
		})
		k.running()
		k.in.Close()
		k.next(protocol.OpTransferOutStart)
		k.next(protocol.OpTransferOutDone)
		synctest.Wait() // it waits to say its last word
		text, err := os.ReadFile(filepath.Join(execute, "dir_1000/htcondor/exit.record"))
		if err == nil {
			err = json.Unmarshal(text, &onDisk)
		}
		rec := k.end()
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
		k.send(protocol.Order{Op: protocol.OpHardKill})
		k.end()
	})
}

func TestHeldAndReported(t *testing.T) {
	inBubble(t, func(t *testing.T, execute string) {
		k := newTalk(t, execute, deaf)
		k.plan(func(p *protocol.Plan) {
			p.JobAd = "Cmd = \"/bin/nothing\"\nArgs = \"a b\"\nShouldTransferFiles = \"YES\"\nTransferExecutable = false\nIwd = \"/\"\n"
		})
		for _, op := range []string{protocol.OpReady, protocol.OpSandbox, protocol.OpTransferInStart, protocol.OpTransferInDone} {
			k.next(op)
		}
		want := protocol.Hold{Code: 6, Subcode: 2, Reason: "Error from slot1@h: Failed to execute '/bin/nothing' with arguments a b: (errno=2: 'No such file or directory')"}
		if r := k.next(protocol.OpHeld); *r.Hold != want {
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
		k.next(protocol.OpReady)
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
		k.next(protocol.OpReady)
		if _, err := io.WriteString(k.in, "{nonsense\n"); err != nil {
			t.Fatal(err)
		}
		k.next(protocol.OpEnded)
		if status := <-k.status; status != exitSpoken || !strings.Contains(k.stderr.String(), "standard input: ") {
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

func FuzzReadOrders(f *testing.F) {
	for _, o := range []protocol.Order{
		{Op: protocol.OpPlan, Plan: &protocol.Plan{Activation: "a", JobAd: "A = \"\\\"x\"\n", Settings: configured(f, "JOB_RENICE_INCREMENT = TARGET.'a b'\n")}},
		{Op: protocol.OpSoftKill, Manner: protocol.MannerHold, Reason: "r\n", Code: 1011, Deadline: time.Second},
	} {
		line, err := json.Marshal(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(line, '\n'))
	}
	f.Add([]byte("{}\n{\"op\":1}\n"))
	f.Add([]byte("\n\n[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var l life
		n := 0
		_ = readOrders(bytes.NewReader(text), func(o protocol.Order) bool {
			n++
			l.ordered(o)
			return n < 100
		})
		if n > 100 {
			t.Errorf("%d orders after the last one wanted", n)
		}
	})
}

// A report is one line, whatever is in it.
func TestReportIsALine(t *testing.T) {
	t.Parallel()
	want := protocol.Report{
		Op: protocol.OpEnded, At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Dir: "/x \"y\"", Proc: &host.ProcID{PID: 1, Start: 2},
		Usage: &host.Usage{UserCPU: 3}, Hold: &protocol.Hold{Code: 1, Reason: "a\nb"}, Record: &protocol.ExitRecord{Evicted: true, Problems: []string{"p"}},
	}
	var b bytes.Buffer
	(&reporter{to: &b}).report(want)
	line, end := strings.CutSuffix(b.String(), "\n")
	var got protocol.Report
	if err := json.Unmarshal([]byte(line), &got); err != nil || !end || strings.Contains(line, "\n") {
		t.Fatal(err, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
