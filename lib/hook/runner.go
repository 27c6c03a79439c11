// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// maxKept is how many bytes of what is only logged are kept of one run.
const maxKept = 64 << 10

// lastWords is how long output is read on when nothing of the program should
// be left to write.
const lastWords = 2 * time.Second

// markName begins the variable by which the descendants of a run are found.
const markName = "_CONDOR_HOOK_RUN="

// Runner starts programs. Its fields do not change while it is used.
type Runner struct {
	Spawner host.Spawner
	Census  host.Census // finds by their mark those who left the family; nil does without
	Env     []string    // what every program finds in its environment, as NAME=value
	Dir     string      // working directory of jobs that do not have their own

	Hangup, Terminate int           // the system's numbers of SIGHUP and SIGTERM; 0 for none
	Grace             time.Duration // between the request to end and the end by force
}

// Report is how one run went.
type Report struct {
	Job       string
	Status    host.ExitStatus // zero if it could not be started
	Err       error           // could not be started, took too long, or printed what is no text
	Bad       []BadLine       // lines that were left out, the first of them
	MoreBad   int             // how many came after
	Output    []byte          // what it printed after its last separator, cut at 64 KiB
	Stderr    []byte          // cut at 64 KiB
	Leftovers int             // processes that outlived the program and were ended
}

// Failed reports whether the program did not end with status 0.
func (r *Report) Failed() bool { return !r.Status.Success() }

// Log tells what was not as it should be. With failures (LOG_NON_ZERO_EXIT) a
// program that failed is told with what it printed and was not published yet,
// and all that it wrote to its standard error.
func (r *Report) Log(ctx context.Context, log *slog.Logger, failures bool) {
	if r.Err != nil {
		log.ErrorContext(ctx, "hook went wrong", "hook", r.Job, "err", r.Err)
	}
	for _, b := range r.Bad {
		log.WarnContext(ctx, "hook printed a bad line", "hook", r.Job, "err", b)
	}
	if r.MoreBad > 0 {
		log.WarnContext(ctx, "hook printed more bad lines", "hook", r.Job, "count", r.MoreBad)
	}
	if r.Leftovers > 0 {
		log.WarnContext(ctx, "hook left processes behind, which were ended", "hook", r.Job, "count", r.Leftovers)
	}
	if failures && r.Failed() {
		log.ErrorContext(ctx, "hook failed", "hook", r.Job, "status", r.Status.String(), "stdout", string(r.Output), "stderr", string(r.Stderr))
	}
}

// Run is one program that was started.
type Run struct {
	runner *Runner
	family host.Family
	done   chan struct{}
	report Report // valid once done is closed

	mu      sync.Mutex
	printed bool // a block came: the program knows its business
	timer   *time.Timer
}

// Done is closed when nothing of the program is left and all its output was
// handed out.
func (r *Run) Done() <-chan struct{} { return r.done }

// Report tells how it went. It waits for Done.
func (r *Run) Report() *Report {
	<-r.done
	return &r.report
}

// Hangup sends SIGHUP, but not before the first output: a program that has not
// got so far would die of it.
func (r *Run) Hangup() error {
	r.mu.Lock()
	printed := r.printed
	r.mu.Unlock()
	if !printed || r.runner.Hangup == 0 {
		return nil
	}
	return r.family.Signal(r.runner.Hangup)
}

// Stop asks the program to end and ends its family after the grace.
func (r *Run) Stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		return nil
	}
	kill := func() { r.family.Kill() } // what is left is found again by Close
	if r.runner.Terminate == 0 || r.runner.Grace <= 0 {
		r.timer = time.AfterFunc(0, kill)
		return nil
	}
	r.timer = time.AfterFunc(r.runner.Grace, kill)
	return r.family.Signal(r.runner.Terminate)
}

// Start starts a job. Each block that it prints is handed to publish, one at a
// time and none after Done. When ctx ends, so does the family, at once and by
// force. When the program ends, what it left behind is ended too.
func (r *Runner) Start(ctx context.Context, job Job, publish func(Block)) (*Run, error) {
	parser := &Parser{Prefix: job.Prefix}
	dir := job.Dir
	if dir == "" {
		dir = r.Dir
	}
	run := &Run{runner: r, done: make(chan struct{}), report: Report{Job: job.Name}}
	var kept tail
	feed := func(piece []byte) error {
		blocks := parser.Feed(piece)
		for _, b := range blocks {
			run.mu.Lock()
			run.printed = true
			run.mu.Unlock()
			publish(b)
		}
		kept.feed(piece)
		return parser.Refused()
	}
	finish := func() {
		for _, b := range parser.End() {
			publish(b)
		}
		run.report.Bad, run.report.MoreBad, run.report.Output = parser.Bad, parser.More, kept.text
		if err := parser.Refused(); err != nil {
			run.report.Err = errors.Join(err, run.report.Err)
		}
	}
	return run, r.start(ctx, run, host.SpawnSpec{Path: job.Path, Args: job.Args, Env: r.environ(job.Env), Dir: dir, Bond: host.Bound}, feed, finish)
}

