// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package churn

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// state of a job as the event log tells it.
type state uint8

const (
	idle state = iota
	running
	suspended
	held
	gone
)

// id names a job.
type id struct{ cluster, proc int }

// String is as the tools write and read it.
func (i id) String() string { return fmt.Sprintf("%d.%d", i.cluster, i.proc) }

// entry is what is known of one job.
type entry struct {
	id      id
	spec    spec
	state   state
	removed bool // we asked for that
	ran     int  // executions that were begun
	ended   int  // events of its termination
	back    bool // a shadow took it up again
}

// ledger follows all jobs through their one event log.
type ledger struct {
	path   string
	read   int64
	jobs   map[id]*entry
	order  []*entry
	events map[eventlog.Code]int
}

// add enters jobs that were submitted.
func (l *ledger) add(cluster int, jobs []spec) {
	for i, s := range jobs {
		e := &entry{id: id{cluster, i}, spec: s}
		l.jobs[e.id] = e
		l.order = append(l.order, e)
	}
}

// update reads what was added to the event log. Events of jobs that are not
// entered wait until they are.
func (l *ledger) update() error {
	f, err := os.Open(l.path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text := make([]byte, info.Size()-l.read)
	if _, err := f.ReadAt(text, l.read); err != nil {
		return err
	}
	from := l.read
	for ev := range realpool.Events(string(text)) {
		if !l.enter(ev) {
			break
		}
		l.read = from + int64(ev.End)
	}
	return nil
}

// enter takes one event; false if its job is not known yet.
func (l *ledger) enter(ev realpool.Event) bool {
	e := l.jobs[id{ev.Cluster, ev.Proc}]
	if e == nil {
		return false
	}
	l.events[ev.Code]++
	switch ev.Code {
	case eventlog.CodeExecute:
		e.state = running
		e.ran++
	case eventlog.CodeEvicted, eventlog.CodeShadowException, eventlog.CodeReconnectFailed:
		if e.state != held {
			e.state = idle
		}
	case eventlog.CodeReleased:
		e.state = idle
	case eventlog.CodeSuspended:
		e.state = suspended
	case eventlog.CodeReconnected:
		e.back = true
		e.state = running
	case eventlog.CodeUnsuspended:
		e.state = running
	case eventlog.CodeHeld:
		e.state = held
	case eventlog.CodeTerminated:
		e.state = gone
		e.ended++
	case eventlog.CodeAborted:
		e.state = gone
	}
	return true
}

// in returns the jobs that are in one of the states.
func (l *ledger) in(states ...state) []*entry {
	var some []*entry
	for _, e := range l.order {
		for _, s := range states {
			if e.state == s {
				some = append(some, e)
			}
		}
	}
	return some
}

// summary counts the events.
func (l *ledger) summary() string {
	var b strings.Builder
	for _, one := range []struct {
		code eventlog.Code
		name string
	}{
		{eventlog.CodeSubmit, "submitted"}, {eventlog.CodeExecute, "executions"}, {eventlog.CodeTerminated, "terminated"}, {eventlog.CodeAborted, "removed"}, {eventlog.CodeEvicted, "evicted"},
		{eventlog.CodeHeld, "held"}, {eventlog.CodeReleased, "released"}, {eventlog.CodeSuspended, "suspended"}, {eventlog.CodeUnsuspended, "continued"}, {eventlog.CodeShadowException, "shadow exceptions"},
		{eventlog.CodeDisconnected, "disconnected"}, {eventlog.CodeReconnected, "reconnected"}, {eventlog.CodeReconnectFailed, "not reconnected"},
	} {
		fmt.Fprintf(&b, "%d %s, ", l.events[one.code], one.name)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

func TestLedger(t *testing.T) {
	t.Parallel()
	l := &ledger{path: t.TempDir() + "/log", jobs: map[id]*entry{}, events: map[eventlog.Code]int{}}
	l.add(3, make([]spec, 2))
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			err = l.update()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		text  string
		first state
		ran   int
	}{
		{"", idle, 0},
		{"000 (003.000.000) 2026-11-20 22:00:00 Job submitted from host: <127.0.0.1>\n...\n", idle, 0},
		{"001 (003.000.000) 2026-11-20 22:00:01 Job executing on host: <127.0.0.1>\n\tSlotName: slot1_1\n...\n010 (003.000", running, 1},
		{".000) 2026-11-20 22:00:02 Job was suspended.\n\tNumber of processes actually suspended: 1\n...\n", suspended, 1},
		{"012 (003.000.000) 2026-11-20 22:00:02 Job was held.\n\tvia condor_hold\n...\n004 (003.000.000) 2026-11-20 22:00:02 Job was evicted.\n...\n", held, 1},
		{"001 (004.000.000) 2026-11-20 22:00:03 Job executing on host: <127.0.0.1>\n...\n013 (003.000.000) 2026-11-20 22:00:03 Job was released.\n...\n", held, 1},
	} {
		write(tt.text)
		if e := l.order[0]; e.state != tt.first || e.ran != tt.ran {
			t.Errorf("after %q: state %d, %d executions; want %d, %d", tt.text, e.state, e.ran, tt.first, tt.ran)
		}
	}
	l.add(4, make([]spec, 1)) // what was waiting for it is read now
	write("")
	if a, b := l.order[0].state, l.order[2].state; a != idle || b != running {
		t.Errorf("states %d and %d, want %d and %d", a, b, idle, running)
	}
	if got := len(l.in(idle)); got != 2 {
		t.Errorf("%d jobs are idle, want 2", got)
	}
}
