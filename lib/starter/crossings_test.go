// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// soon is the shadow's end of the conversation, which has to come.
func (p *pool) soon() shadowtest.End {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Second)
	defer cancel()
	select {
	case end := <-p.ended:
		return end
	case <-ctx.Done():
		p.Fatalf("the shadow hears no end: %v", p.calls())
		return shadowtest.End{}
	}
}

// exits is a log in which a starter says that its job has exited, which closes the
// channel.
func exits(h *Host) <-chan struct{} {
	exited := make(chan struct{})
	h.OpenLog = func(protocol.LogPlan) (*slog.Logger, time.Time, error) {
		return slog.New(messages(func(text string) {
			if strings.HasPrefix(text, "Process exited, ") {
				close(exited)
			}
		})), time.Time{}, nil
	}
	return exited
}

// A job whose last words cannot be written at the submit machine is held, however
// late that shows: what the job wrote is lost.
func TestStreamFailsAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, ad string
		call     shadow.Call // that the shadow refuses
	}{
		{"a write, before output is sent", "", shadow.CallWrite},
		{"the sync, before output is sent", "", shadow.CallFsync},
		{"the sync of a job without output", "ShouldTransferFiles = \"NO\"\nCmd = \"/data/u/job\"\n", shadow.CallFsync},
		{"a write, before its state is saved", "WantFTOnCheckpoint = true\nTransferCheckpoint = \"\"\n", shadow.CallWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			used := make(chan struct{}, 4)
			var exited <-chan struct{}
			p := startPool(t, "StreamOut = true\n"+c.ad, func(h *hosttest.Process) host.ExitStatus {
				defer func() { used <- struct{}{} }()
				if _, err := io.WriteString(h.Spec().Stdout, "the last words"); err != nil {
					return host.ExitStatus{Exited: true, Code: 97}
				}
				return host.ExitStatus{Exited: true}
			}, func(h *Host) {
				h.Spawner = slowSpawner{h.Spawner, used}
				exited = exits(h)
			}, func(p *pool, plan *protocol.Plan) {
				plan.Log = &protocol.LogPlan{}
				p.shadow.Misbehave(func(_ int, request *shadow.Request, reply *shadow.Reply) shadowtest.Action {
					if request.Call == c.call {
						<-exited
						*reply = shadow.Reply{Value: -1, Errno: cedar.ENOSPC}
					}
					return shadowtest.Send
				})
			})
			rec := p.last()
			end := p.soon()
			if end.Held == nil || rec.Held == nil || rec.Held.Code != 9 || rec.Held.Subcode != 28 {
				t.Errorf("%+v, %+v", end, rec)
			}
		})
	}
}

// A job of which somebody outside holds the stream open ends all the same, with all
// that it wrote itself.
func TestStreamHeldOpen(t *testing.T) {
	t.Parallel()
	used := make(chan struct{}, 1)
	var other *os.File
	p := newPoolOn(t, "StreamOut = true\n", func(h *hosttest.Process) host.ExitStatus {
		defer func() { used <- struct{}{} }()
		out := h.Spec().Stdout
		var err error
		if other, err = os.OpenFile(fmt.Sprintf("/dev/fd/%d", out.Fd()), os.O_WRONLY, 0); err != nil {
			return host.ExitStatus{Exited: true, Code: 98}
		}
		if _, err = io.WriteString(out, "mine"); err != nil {
			return host.ExitStatus{Exited: true, Code: 97}
		}
		return host.ExitStatus{Exited: true}
	}, func(h *Host) { h.Spawner = slowSpawner{h.Spawner, used} })
	end := p.soon()
	rec := p.last()
	defer other.Close()
	if end.Exit == nil || rec.Status.Code != 0 {
		t.Fatalf("%+v, %+v", end, rec)
	}
	if text, err := os.ReadFile(filepath.Join(p.submit, "out.txt")); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

// A job with streams that cannot be started again after its state was saved is
// held: its shadow does not wait for words of a run that does not begin.
func TestStreamsOfARunThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	used := make(chan struct{}, 4)
	p := newPoolOn(t, "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\nTransferCheckpoint = \"\"\nStreamOut = true\nIn = \"in\"\n", func(h *hosttest.Process) host.ExitStatus {
		defer func() { used <- struct{}{} }()
		if err := os.Remove(filepath.Join(h.Spec().Dir, "in")); err != nil {
			return host.ExitStatus{Exited: true, Code: 97}
		}
		return host.ExitStatus{Exited: true, Code: 85}
	}, func(h *Host) { h.Spawner = slowSpawner{h.Spawner, used} }, "in")
	end := p.soon()
	if rec := p.last(); end.Held == nil || rec.Held == nil || rec.Held.Code != 8 {
		t.Errorf("%+v, %+v", end, rec)
	}
}

