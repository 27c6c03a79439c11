// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
)

// askTimeout bounds how long one EP may take to answer.
const askTimeout = 5 * time.Second

// askAll puts a request to every EP that is meant.
func askAll(t target, req observe.Request) (f found, answers []observe.Response, refusals []error, err error) {
	if t.isFar() {
		resp, err := t.askFar(req)
		if err != nil {
			return f, nil, []error{err}, nil
		}
		return f, []observe.Response{resp}, nil, nil
	}
	if f, err = t.find(); err != nil {
		return f, nil, nil, err
	}
	for _, a := range f.ask(req) {
		if a.err != nil {
			refusals = append(refusals, a.err)
		} else {
			answers = append(answers, a.resp)
		}
	}
	return f, answers, refusals, nil
}

// sentence is what the EP itself said, without the way it came.
func sentence(err error) error {
	var e *errs.Error
	if errors.As(err, &e) && e.Kind == errs.Invalid && e.Err != nil {
		return e.Err
	}
	return err
}

func cmdStatus(args []string, stdout, stderr io.Writer) int {
	fs := newFlags("status", stdout, stderr)
	asJSON := fs.Bool("json", false, "")
	var t target
	t.flags(fs)
	if err := fs.Parse(args); err != nil {
		return commands.StatusOf(err)
	}
	if fs.NArg() != 0 {
		return fs.Misuse("unexpected argument %q", fs.Arg(0))
	}
	f, answers, refusals, err := askAll(t, observe.Request{Op: observe.OpStatus})
	if err != nil {
		printError(stderr, "condor_ep status", err)
		return exitUsage
	}
	for _, r := range refusals {
		fmt.Fprintf(stderr, "condor_ep status: %v\n", r)
	}
	if *asJSON {
		enc := json.NewEncoder(stdout)
		for _, a := range answers {
			if err := enc.Encode(a.Status); err != nil {
				fmt.Fprintf(stderr, "condor_ep status: %v\n", err)
				return exitUsage
			}
		}
	} else {
		now := time.Now()
		for _, a := range answers {
			printStatus(stdout, a.Status, now)
		}
	}
	if len(answers) == 0 {
		if len(refusals) == 0 {
			f.nothing(stderr)
		}
		return exitSomeFailed
	}
	return exitOK
}

func printStatus(w io.Writer, s *observe.Status, now time.Time) {
	if s == nil {
		return
	}
	what := ""
	if s.Program != "" { // an older one does not say
		what = s.Program + ", "
	}
	fmt.Fprintf(w, "%s, %spid %d, up %s\n", s.Name, what, s.PID, short(now.Sub(s.Started)))
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "  SLOT\tTYPE\tSTATE\tACTIVITY\tSINCE\tCPUS\tMEMORY\tDISK\tJOB\tUSER")
	for _, sl := range s.Slots {
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\t%g\t%s\t%s\t%s\t%s\n", sl.Name, sl.Type, sl.State, sl.Activity,
			short(now.Sub(sl.Since)), sl.Cpus, size(sl.MemoryMiB<<20), size(sl.DiskKiB<<10), sl.Job, sl.User)
	}
	// The writer below is a terminal or a pipe; its errors show as missing lines.
	_ = tw.Flush()
	for _, sl := range s.Slots {
		if sl.Broken != "" {
			fmt.Fprintf(w, "  %s is broken: %s\n", sl.Name, sl.Broken)
		}
	}
	if s.Draining != nil {
		printDrain(w, s.Draining, now)
	}
	if s.Ending != "" {
		fmt.Fprintf(w, "  ending: %s\n", s.Ending)
	}
	if j := s.Jobs; j != nil {
		fmt.Fprintf(w, "  jobs: %d idle, %d running, %d held, %d of %d done\n", j.Idle, j.Running, j.Held, j.Done, j.Total)
	}
}

// size prints a number of bytes for people.
func size(b int64) string {
	for _, u := range []struct {
		n    int64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b >= u.n {
			return fmt.Sprintf("%.4g %s", float64(b)/float64(u.n), u.name)
		}
	}
	return fmt.Sprintf("%d B", b)
}
