// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/tool/status"
)

// cmdStatus shows the slots of the Execution Points that are meant.
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
	f, answers, refusals, err := t.askAll(observe.Request{Op: observe.OpStatus})
	if err != nil {
		printError(stderr, "condor_ep status", err)
		return exitUsage
	}
	for _, r := range refusals {
		printError(stderr, "condor_ep status", r)
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
			f.Nothing(stderr)
		}
		return exitSomeFailed
	}
	return exitOK
}
