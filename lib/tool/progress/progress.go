// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"io"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/local"
)

// Kind is the kind of a note.
type Kind int

// The kinds of notes.
const (
	Waiting Kind = iota // what is waited for before the jobs begin
	Warning             // what looks wrong but ends nothing
)

// Reporter shows a run as it goes on. Its methods are called by one goroutine, but for
// Note and Leaving: before the first Counts others call them, too.
type Reporter interface {
	Note(kind Kind, what string)
	Begin(cluster, jobs int, source string)
	Change(local.Change)
	Counts(now time.Time, c local.Counts)

	// Leaving tells that the run was told to end: LeavingText, or another text.
	Leaving(text string, v ep.ShutdownView)

	// End tells what came of the jobs. kept is the directory that is left in place, ""
	// for none.
	End(c local.Counts, took time.Duration, kept string)
}

// Lines shows a run in lines of text, one a change. Errors of w are not told.
func Lines(w io.Writer) Reporter { return &plain{w: w} }

// Objects shows a run in JSON, one object a line. Errors of w are not told.
func Objects(w io.Writer) Reporter { return &jsonLines{enc: json.NewEncoder(w)} }

// Live shows a run that began at start on a terminal: lines that matter later scroll
// above one that is drawn again and again, in no more columns than width returns.
// Errors of w are not told.
func Live(w io.Writer, start time.Time, width func() int) Reporter {
	return &live{plain: plain{w: w}, start: start, width: width}
}
