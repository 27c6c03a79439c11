// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// short is a machine on which no program can be started.
type short struct{ *hosttest.Machine }

var errFork = errors.New("fork failed")

func (short) Spawn(host.SpawnSpec) (host.Family, error) { return nil, errFork }

// unlimited is a machine on which the limits of a job cannot be applied.
type unlimited struct{ *hosttest.Machine }

func (unlimited) Spawn(host.SpawnSpec) (host.Family, error) {
	return nil, fmt.Errorf("%w: memory.oom.group: no such device", host.ErrLimit)
}

// without makes a host short of what an error number says.
func without(number int) func(*Host) {
	return func(h *Host) {
		h.Spawner = short{hosttest.New()}
		h.Errno = func(err error) (int, string, bool) { return number, "no luck", errors.Is(err, errFork) }
	}
}

// full takes every error for a full disk.
func full(error) (int, string, bool) { return errnoNoSpace, "No space left on device", true }

// What is the machine's fault is said to be so, and the shadow never counts the
// job as started: it hears of no beginning, and of no exit either, which it would
// take for one.
func TestFaultShadow(t *testing.T) {
	t.Parallel()
	gone := func(_ *pool, plan *protocol.Plan) { plan.Execute = filepath.Join(plan.Execute, "gone") }
	for _, c := range []struct {
		name   string
		host   func(*Host)
		plan   func(*pool, *protocol.Plan)
		code   int // that the shadow is told
		sub    int
		text   string
		fault  protocol.Fault
		reason string // a part of the fault's
	}{
		{"EXECUTE is gone", nil, gone, int(reason.ScratchDirError), 0, "no such file", protocol.Fault{Kind: protocol.FaultExecute}, "/gone"},
		{"EXECUTE is full", func(h *Host) { h.Errno = full }, gone, 12, 28, "(errno 28) No space left on device", protocol.Fault{Kind: protocol.FaultExecute}, "/gone"},
		{"no processes", without(errnoAgain), nil, int(reason.StarterError), 0,
			"no means to start", protocol.Fault{Kind: protocol.FaultSpawn}, "fork failed"},
		{"no memory", without(errnoNoMemory), nil, int(reason.StarterError), 0,
			"no means to start", protocol.Fault{Kind: protocol.FaultSpawn}, "fork failed"},
		{"a limit that fails", func(h *Host) { h.Spawner = unlimited{hosttest.New()} }, nil, int(reason.StarterError), 0,
			"memory.oom.group", protocol.Fault{Kind: protocol.FaultSpawn, Doubtful: true}, "a limit of the process cannot be applied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.host == nil {
				c.host = func(*Host) {}
			}
			if c.plan == nil {
				c.plan = func(*pool, *protocol.Plan) {}
			}
			p := startPool(t, "", untilKilled, c.host, c.plan)
			rec := p.last()
			end := <-p.ended
			if end.Held == nil {
				t.Fatalf("%+v of %v", end, p.calls())
			}
			ad := end.Held.Ad
			code, _ := ad.EvalInt("HoldReasonCode", nil)
			sub, _ := ad.EvalInt("HoldReasonSubCode", nil)
			if text, _ := ad.EvalString("ErrorMsg", nil); code != int64(c.code) || sub != int64(c.sub) || !strings.Contains(text, c.text) {
				t.Errorf("%s", ad.Text(classad.Old))
			}
			for _, call := range []string{"begin_execution", "job_exit", "job_termination"} {
				if slices.Contains(p.calls(), call) {
					t.Errorf("the shadow was told of %s: %v", call, p.calls())
				}
			}
			if rec.Fault == nil || !strings.Contains(rec.Fault.Reason, c.reason) {
				t.Fatalf("fault %+v", rec.Fault)
			}
			got := *rec.Fault
			got.Reason = ""
			if d := cmp.Diff(c.fault, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A job of the embedded access point is held by a full disk as one of a pool is.
func TestFaultFull(t *testing.T) {
	t.Parallel()
	k := newTalk(t, filepath.Join(t.TempDir(), "gone"), untilKilled, func(h *Host) { h.Errno = full })
	k.plan(nil)
	next[protocol.Held](k)
	rec := next[protocol.Ended](k).Record
	if status := <-k.status; status != exitDone {
		t.Errorf("the starter exits %d: %s", status, k.stderr.String())
	}
	if h := rec.Held; h == nil || h.Code != int(reason.TransferInputError) || h.Subcode != 28 || !strings.Contains(h.Reason, "No space left on device") {
		t.Errorf("%+v", rec.Held)
	}
	if f := rec.Fault; f == nil || f.Kind != protocol.FaultExecute || f.Doubtful {
		t.Errorf("%+v", rec.Fault)
	}
}

// TestFaultHold tells the holds that may be the machine's fault from those that
// are not.
func TestFaultHold(t *testing.T) {
	t.Parallel()
	moved, stays := &job.Job{Moves: true}, &job.Job{}
	for _, c := range []struct {
		name   string
		job    *job.Job
		hold   *protocol.Hold
		shadow bool
		ran    bool
		fault  bool
	}{
		{"input that does not fit", moved, &protocol.Hold{Code: 12, Subcode: 28}, true, false, true},
		{"over the quota", moved, &protocol.Hold{Code: 12, Subcode: 122}, true, false, true},
		{"a bad disk", moved, &protocol.Hold{Code: 6, Subcode: 5}, true, false, true},
		{"no room for standard output", moved, &protocol.Hold{Code: 7, Subcode: 28}, false, false, true},
		{"here input is 13", moved, &protocol.Hold{Code: 13, Subcode: 28}, false, false, true},
		{"the access point cannot read", moved, &protocol.Hold{Code: 13, Subcode: 5}, true, false, false},
		{"no such program", moved, &protocol.Hold{Code: 6, Subcode: 2}, true, false, false},
		{"a full home directory", stays, &protocol.Hold{Code: 7, Subcode: 28}, true, false, false},
		{"after it ran", moved, &protocol.Hold{Code: 12, Subcode: 28}, true, true, false},
		{"another code", moved, &protocol.Hold{Code: 34, Subcode: 28}, true, false, false},
		{"no hold", moved, nil, true, false, false},
	} {
		a := &activation{setup: setup{job: c.job}, plan: &protocol.Plan{}, life: life{hold: c.hold, ran: c.ran}}
		if c.shadow {
			a.plan.Shadow = &protocol.ShadowSide{}
		}
		a.blameHold()
		if f := a.record.Fault; (f != nil) != c.fault || f != nil && (!f.Doubtful || f.Kind != protocol.FaultExecute) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
