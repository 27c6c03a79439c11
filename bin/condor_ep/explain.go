// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/execpoint/execpoint/lib/observe"
)

func cmdExplain(args []string, stdout, stderr io.Writer) int {
	fs := newFlags("explain", stderr)
	asJSON := fs.Bool("json", false, "")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	if fs.NArg() != 1 {
		fmt.Fprintf(stderr, "condor_ep explain: want one slot (slot1_1) or job (3.0), got %d\n\n%s", fs.NArg(), usage)
		return exitUsage
	}
	answers, refusals, err := askAll(observe.Request{Op: observe.OpExplain, Subject: fs.Arg(0)})
	if err != nil {
		printError(stderr, "condor_ep explain", err)
		return exitUsage
	}
	if len(answers) == 0 {
		for _, r := range refusals {
			fmt.Fprintf(stderr, "condor_ep explain: %v\n", r)
		}
		if len(refusals) == 0 {
			fmt.Fprintln(stderr, "no Execution Point of this user is running here")
		}
		return exitSomeFailed
	}
	for _, a := range answers {
		if *asJSON {
			if err := json.NewEncoder(stdout).Encode(a.Explanation); err != nil {
				fmt.Fprintf(stderr, "condor_ep explain: %v\n", err)
				return exitUsage
			}
			continue
		}
		printExplanation(stdout, a.Explanation, time.Now())
	}
	return exitOK
}

func printExplanation(w io.Writer, e *observe.Explanation, now time.Time) {
	if e == nil {
		return
	}
	if e.Slot != "" {
		fmt.Fprintf(w, "%s is %s/%s for %s\n", e.Slot, e.State, e.Activity, short(now.Sub(e.Since)))
		if e.Job != "" {
			fmt.Fprintf(w, "  job       %s\n", e.Job)
		}
	} else {
		fmt.Fprintf(w, "job %s is %s for %s\n", e.Job, e.State, short(now.Sub(e.Since)))
	}
	if e.From != "" {
		fmt.Fprintf(w, "  came from %s at %s", e.From, e.At.Format("15:04:05"))
		if e.Number != "" {
			fmt.Fprintf(w, " (transition %s)", e.Number)
		}
		fmt.Fprintln(w)
	}
	if e.Why != "" {
		fmt.Fprintf(w, "  because   %s\n", e.Why)
	}
	for _, x := range e.Exprs {
		fmt.Fprintf(w, "\n  %s is %s\n    %s\n", x.Name, x.Value, x.Text)
		if x.Origin != "" {
			fmt.Fprintf(w, "    set at  %s\n", x.Origin)
		}
		for _, r := range x.Reads {
			fmt.Fprintf(w, "    read    %s\n", r)
		}
	}
	for _, n := range e.Notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
}
