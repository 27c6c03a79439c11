// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/tool/drain"
	"github.com/execpoint/execpoint/lib/tool/here"
)

// drainFlags are the options of condor_ep drain.
type drainFlags struct {
	drain.Options
	json   bool
	target target
}

func cmdDrain(args []string, stdout, stderr io.Writer) int {
	var f drainFlags
	fs := newFlags("drain", stdout, stderr)
	fs.BoolVar(&f.Graceful, "graceful", false, "")
	fs.BoolVar(&f.Quick, "quick", false, "")
	fs.BoolVar(&f.Fast, "fast", false, "")
	fs.BoolVar(&f.Resume, "resume-on-completion", false, "")
	fs.BoolVar(&f.Exit, "exit-on-completion", false, "")
	fs.BoolVar(&f.Restart, "restart-on-completion", false, "")
	fs.BoolVar(&f.Reconfigure, "reconfig-on-completion", false, "")
	fs.StringVar(&f.Reason, "reason", "", "")
	fs.StringVar(&f.Start, "start", "", "")
	fs.StringVar(&f.Check, "check", "", "")
	fs.BoolVar(&f.Cancel, "cancel", false, "")
	fs.StringVar(&f.RequestID, "request-id", "", "")
	fs.BoolVar(&f.json, "json", false, "")
	fs.IntVar(&f.target.pid, "pid", 0, "")
	f.target.flags(fs)
	if status, ok := parsed(fs, args); !ok {
		return status
	}
	if fs.NArg() > 0 {
		return fs.Misuse("unexpected argument %q", fs.Arg(0))
	}
	req, err := f.Request()
	if err != nil {
		return fs.Misuse("%v", err)
	}
	if err := f.target.check(); err != nil {
		return fs.Misuse("%v", err)
	}
	resp, status := askOne("condor_ep drain", f.target, req, f.json, stdout, stderr)
	if status != exitOK {
		return status
	}
	return tell(f.json, stdout, stderr, "condor_ep drain", drain.Said(req, resp), map[string]any{"ok": true, "drain_id": resp.DrainID, "cancelled": f.Cancel})
}

func cmdVacate(args []string, stdout, stderr io.Writer) int {
	fs := newFlags("vacate", stdout, stderr)
	fast := fs.Bool("fast", false, "")
	all := fs.Bool("all", false, "")
	asJSON := fs.Bool("json", false, "")
	var t target
	fs.IntVar(&t.pid, "pid", 0, "")
	t.flags(fs)
	if status, ok := parsed(fs, args); !ok {
		return status
	}
	if *all && fs.NArg() != 0 || !*all && (fs.NArg() != 1 || fs.Arg(0) == "") { // an empty name would mean every slot
		return fs.Misuse("want one slot (slot1_1), or -all")
	}
	if err := t.check(); err != nil {
		return fs.Misuse("%v", err)
	}
	_, status := askOne("condor_ep vacate", t, observe.Request{Op: observe.OpVacate, Subject: fs.Arg(0), Fast: *fast}, *asJSON, stdout, stderr)
	if status != exitOK {
		return status
	}
	what := fs.Arg(0)
	if *all {
		what = "every slot"
	}
	return tell(*asJSON, stdout, stderr, "condor_ep vacate", "vacating "+what, map[string]any{"ok": true, "slot": fs.Arg(0), "fast": *fast})
}

// parsed parses a command line; false with the status to exit with if that is
// all there is to do.
func parsed(fs *commands.Flags, args []string) (int, bool) {
	err := fs.Parse(args)
	return commands.StatusOf(err), err == nil
}

// tell says that something was done.
func tell(asJSON bool, stdout, stderr io.Writer, who, said string, object any) int {
	if asJSON {
		if err := json.NewEncoder(stdout).Encode(object); err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", who, err)
			return exitUsage
		}
		return exitOK
	}
	fmt.Fprintln(stdout, said)
	return exitOK
}

// askOne puts a request to the one EP that is meant.
func askOne(who string, t target, req observe.Request, asJSON bool, stdout, stderr io.Writer) (observe.Response, int) {
	f, resp, err := t.askOne(req)
	if err == nil {
		return resp, exitOK
	}
	var unread *unreadable
	none := errors.Is(err, here.ErrNone) || !t.isFar() && errs.Is(err, errs.NotFound)
	status := exitSomeFailed
	if errors.As(err, &unread) || several(err) {
		status = exitUsage
	}
	if asJSON {
		said := here.Sentence(err)
		if none {
			said = here.ErrNone
		}
		if tell(true, stdout, stderr, who, "", map[string]any{"ok": false, "error": said.Error(), "code": resp.Code}) != exitOK {
			status = exitUsage
		}
		return observe.Response{}, status
	}
	switch {
	case errors.As(err, &unread):
		printError(stderr, who, err)
	case several(err):
		fmt.Fprintf(stderr, "%s: %v\n", who, err)
	case none:
		f.Nothing(stderr)
	case resp.Code != 0:
		printError(stderr, who, fmt.Errorf("%w (%d)", here.Sentence(err), resp.Code))
	default:
		printError(stderr, who, here.Sentence(err))
	}
	return observe.Response{}, status
}
