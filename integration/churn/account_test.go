// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package churn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

const (
	mostWrong = 20      // jobs that are told of, of those that are wrong in one way
	growth    = 1.25    // by which memory may be more than when it was warm
	slack     = 8 << 20 // and so many bytes
	spareFDs  = 3       // descriptors that may be more: connections that close by and by
)

// accounts looks each job up in the history: it completed exactly once with
// its right output, or we removed it.
func (w *world) accounts() {
	w.t.Helper()
	type final struct {
		times, status, code int
		signal              bool
		text                string
	}
	finals := make(map[id]*final)
	for line := range strings.Lines(w.pool.Tool("condor_history", "-af:t", "ClusterId", "ProcId", "JobStatus", "ExitCode", "ExitBySignal", "RemoveReason")) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) < 6 {
			w.t.Errorf("condor_history: %q", line)
			continue
		}
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(f[i]) // ExitCode is undefined for some
		}
		one := finals[id{n[0], n[1]}]
		if one == nil {
			one = &final{}
			finals[id{n[0], n[1]}] = one
		}
		one.times++
		one.status, one.code, one.signal, one.text = n[2], n[3], f[4] == "true", line
	}
	completed, removed, again := 0, 0, 0
	wrong := make(map[string][]string)
	blame := func(how string, e *entry, format string, args ...any) {
		wrong[how] = append(wrong[how], e.id.String()+": "+fmt.Sprintf(format, args...))
	}
	for _, e := range w.book.order {
		again += max(0, e.ran-1)
		f := finals[e.id]
		delete(finals, e.id)
		switch {
		case f == nil:
			blame("in no history", e, "submitted, and now neither in the queue nor in the history")
		case f.times != 1:
			blame("more than once in the history", e, "%d times", f.times)
		case f.status == 3 && e.removed:
			removed++
		case f.status != 4:
			blame("neither completed nor removed by us", e, "%s", f.text)
		case f.signal || f.code != e.spec.exit:
			blame("another end than its own", e, "exit %d, by signal %t; want exit %d", f.code, f.signal, e.spec.exit)
		default:
			completed++
			w.output(e, blame)
		}
	}
	for i := range maps.Keys(finals) {
		w.t.Errorf("job %s is in the history, and nobody submitted it", i)
	}
	for _, how := range slices.Sorted(maps.Keys(wrong)) {
		list := wrong[how]
		w.t.Errorf("%d jobs: %s:\n%s", len(list), how, strings.Join(list[:min(len(list), mostWrong)], "\n"))
	}
	w.t.Logf("%d jobs: %d completed, %d removed by us; %d times a job was begun again", len(w.book.order), completed, removed, again)
}

// output compares what a completed job left with what it had to.
func (w *world) output(e *entry, blame func(string, *entry, string, ...any)) {
	want := "result of " + e.id.String() + "\n"
	for i := range e.spec.files {
		want += input(i)
	}
	for _, one := range []struct{ name, want string }{{"result." + e.id.String(), want}, {"out." + e.id.String(), "ran " + e.id.String() + "\n"}} {
		got, err := os.ReadFile(filepath.Join(w.jobs, one.name))
		if errors.Is(err, fs.ErrNotExist) && e.back && w.ep.Name == realpool.Original {
			// A job that ended while its shadow was gone is told to the next one
			// without its output.
			w.t.Logf("%s: %s was lost on the way back", e.id, one.name)
		} else if err != nil {
			blame("no output", e, "%v", err)
		} else if string(got) != one.want {
			blame("wrong output", e, "%s has %q, want %q", one.name, got, one.want)
		}
	}
}

// rest is what there is when nothing is to be done.
type rest struct {
	descriptors []string
	processes   []string // names of all that belong to the pool
	resident    int64
	sessions    int // -1: it does not say
}

