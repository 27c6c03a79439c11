// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/submit"
	"github.com/execpoint/execpoint/lib/tool/progress"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// runFlags are the options of condor_ep run.
type runFlags struct {
	config string
	local  string
	json   bool
	keep   bool
	job    string
}

// newFlags returns the flags of a command, which print help, and what is wrong
// with a command line, and leave the exit to the caller.
func newFlags(name string, stdout, stderr io.Writer) *commands.Flags {
	return commands.EP.Flags(name, stdout, stderr)
}

func cmdRun(args []string, stdout, stderr io.Writer) int {
	var f runFlags
	fs := newFlags("run", stdout, stderr)
	fs.StringVar(&f.config, "config", "", "")
	fs.StringVar(&f.local, "local-name", "", "")
	fs.BoolVar(&f.json, "json", false, "")
	fs.BoolVar(&f.keep, "keep", false, "")
	if err := fs.Parse(args); err != nil {
		return commands.StatusOf(err)
	}
	if fs.NArg() != 1 {
		return fs.Misuse("want one submit file, got %d", fs.NArg())
	}
	f.job = fs.Arg(0)
	// The machine is lent to jobs. One goroutine does the work here, and waking
	// a second thread for it is most of what an EP at rest would cost.
	runtime.GOMAXPROCS(1)
	res, err := runJobs(f, stdout, stderr)
	if errors.Is(err, errToldToEnd) {
		return exitSomeFailed // which was said
	}
	if err != nil {
		printError(stderr, "condor_ep run", err)
		return exitUsage
	}
	return exitStatus(res)
}

// exitStatus turns a result into the promised exit status.
func exitStatus(res run.Result) int {
	c := res.Counts
	switch {
	case res.Restart:
		return exitRestart
	case len(res.Impossible) > 0:
		return exitNever
	case c.Done == c.Total && c.Failed == 0:
		return exitOK
	}
	return exitSomeFailed
}

// printError prints every problem of a configuration on its own line, and any
// other error as one; of several, each on its own.
func printError(w io.Writer, who string, err error) {
	say := func(err error) {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(w, "%s: %s\n", who, words.Printable(line))
		}
	}
	var knobs config.Problems
	var commands submit.Problems
	switch {
	case errors.As(err, &knobs):
		for _, p := range knobs {
			say(p)
		}
	case errors.As(err, &commands):
		for _, p := range commands {
			say(p)
		}
	default:
		say(err)
	}
}

// runJobs sets everything up, runs the jobs and cleans up.
func runJobs(f runFlags, stdout, stderr io.Writer) (res run.Result, err error) {
	p, err := thishost.New()
	if err != nil {
		return res, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	show := reporter(f.json, stdout, p.TerminalWidth)
	begin := &beginning{show: show, cancel: cancel, step: "the start", exit: func() { os.Exit(exitSomeFailed) }}
	interrupt := begin.interrupts()
	defer func() {
		if begin.brokenOff() {
			err = errToldToEnd // and not what came of it
		}
	}()
	// Many steps that are each short may take long together.
	started := sync.OnceFunc(observe.Waiting(begin.tell))
	defer started()
	s := &setup{runFlags: f, p: p, begin: begin, stderr: stderr}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, step := range []func(context.Context) error{s.configure, s.directory, s.submitted, s.machine, s.open} {
		if err := step(ctx); err != nil {
			return res, err
		}
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	started()
	for _, w := range s.snap.Warnings() {
		show.Note(progress.Warning, warningText(&w))
	}
	for _, note := range s.notes {
		show.Note(progress.Warning, note)
	}
	show.Begin(s.dir.Number, len(s.jobs), sourceName(f.job))
	began := time.Now()
	o := s.options()
	o.Interrupt, o.Settled, o.Waiting = interrupt, begin.settled, begin.waiting
	o.Changed, o.Counts = show.Change, show.Counts
	o.Problem = func(err error) {
		if !begin.brokenOff() { // what ends with the start is no news
			show.Note(progress.Warning, err.Error())
		}
	}
	o.Leaving = func(v ep.ShutdownView) { show.Leaving(progress.LeavingText(v), v) }
	if res, err = run.Run(ctx, o); err != nil {
		return res, err
	}
	kept, err := s.kept()
	if err != nil {
		return res, err
	}
	show.End(res.Counts, time.Since(began), kept)
	return res, nil
}

// reporter shows a run on w. width is how wide the terminal behind a file is.
func reporter(asJSON bool, w io.Writer, width func(*os.File) (columns int, ok bool)) progress.Reporter {
	if asJSON {
		return progress.Objects(w)
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return progress.Lines(w)
	}
	most, ok := width(f)
	if !ok {
		return progress.Lines(w)
	}
	return progress.Live(w, time.Now(), func() int {
		if n, ok := width(f); ok {
			most = n // a terminal that is gone has its last width
		}
		return most
	})
}

// reloads turns SIGHUP into the wish to read the configuration again. Without
// a file there is nothing to read, and SIGHUP ends the run as it ends any
// program whose terminal is gone.
func reloads(file string) <-chan struct{} {
	if file == "" {
		return nil
	}
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGHUP)
	out := make(chan struct{})
	go func() {
		for range sig {
			out <- struct{}{}
		}
	}()
	return out
}