// environ is the runner's environment with what a job adds or replaces.
func (r *Runner) environ(add []string) []string {
	env := slices.Clone(r.Env)
	for _, entry := range add {
		name, _, _ := strings.Cut(entry, "=")
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	}
	return append(env, add...)
}

// start starts what spec says. Pieces of its output go to feed until that
// refuses; finish is called at the end of the output.
func (r *Runner) start(ctx context.Context, run *Run, spec host.SpawnSpec, feed func([]byte) error, finish func()) error {
	const op = "hook.Start"
	if err := ctx.Err(); err != nil {
		return errs.E(op, errs.Expired, run.report.Job, err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return errs.E(op, errs.Exhausted, run.report.Job, err)
	}
	logged, loggedEnd, err := os.Pipe()
	if err != nil {
		out.Close()
		outEnd.Close()
		return errs.E(op, errs.Exhausted, run.report.Job, err)
	}
	spec.Stdout, spec.Stderr = outEnd, loggedEnd
	spec.Marker = markName + rand.Text()
	spec.Env = append(spec.Env, spec.Marker)
	run.family, err = r.Spawner.Spawn(spec)
	if err != nil {
		for _, f := range [...]*os.File{out, outEnd, logged, loggedEnd} {
			f.Close()
		}
		return errs.E(op, errs.Other, run.report.Job, &NotStarted{Path: spec.Path, Err: err})
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		drain(out, func(piece []byte) error {
			err := feed(piece)
			if err != nil {
				run.family.Kill() // Close finds what this misses
			}
			return err
		})
	})
	readers.Go(func() {
		drain(logged, func(piece []byte) error {
			if room := maxKept - len(run.report.Stderr); room > 0 {
				run.report.Stderr = append(run.report.Stderr, piece[:min(room, len(piece))]...)
			}
			return nil
		})
	})
	go func() {
		defer close(run.done)
		var late error
		select {
		case <-run.family.Done():
		case <-ctx.Done():
			late = errs.E(op, errs.Expired, run.report.Job, fmt.Errorf("%s was ended: %w", spec.Path, context.Cause(ctx)))
			if _, err := run.family.Kill(); err != nil {
				late = errors.Join(late, err)
			}
			<-run.family.Done()
		}
		left, err := run.family.Close()
		if c := r.Census; c != nil {
			fled, bad := c.KillRemains(host.Remains{Boot: c.Boot(), Parent: c.Self(), Main: run.family.Main(), Marker: spec.Marker})
			left, err = left+fled, errors.Join(err, bad)
		}
		// Only now: while anything of the family lived it could write, and what
		// the ends held is still to be read.
		outEnd.Close()
		loggedEnd.Close()
		// A process that got away keeps its ends open; nobody waits for it.
		patience := time.AfterFunc(lastWords, func() { out.Close(); logged.Close() })
		readers.Wait()
		patience.Stop()
		run.mu.Lock()
		if run.timer != nil {
			run.timer.Stop()
		}
		run.mu.Unlock()
		run.report.Status, run.report.Leftovers, run.report.Err = run.family.Status(), left, errors.Join(late, err)
		finish()
	}()
	return nil
}

// drain reads from f until its end and closes it. What comes after use refused
// is read and thrown away, so that nobody waits for a full pipe.
func drain(f *os.File, use func([]byte) error) {
	defer f.Close()
	buf := make([]byte, 16<<10)
	var refused error
	for {
		n, err := f.Read(buf)
		if n > 0 && refused == nil {
			refused = use(buf[:n])
		}
		if err != nil {
			return // io.EOF, or a pipe that is as good as ended
		}
	}
}

// tail keeps the beginning of what was printed since the last separator.
type tail struct {
	text []byte
	mid  bool // within a line, so that a "-" is not a separator
	skip bool // within the line of a separator
}

func (t *tail) feed(piece []byte) {
	for _, c := range piece {
		if !t.mid && c == '-' {
			t.text, t.skip = t.text[:0], true
		}
		if t.mid = c != '\n'; !t.skip && len(t.text) < maxKept {
			t.text = append(t.text, c)
		}
		t.skip = t.skip && t.mid
	}
}

// collect reads at most limit bytes of a program's output.
func collect(into *[]byte, limit int) func([]byte) error {
	return func(piece []byte) error {
		*into = append(*into, piece...)
		if len(*into) > limit {
			*into = (*into)[:limit]
			return io.ErrShortBuffer
		}
		return nil
	}
}
