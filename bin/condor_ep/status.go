// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/tool/status"
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
			status.Print(stdout, a.Status, now)
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