// A job that is to be held before its shadow was spoken to is held as soon as that
// can be said.
func TestHeldBeforeTheConversation(t *testing.T) {
	t.Parallel()
	begun, ordered := make(chan struct{}), make(chan struct{})
	p := newPoolOn(t, "", untilKilled, func(h *Host) {
		socket := h.Socket
		h.Socket = func() (net.Conn, error) {
			close(begun)
			<-ordered
			return socket()
		}
	})
	<-begun
	p.send(protocol.HardKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Reason: "WANT_HOLD is true", Code: 21}}, protocol.Checkpoint{})
	until[protocol.Refused](p) // of the second order: the first was carried out
	close(ordered)
	end := p.soon()
	if rec := p.last(); end.Held == nil || rec.Held == nil || rec.Held.Code != 21 {
		t.Errorf("%+v, %+v", end, rec)
	}
}

// What a run has used that is being saved counts once, whatever is measured
// meanwhile.
func TestSavedRunCountsOnce(t *testing.T) {
	t.Parallel()
	runs, enough := 0, make(chan struct{})
	p := newPoolPlan(t, "WantFTOnCheckpoint = true\nSuccessCheckpointExitCode = 85\nTransferCheckpoint = \"\"\n", func(h *hosttest.Process) host.ExitStatus {
		if runs++; runs == 1 {
			h.Use(host.Usage{UserCPU: 2 * time.Second})
			return host.ExitStatus{Exited: true, Code: 85}
		}
		<-enough
		return host.ExitStatus{Exited: true}
	}, func(_ *pool, plan *protocol.Plan) {
		set := *plan.Settings
		set.FirstUpdate, set.Update = time.Millisecond, time.Millisecond
		plan.Settings = &set
	})
	var most time.Duration
	for begun := 0; begun < 2; {
		switch r := (<-p.said).(type) {
		case protocol.Usage:
			most = max(most, r.Usage.UserCPU)
		case protocol.Running:
			begun++
		case nil:
			t.Fatal("the starter has ended")
		}
	}
	close(enough)
	rec := p.last()
	p.soon()
	for _, c := range p.shadow.Calls() {
		if c.Request.Call == shadow.CallRegisterJobInfo {
			cpu, _ := c.Request.Ad.EvalReal("RemoteUserCpu", nil)
			most = max(most, time.Duration(cpu)*time.Second)
		}
	}
	if most != 2*time.Second || rec.Usage.UserCPU != 2*time.Second {
		t.Errorf("at most %v was told, and %v at the end; want 2 s", most, rec.Usage.UserCPU)
	}
}

// endsFirst closes ended when the program has ended, and returns from Spawn when free
// is closed.
type endsFirst struct {
	host.Spawner
	ended, free chan struct{}
}

func (s endsFirst) Spawn(spec host.SpawnSpec) (host.Family, error) {
	f, err := s.Spawner.Spawn(spec)
	if err == nil {
		<-f.Done()
		close(s.ended)
		<-s.free
	}
	return f, err
}

