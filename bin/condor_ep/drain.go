// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/spelling"
)

// drainFlags are the options of condor_ep drain.
type drainFlags struct {
	graceful, quick, fast              bool
	resume, exit, restart, reconfigure bool
	reason, start, check, request      string
	cancel, json                       bool
	target                             target
}

func cmdDrain(args []string, stdout, stderr io.Writer) int {
	var f drainFlags
	fs := newFlags("drain", stdout, stderr)
	fs.BoolVar(&f.graceful, "graceful", false, "")
	fs.BoolVar(&f.quick, "quick", false, "")
	fs.BoolVar(&f.fast, "fast", false, "")
	fs.BoolVar(&f.resume, "resume-on-completion", false, "")
	fs.BoolVar(&f.exit, "exit-on-completion", false, "")
	fs.BoolVar(&f.restart, "restart-on-completion", false, "")
	fs.BoolVar(&f.reconfigure, "reconfig-on-completion", false, "")
	fs.StringVar(&f.reason, "reason", "", "")
	fs.StringVar(&f.start, "start", "", "")
	fs.StringVar(&f.check, "check", "", "")
	fs.BoolVar(&f.cancel, "cancel", false, "")
	fs.StringVar(&f.request, "request-id", "", "")
	fs.BoolVar(&f.json, "json", false, "")
	fs.IntVar(&f.target.pid, "pid", 0, "")
	f.target.flags(fs)
	if status, ok := parsed(fs, args); !ok {
		return status
	}
	req, err := f.asked(fs)
	if err != nil {
		return fs.Misuse("%v", err)
	}
	resp, status := askOne("condor_ep drain", f.target, req, f.json, stdout, stderr)
	if status != exitOK {
		return status
	}
	said := "draining, request id " + resp.DrainID
	switch {
	case f.cancel && resp.DrainID == "":
		said = "nothing was draining"
	case f.cancel:
		said = "cancelled the draining with request id " + resp.DrainID
	}
	return tell(f.json, stdout, stderr, "condor_ep drain", said, map[string]any{"ok": true, "drain_id": resp.DrainID, "cancelled": f.cancel})
}

// asked is the request for what the flags say.
func (f *drainFlags) asked(fs *commands.Flags) (observe.Request, error) {
	var no observe.Request
	if fs.NArg() > 0 {
		return no, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	how, err := oneOf(map[string]bool{"graceful": f.graceful, "quick": f.quick, "fast": f.fast})
	if err != nil {
		return no, err
	}
	then, err := oneOf(map[string]bool{"resume-on-completion": f.resume, "exit-on-completion": f.exit,
		"restart-on-completion": f.restart, "reconfig-on-completion": f.reconfigure})
	if err != nil {
		return no, err
	}
	if f.cancel {
		if how != "" || then != "" || f.reason != "" || f.start != "" || f.check != "" {
			return no, errors.New("-cancel takes no other option than -request-id")
		}
		return observe.Request{Op: observe.OpResume, Subject: f.request}, nil
	}
	if f.request != "" {
		return no, errors.New("-request-id is for -cancel")
	}
	then = strings.TrimSuffix(then, "-on-completion")
	if then == "reconfig" {
		then = "reconfigure"
	}
	return observe.Request{Op: observe.OpDrain, Drain: &observe.Drain{How: how, Then: then, Reason: f.reason, Start: f.start, Check: f.check}}, nil
}

// oneOf returns the one option that is set, "" if none is.
func oneOf(options map[string]bool) (string, error) {
	found := ""
	for name, set := range options {
		switch {
		case !set:
		case found != "":
			return "", fmt.Errorf("-%s and -%s exclude one another", min(found, name), max(found, name))
		default:
			found = name
		}
	}
	return found, nil
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
	if *all && fs.NArg() != 0 || !*all && fs.NArg() != 1 {
		return fs.Misuse("want one slot (slot1_1), or -all")
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
	var f found
	var resp observe.Response
	var err error
	if t.isFar() {
		resp, err = t.askFar(req)
	} else {
		if f, err = t.find(); err != nil {
			printError(stderr, who, err)
			return observe.Response{}, exitUsage
		}
		socket, status := f.one(who, t.pid, stderr)
		if status != exitOK {
			return observe.Response{}, status
		}
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		resp, err = observe.Call(ctx, socket, req)
	}
	switch {
	case err == nil:
		return resp, exitOK
	case asJSON && (t.isFar() || !errs.Is(err, errs.NotFound)):
		if tell(true, stdout, stderr, who, "", map[string]any{"ok": false, "error": sentence(err).Error(), "code": resp.Code}) != exitOK {
			return observe.Response{}, exitUsage
		}
	case !t.isFar() && errs.Is(err, errs.NotFound):
		f.nothing(stderr)
	case resp.Code != 0:
		fmt.Fprintf(stderr, "%s: %v (%d)\n", who, sentence(err), resp.Code)
	default:
		fmt.Fprintf(stderr, "%s: %v\n", who, sentence(err))
	}
	return observe.Response{}, exitSomeFailed
}

// printDrain says how far a drain is.
func printDrain(w io.Writer, d *observe.Draining, now time.Time) {
	who := ""
	if d.By != "" && !strings.Contains(d.Reason, d.By) {
		who = " by " + d.By
	}
	fmt.Fprintf(w, "  draining (%s, id %s)%s for %s: %s", d.How, d.ID, who, short(now.Sub(d.Since)), d.Reason)
	left := spelling.Count(d.Jobs, "job") + " left"
	switch {
	case d.Drained:
		fmt.Fprint(w, "; drained")
	case d.Jobs == 0:
	case d.Until != nil:
		fmt.Fprintf(w, "; %s, for at most %s", left, short(d.Until.Sub(now)))
	default:
		fmt.Fprintf(w, "; %s, until they end", left)
	}
	fmt.Fprintf(w, "; then %s\n", d.Then)
	if d.Start != "" {
		fmt.Fprintf(w, "  lets in meanwhile: %s\n", d.Start)
	}
}