// rest waits until the EP has all back, and reads what it uses then.
func (w *world) rest() rest {
	w.t.Helper()
	limit := realpool.Patience
	var problems []error
	w.note("no job is left")
	defer func() { w.note("at rest") }()
	if err := realpool.Until(w.t.Context(), limit, 300*time.Millisecond, w.ep.Idle); err != nil {
		problems = append(problems, fmt.Errorf("claims: not everything is unclaimed and whole: %w", err))
	}
	if err := realpool.Until(w.t.Context(), 10*time.Second, 100*time.Millisecond, func(context.Context) error {
		if left := w.ep.Scratch(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	}); err != nil {
		problems = append(problems, fmt.Errorf("EXECUTE is not empty: %w", err))
	}
	var r rest
	if err := realpool.Until(w.t.Context(), limit, 300*time.Millisecond, func(context.Context) error {
		r.processes = nil
		var left []string
		all := w.pool.Processes()
		names := make(map[int]string, len(all))
		for _, one := range all {
			names[one.PID] = one.Name
		}
		for _, one := range all {
			r.processes = append(r.processes, one.Name)
			switch one.Name {
			case "condor_collecto", "condor_negotiat", "condor_schedd", "condor_startd", "condor_procd":
				// The collector and the schedd answer queries in children.
				if names[one.Parent] == one.Name {
					left = append(left, fmt.Sprintf("%s %d, a child of another", one.Name, one.PID))
				}
			case "condor_starter":
				// Ours keeps one ready for the next job.
				if one.Parent != w.ep.PID() {
					left = append(left, fmt.Sprintf("%s %d, whose parent is %d", one.Name, one.PID, one.Parent))
				}
			default:
				left = append(left, fmt.Sprintf("%s %d", one.Name, one.PID))
			}
		}
		if len(left) > 0 {
			return errors.New(strings.Join(left, ", "))
		}
		return nil
	}); err != nil {
		problems = append(problems, fmt.Errorf("processes are left: %w", err))
	}
	slices.Sort(r.processes)
	var err error
	r.descriptors, err = realpool.Descriptors(w.ep.PID())
	w.pool.Must(err)
	r.resident, err = realpool.Resident(w.ep.PID())
	w.pool.Must(err)
	r.sessions = -1
	out, err := w.pool.Run(w.t.Context(), "condor_status", "-direct", w.ep.Host(), "-startd", "-af", "MonitorSelfSecuritySessions")
	if n, bad := strconv.Atoi(strings.TrimSpace(out)); err == nil && bad == nil {
		r.sessions = n
	}
	for _, problem := range problems {
		w.t.Error(problem)
	}
	return r
}

// compare looks for what was lost on the way.
func (w *world) compare(before, after rest) {
	w.t.Helper()
	if !slices.Equal(before.processes, after.processes) {
		w.t.Errorf("processes: %v, before it was %v", after.processes, before.processes)
	}
	if len(after.descriptors) > len(before.descriptors)+spareFDs {
		w.t.Errorf("the EP has %d descriptors, before it had %d:\n%s", len(after.descriptors), len(before.descriptors), strings.Join(after.descriptors, "\n"))
	}
	warm, most := before.resident, sample{}
	var life []sample
	for _, s := range w.samples {
		if s.life == w.ep.Starts() {
			life = append(life, s)
		}
		most.descriptors, most.processes, most.resident = max(most.descriptors, s.descriptors), max(most.processes, s.processes), max(most.resident, s.resident)
	}
	for _, s := range life[:len(life)/3] {
		warm = max(warm, s.resident)
	}
	if limit := int64(float64(warm)*growth) + slack; after.resident > limit {
		w.t.Errorf("the EP has %d KiB in memory; warm it had %d KiB", after.resident>>10, warm>>10)
	}
	w.t.Logf("at rest: %d KiB (warm %d, most %d), %d descriptors (before %d, most %d), %d sessions (before %d), processes of the EP at most %d, of all %d (before %d); %d samples of the last of %d lives of the EP",
		after.resident>>10, warm>>10, most.resident>>10, len(after.descriptors), len(before.descriptors), most.descriptors, after.sessions, before.sessions,
		most.processes, len(after.processes), len(before.processes), len(life), w.ep.Starts())
}
