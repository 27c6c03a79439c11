// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package churn

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// The environment that chooses what is run.
const (
	lengthKnob = "EXECPOINT_TEST_CHURN"
	seedKnob   = "EXECPOINT_TEST_CHURN_SEED"
	epKnob     = "EXECPOINT_TEST_CHURN_EP"
	lessKnob   = "EXECPOINT_TEST_CHURN_WITHOUT"
)

const (
	shortLength = 8 * time.Second
	cpus        = 8
	mostIdle    = 40 // jobs that wait; more are not submitted meanwhile
	sampling    = 500 * time.Millisecond
	tending     = 20 * time.Millisecond // between looks at a daemon that is to end
	epLimit     = 30 * time.Second      // to shut down
	stuck       = 2 * time.Minute       // after which nothing is expected to happen to a queue
	lease       = 20                    // seconds for which a job outlives its shadow
)

// script is the job: what it was given is in its result.
const script = `#!/bin/sh
sleep "$2"
echo "result of $1" > result
for f in in0 in1 in2; do
	if [ -e $f ]; then cat $f >> result; fi
done
echo "ran $1"
exit "$3"
`

// world is the pool in which the churn goes on. One goroutine does everything.
type world struct {
	t       *testing.T
	pool    *realpool.Pool
	ep      *realpool.EP
	schedd  *realpool.Daemon
	book    *ledger
	jobs    string // the directory they are submitted from
	start   time.Time
	actions *os.File
	targets map[int]string // whom an action was done to, by its place in the plan
	samples []sample
	skipped int
	stopped []stopped
}

// stopped is a daemon that was told to end, to be started again then.
type stopped struct {
	daemon *realpool.Daemon
	why    action
	limit  time.Time
}

func TestMain(m *testing.M) { os.Exit(realpool.Main(m)) }

// sample is what the EP's daemon used at a moment.
type sample struct {
	life, descriptors, processes int
	resident                     int64
}

// TestChurn is half a day of a pool, in little time.
func TestChurn(t *testing.T) {
	length, short := shortLength, true
	if text := os.Getenv(lengthKnob); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			t.Fatalf("%s=%s: want a duration of at least 1s, as 10m", lengthKnob, text)
		}
		length, short = d, false
	} else {
		realpool.Patient(t)
	}
	seed := uint64(1)
	if text := os.Getenv(seedKnob); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%s: want a number", seedKnob, text)
		}
		seed = n
	}
	w := newWorld(t, cmp.Or(os.Getenv(epKnob), realpool.Ours))
	var without []what
	for name := range strings.SplitSeq(os.Getenv(lessKnob), ",") {
		without = append(without, what(strings.TrimSpace(name)))
	}
	if !w.pool.Version.AtLeast(24, 10, 0) {
		// A schedd before that leaves a suspended job whose shadow is killed suspended
		// for ever.
		without = append(without, suspend)
	}
	actions := plan(seed, length, short, without...)
	t.Logf("%v with %s=%d: %d actions", length, seedKnob, seed, len(actions))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what was done is in %s; again with %s=%d", w.actions.Name(), seedKnob, seed)
		}
	})

	w.submit([]spec{{files: 1}, {files: 2}, {}})
	w.drain(realpool.Patience)
	before := w.rest()
	w.start = time.Now()
	for i, a := range actions {
		w.until(w.start.Add(a.at))
		w.do(i, a)
	}
	w.until(w.start.Add(length))
	for len(w.stopped) > 0 {
		w.until(time.Now().Add(tending))
	}
	w.note("the jobs may come to their end")
	limit := realpool.Patience
	if !short {
		limit = 5 * time.Minute
	}
	w.drain(limit)
	t.Log(w.book.summary())
	if w.skipped > 0 {
		t.Logf("%d batches of jobs were not submitted, for more than %d jobs waited or the schedd did not answer", w.skipped, mostIdle)
	}
	w.accounts()
	w.compare(before, w.rest())
}

func newWorld(t *testing.T, kind string) *world {
	t.Helper()
	p := realpool.New(t, fmt.Sprintf("JOB_DEFAULT_LEASE_DURATION = %d\nSCHEDD.MAX_JOBS_RUNNING = 100\nSTARTD_DEBUG = D_FULLDEBUG D_SUB_SECOND\nSTARTER_DEBUG = D_FULLDEBUG D_SUB_SECOND\n"+
		"SHADOW_DEBUG = D_FULLDEBUG D_SUB_SECOND\nSCHEDD_DEBUG = D_SUB_SECOND\nMAX_DEFAULT_LOG = 1000000000\nMACHINE_RESOURCE_NAMES =\n", lease))
	w := &world{t: t, pool: p, jobs: filepath.Join(p.Dir, "jobs"), targets: make(map[int]string)}
	w.book = &ledger{path: filepath.Join(w.jobs, "log"), jobs: make(map[id]*entry), events: make(map[eventlog.Code]int)}
	p.Mkdir(w.jobs)
	p.Write(filepath.Join(w.jobs, "job.sh"), script, 0o755)
	p.Write(filepath.Join(w.jobs, "none"), "", 0o644)
	for i := range 3 {
		p.Write(filepath.Join(w.jobs, fmt.Sprintf("in%d", i)), input(i), 0o644)
	}
	var err error
	w.actions, err = os.Create(filepath.Join(p.Dir, "actions.log"))
	p.Must(err)
	t.Cleanup(func() { _ = w.actions.Close() })
	w.ep = p.NewEP(kind, cpus, "")
	w.schedd = p.Begin()
	w.ep.Begin()
	w.start = time.Now()
	return w
}

