// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/spelling"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// noteLine words a note.
func noteLine(kind Kind, what string) string {
	if kind == Waiting {
		return "waiting for " + what
	}
	return "warning: " + what
}

// LeavingText says what the end of a run means for its jobs, and what a second
// Ctrl-C would do.
func LeavingText(v ep.ShutdownView) string {
	jobs, are, have := spelling.Count(v.Jobs, "job"), spelling.Are(v.Jobs), "have"
	if v.Jobs == 1 {
		have = "has"
	}
	if v.Jobs+v.Sending == 0 {
		return "told to end: no job runs, and no other begins"
	}
	s := "told to end: no other job begins"
	switch {
	case v.Manner == ep.Fast && v.Jobs > 0:
		s = fmt.Sprintf("told to end at once: %s %s killed", jobs, are)
	case v.Manner == ep.Fast:
		s = "told to end at once"
	case v.Retiring > 0:
		s += fmt.Sprintf(", %s may go on for the time of MAXJOBRETIREMENTTIME and %s then asked to end, %s", jobs, are, atMost(v.Left))
	case v.Jobs > 0:
		s += fmt.Sprintf(", %s %s asked to end and %s time for it, %s", jobs, are, have, atMost(v.Left))
	}
	if v.Sending > 0 {
		s += fmt.Sprintf("; output of %s that ended is on its way", spelling.Count(v.Sending, "job"))
	}
	if v.Manner != ep.Fast {
		s += "; a second Ctrl-C (or SIGTERM) kills what still runs"
	}
	return s
}

// atMost words a limit.
func atMost(left time.Duration) string {
	if left > endless {
		return "without a limit"
	}
	return "at most " + words.Short(left)
}

// endless is more time than anybody waits for.
const endless = 365 * 24 * time.Hour

// changeLine words one change.
func changeLine(c local.Change) string {
	switch c.What {
	case "started":
		return fmt.Sprintf("%s started on %s", c.Job, c.Slot)
	case "completed":
		s := fmt.Sprintf("%s done: %s after %s", c.Job, c.Detail, words.Short(c.Wall))
		if c.Output != "" {
			s += ", output in " + c.Output
		}
		return s
	case "impossible":
		return fmt.Sprintf("%s can never run here: %s", c.Job, c.Detail)
	}
	s := fmt.Sprintf("%s %s", c.Job, c.What)
	if c.Others > 0 {
		s = fmt.Sprintf("%s and %s wait", c.Job, spelling.Count(c.Others, "other job"))
	}
	if c.Slot != "" {
		s += " on " + c.Slot
	}
	if c.Detail != "" {
		s += ": " + c.Detail
	}
	return s
}

// summary is the last line of a run.
func summary(c local.Counts, took time.Duration) string {
	s := fmt.Sprintf("%s: %d done", spelling.Count(c.Total, "job"), c.Done)
	add := func(n int, word string) {
		if n > 0 {
			s += fmt.Sprintf(", %d %s", n, word)
		}
	}
	add(c.Failed, "with a status other than 0")
	add(c.Held, "held")
	add(c.Removed, "removed")
	add(c.Impossible, "that can never run here")
	add(c.Idle-c.Impossible+c.Running+c.Suspended, "not finished")
	return s + " in " + words.Short(took)
}