// A job that had ended by itself when the order to leave came is not evicted.
func TestEndedBeforeTheOrder(t *testing.T) {
	t.Parallel()
	for _, o := range []protocol.Order{
		protocol.SoftKill{Leave: protocol.Leave{Reason: "PREEMPT", Code: 1011}}, protocol.HardKill{Leave: protocol.Leave{Reason: "PREEMPT", Code: 1011}},
	} {
		for range 20 { // which of the two is seen first was a matter of luck
			ended, ordered := make(chan struct{}), make(chan struct{})
			k := newTalk(t, t.TempDir(), func(*hosttest.Process) host.ExitStatus { return host.ExitStatus{Exited: true, Code: 3} },
				func(h *Host) { h.Spawner = endsFirst{h.Spawner, ended, ordered} })
			k.plan(nil)
			k.hears("sandbox", "transfer-in-start", "transfer-in-done")
			<-ended
			k.send(o, protocol.Ping{})
			for taken := 0; taken < 2; { // the second is taken when the first was handed on
				line, ok := k.heard()
				if !ok {
					t.Fatal("the starter has ended")
				}
				if _, is := line.Message.(protocol.Taken); is {
					taken++
				}
			}
			close(ordered)
			var rec protocol.ExitRecord
			for r := k.report(); r != nil; r = k.report() {
				if e, ok := r.(protocol.Ended); ok {
					rec = e.Record
				}
			}
			<-k.status
			if rec.Evicted || rec.Status.Code != 3 {
				t.Fatalf("%s: %+v", o.Kind(), rec)
			}
		}
	}
}

// The first line of a program that was not executed is read with the rights of the
// job's user: what lies there may by now be a pipe, a device or another's file.
func TestInterpreterIsReadAsTheUser(t *testing.T) {
	t.Parallel()
	iwd := t.TempDir()
	script := filepath.Join(iwd, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/shell\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for closed, want := range map[string]string{
		"":       "Failed to execute '" + script + "': invalid interpreter (/no/such/shell) specified on first line of script (errno=2: 'No such file or directory')",
		"script": "Failed to execute '" + script + "': (errno=2: 'No such file or directory')",
	} {
		files := &access{closed: closed}
		k := newTalk(t, t.TempDir(), sleeper(0, 0), func(h *Host) { h.Access = files })
		k.plan(func(p *protocol.Plan) {
			p.RunAs = &host.Identity{Name: "boinc", UID: uint32(max(os.Getuid(), 1)), GID: uint32(max(os.Getgid(), 1))}
			p.JobAd = fmt.Sprintf("Cmd = %q\nIwd = %q\nShouldTransferFiles = \"NO\"\n", script, iwd)
		})
		var held *protocol.Hold
		for r := k.report(); r != nil; r = k.report() {
			if e, ok := r.(protocol.Ended); ok {
				held = e.Record.Held
			}
		}
		<-k.status
		if held == nil || held.Reason != "Error from slot1@h: "+want || !slices.Contains(files.calls, "boinc reads script") {
			t.Errorf("%+v, %q", held, files.calls)
		}
	}
}

// Work that was given up although nothing ended the job is no success: the job does not
// start without its input, and is not over without its output.
func TestGivenUpForNoReason(t *testing.T) {
	t.Parallel()
	a := &activation{life: life{phase: preparing, remote: true}, plan: &protocol.Plan{}}
	if duties := a.brought(job.Brought{}, context.Canceled); !slices.Equal(duties, []duty{dutyTell}) || a.life.evicted == nil {
		t.Errorf("without input: duties %v, evicted %+v", duties, a.life.evicted)
	}
	a = &activation{life: life{phase: finishing, remote: true, ran: true}, plan: &protocol.Plan{}, holds: job.Holds{Errno: hosttest.Errno}}
	if duties := a.sent(job.All, job.Sent{}, context.Canceled); !slices.Equal(duties, []duty{dutyTell}) || a.life.hold == nil || a.life.hold.Code != 12 {
		t.Errorf("without output: duties %v, hold %+v", duties, a.life.hold)
	}
}

// A shadow does not take up a job that its starter has given up.
func TestGivenUpIsBusy(t *testing.T) {
	t.Parallel()
	for lost, want := range map[bool]bool{true: true, false: false} {
		if a := (&activation{life: life{phase: running, apart: true, lost: lost}}); a.Busy() != want {
			t.Errorf("lost %v: busy %v", lost, a.Busy())
		}
	}
}