// input is the content of an input file.
func input(i int) string { return strings.Repeat(fmt.Sprintf("line of input %d\n", i), 10*(i+1)) }

// note writes down what was done.
func (w *world) note(format string, args ...any) {
	_, err := fmt.Fprintf(w.actions, "%8.3f   %s\n", time.Since(w.start).Seconds(), fmt.Sprintf(format, args...))
	w.pool.Must(err)
}

// stopping says whether a daemon was told to end and has not been started.
func (w *world) stopping(d *realpool.Daemon) bool {
	return slices.ContainsFunc(w.stopped, func(s stopped) bool { return s.daemon == d })
}

// restart tells a daemon to end; tend starts it again. Meanwhile the churn
// goes on.
func (w *world) restart(d *realpool.Daemon, why action, limit time.Duration) {
	if w.stopping(d) {
		w.note("it is ending already")
		return
	}
	d.Signal(end(why.how))
	w.stopped = append(w.stopped, stopped{d, why, time.Now().Add(limit)})
}

// tend starts again what has ended.
func (w *world) tend() {
	w.t.Helper()
	w.stopped = slices.DeleteFunc(w.stopped, func(s stopped) bool {
		if !s.daemon.Ended() {
			if time.Now().Before(s.limit) {
				return false
			}
			w.t.Errorf("%s: it did not end by itself; the last of its log:\n%s", s.why, realpool.Last(w.ep.Log("StartLog"), 20))
			s.daemon.Stop(syscall.SIGKILL, realpool.Patience)
		}
		s.daemon.Start()
		w.note("%s: it is started again", s.why.what)
		return true
	})
	for _, d := range []*realpool.Daemon{w.ep.Daemon, w.schedd} {
		if d.Ended() && !w.stopping(d) {
			w.t.Fatalf("a daemon ended by itself; the EP's log:\n%s", realpool.Last(w.ep.Log("StartLog"), 30))
		}
	}
}

// until samples the EP until a moment.
func (w *world) until(moment time.Time) {
	w.t.Helper()
	for {
		w.tend()
		left := time.Until(moment)
		if left <= 0 {
			return
		}
		step := sampling
		if len(w.stopped) > 0 {
			step = tending
		}
		wait := time.NewTimer(min(left, step))
		select {
		case <-w.t.Context().Done():
			wait.Stop()
			w.t.Fatal(w.t.Context().Err())
		case <-wait.C:
		}
		if left > sampling || len(w.samples) == 0 {
			w.sample()
		}
	}
}

func (w *world) sample() {
	pid := w.ep.PID()
	fds, err := realpool.Descriptors(pid)
	if err != nil {
		return // it is just being restarted, or ended, which until sees
	}
	resident, err := realpool.Resident(pid)
	if err != nil {
		return
	}
	w.samples = append(w.samples, sample{life: w.ep.Starts(), descriptors: len(fds), processes: len(realpool.Below(realpool.Everything(), pid)), resident: resident})
}

// submit submits jobs, all in one cluster.
func (w *world) submit(jobs []spec) {
	w.t.Helper()
	var b strings.Builder
	b.WriteString("executable = job.sh\narguments = $(Cluster).$(Process) $(length) $(code)\noutput = out.$(Cluster).$(Process)\nerror = err.$(Cluster).$(Process)\nlog = log\n" +
		"transfer_output_files = result\ntransfer_output_remaps = \"result = result.$(Cluster).$(Process)\"\n" +
		"should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\n")
	for _, s := range jobs {
		inputs := []string{"none"} // without any, a job has those of the cluster's first
		for i := range s.files {
			inputs = append(inputs, fmt.Sprintf("in%d", i))
		}
		fmt.Fprintf(&b, "length = %.3f\ncode = %d\ntransfer_input_files = %s\nqueue\n", s.length.Seconds(), s.exit, strings.Join(inputs, ","))
	}
	w.pool.Write(filepath.Join(w.jobs, "sub"), b.String(), 0o644)
	cmd := w.pool.Command(w.t.Context(), "condor_submit", "sub")
	cmd.Dir = w.jobs
	out, err := cmd.CombinedOutput()
	if err != nil { // the schedd is just starting
		w.note("condor_submit: %v\n%s", err, out)
		w.skipped++
		return
	}
	m := regexp.MustCompile(`(\d+) job\(s\) submitted to cluster (\d+)\.`).FindSubmatch(out)
	if m == nil || string(m[1]) != strconv.Itoa(len(jobs)) {
		w.t.Fatalf("condor_submit of %d jobs said %s", len(jobs), out)
	}
	cluster, err := strconv.Atoi(string(m[2]))
	w.pool.Must(err)
	w.book.add(cluster, jobs)
	w.note("cluster %d", cluster)
}

// do does one action of the plan.
func (w *world) do(place int, a action) {
	w.t.Helper()
	w.pool.Must(w.book.update())
	w.note("%s", a)
	job := func(states ...state) (*entry, bool) {
		some := w.book.in(states...)
		if len(some) == 0 {
			return nil, false
		}
		return some[a.pick%uint64(len(some))], true
	}
	var how []string
	if a.how == fast {
		how = []string{"-fast"}
	}
	switch a.what {
	case submit:
		if len(w.book.in(idle)) > mostIdle || w.stopping(w.schedd) {
			w.skipped++
			return
		}
		w.submit(a.jobs)
	case vacateJob:
		if e, ok := job(running); ok {
			w.tool("condor_vacate_job", append(how, e.id.String())...)
		}
	case vacateSlot:
		out, err := w.pool.Run(w.t.Context(), "condor_status", "-direct", w.ep.Host(), "-constraint", "DynamicSlot", "-af", "Name")
		if names := strings.Fields(out); err == nil && len(names) > 0 {
			w.tool("condor_vacate", append(how, names[a.pick%uint64(len(names))])...)
		}
	case vacateAll:
		if out, err := w.pool.Run(w.t.Context(), "condor_status", "-direct", w.ep.Host(), "-constraint", "PartitionableSlot", "-af", "MyAddress"); err == nil {
			w.tool("condor_vacate", append(how, "-addr", strings.TrimSpace(out))...)
		}
	case hold:
		if e, ok := job(running, running, idle); ok {
			w.targets[place] = e.id.String()
			w.tool("condor_hold", e.id.String())
		}
	case suspend:
		if e, ok := job(running); ok {
			w.targets[place] = e.id.String()
			w.tool("condor_suspend", e.id.String())
		}
	case release, resume:
		if target := w.targets[a.of]; target != "" {
			w.tool(string(a.what), target)
		}
	case remove:
		if e, ok := job(running, idle, held); ok {
			e.removed = true
			w.tool("condor_rm", e.id.String())
		}
	case killShadow:
		var shadows []int
		for _, one := range w.pool.Processes() {
			if one.Name == "condor_shadow" && one.State != 'Z' {
				shadows = append(shadows, one.PID)
			}
		}
		if len(shadows) > 0 {
			pid := shadows[a.pick%uint64(len(shadows))]
			w.note("shadow %d: %v", pid, syscall.Kill(pid, syscall.SIGKILL))
		}
	case restartEP:
		w.restart(w.ep.Daemon, a, epLimit)
	case restartAP:
		w.restart(w.schedd, a, realpool.Patience)
	}
}

// end is the signal by which a daemon ends so.
func end(how string) syscall.Signal {
	switch how {
	case fast:
		return syscall.SIGQUIT
	case byKill:
		return syscall.SIGKILL
	default:
		return syscall.SIGTERM
	}
}

// tool runs one whose job may be gone by now.
func (w *world) tool(name string, args ...string) {
	out, err := w.pool.Run(w.t.Context(), name, args...)
	if err != nil {
		w.note("%v", err)
		return
	}
	w.note("%s %s: %s", name, strings.Join(args, " "), strings.TrimSpace(out))
}

// drain lets all jobs come to their end.
func (w *world) drain(limit time.Duration) {
	w.t.Helper()
	blamed := make(map[string]bool)
	last, since := "", time.Now()
	err := realpool.Until(w.t.Context(), limit, 300*time.Millisecond, func(ctx context.Context) error {
		w.tend()
		w.sample()
		out, err := w.pool.Run(ctx, "condor_q", "-allusers", "-af:t", "ClusterId", "ProcId", "JobStatus", "HoldReasonCode", "HoldReason")
		if err != nil || strings.TrimSpace(out) == "" {
			return err
		}
		for line := range strings.Lines(out) {
			f := strings.SplitN(strings.TrimSpace(line), "\t", 5)
			if len(f) < 5 {
				continue
			}
			name := f[0] + "." + f[1]
			switch f[2] {
			case "5":
				if f[3] != "1" && !blamed[name] { // 1: by a user
					blamed[name] = true
					w.t.Errorf("job %s was held by nobody: code %s: %s", name, f[3], f[4])
				}
				w.tool("condor_release", name)
			case "7":
				w.tool("condor_continue", name)
			}
		}
		if out != last {
			last, since = out, time.Now()
		}
		if time.Since(since) > stuck {
			w.t.Fatalf("nothing happens to these jobs any more:\n%s\nStartLog:\n%s", out, realpool.Last(w.ep.Log("StartLog"), 20))
		}
		return fmt.Errorf("%d jobs are in the queue", strings.Count(out, "\n"))
	})
	if err != nil {
		w.t.Fatalf("not all jobs came to an end within %v: %v:\n%s\nStartLog:\n%s", limit, err, last, realpool.Last(w.ep.Log("StartLog"), 20))
	}
	w.pool.Must(w.book.update())
}
