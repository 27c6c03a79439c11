// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/local"
)

// reporter shows a run as it goes on. Its methods are called by one goroutine.
type reporter interface {
	begin(cluster, jobs int, source string)
	change(local.Change)
	counts(now time.Time, c local.Counts)
	problem(string)
	end(c local.Counts, took time.Duration, kept string)
}

// plain prints one line a change.
type plain struct {
	w     io.Writer
	start time.Time
}

func (p *plain) begin(cluster, jobs int, source string) {
	fmt.Fprintf(p.w, "cluster %d: %s from %s\n", cluster, count(jobs, "job"), source)
}

func (p *plain) change(c local.Change) { fmt.Fprintln(p.w, changeLine(c)) }

func (p *plain) counts(time.Time, local.Counts) {}

func (p *plain) problem(s string) { fmt.Fprintf(p.w, "warning: %s\n", s) }

func (p *plain) end(c local.Counts, took time.Duration, kept string) {
	fmt.Fprintln(p.w, summary(c, took))
	if kept != "" {
		fmt.Fprintf(p.w, "kept: %s\n", kept)
	}
}

// changeLine words one change.
func changeLine(c local.Change) string {
	switch c.What {
	case "started":
		return fmt.Sprintf("%s started on %s", c.Job, c.Slot)
	case "completed":
		s := fmt.Sprintf("%s done: %s after %s", c.Job, c.Detail, short(c.Wall))
		if c.Output != "" {
			s += ", output in " + c.Output
		}
		return s
	case "impossible":
		return fmt.Sprintf("%s can never run here: %s", c.Job, c.Detail)
	}
	s := fmt.Sprintf("%s %s", c.Job, c.What)
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
	s := fmt.Sprintf("%s: %d done", count(c.Total, "job"), c.Done)
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
	return s + " in " + short(took)
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// short prints a duration with as many digits as a person wants.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// live draws one line again and again, for a terminal. Lines that matter later
// scroll above it.
type live struct {
	plain
	last  string
	total int
}

const (
	clearLine = "\r\x1b[K"
	barWidth  = 24
)

func (l *live) begin(cluster, jobs int, source string) {
	l.total = jobs
	l.plain.begin(cluster, jobs, source)
}

func (l *live) change(c local.Change) {
	switch c.What {
	case "started", "continued":
		return
	case "completed":
		if c.ExitCode == 0 && c.ExitSignal == 0 && l.many() {
			return
		}
	}
	l.above(changeLine(c))
}

// many tells whether there are too many jobs to name each.
func (l *live) many() bool { return l.total > manyJobs }

const manyJobs = 5

func (l *live) problem(s string) { l.above("warning: " + s) }

func (l *live) above(s string) {
	fmt.Fprint(l.w, clearLine, s, "\n", l.last)
}

func (l *live) counts(now time.Time, c local.Counts) {
	l.last = bar(c, now.Sub(l.start))
	fmt.Fprint(l.w, clearLine, l.last)
}

func (l *live) end(c local.Counts, took time.Duration, kept string) {
	fmt.Fprint(l.w, clearLine)
	l.plain.end(c, took, kept)
}

// bar draws the state of a run: a bar, the jobs by what they do, time left.
func bar(c local.Counts, elapsed time.Duration) string {
	over := c.Done + c.Held + c.Removed + c.Impossible
	filled := 0
	if c.Total > 0 {
		filled = over * barWidth / c.Total
	}
	s := fmt.Sprintf("[%s%s] %d/%d done, %d running, %d idle",
		strings.Repeat("#", filled), strings.Repeat("-", barWidth-filled), c.Done, c.Total, c.Running, c.Idle-c.Impossible)
	if c.Suspended > 0 {
		s += fmt.Sprintf(", %d suspended", c.Suspended)
	}
	if c.Held > 0 {
		s += fmt.Sprintf(", %d held", c.Held)
	}
	if left := c.Total - over; c.Done > 0 && left > 0 {
		rest := time.Duration(math.Round(float64(elapsed) / float64(c.Done) * float64(left)))
		s += ", about " + short(rest) + " left"
	}
	return s
}

// jsonLines prints one object a line.
type jsonLines struct {
	enc *json.Encoder
}

type jsonChange struct {
	Event    string    `json:"event"`
	Job      string    `json:"job"`
	At       time.Time `json:"at"`
	Status   string    `json:"status"`
	Slot     string    `json:"slot,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	Output   string    `json:"output,omitempty"`
	Wall     float64   `json:"wall_seconds,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Signal   int       `json:"exit_signal,omitempty"`
}

// print writes v; a reader that went away is noticed by the next write of the
// process, there is nothing better to do here.
func (j *jsonLines) print(v any) { _ = j.enc.Encode(v) }

func (j *jsonLines) begin(cluster, jobs int, source string) {
	j.print(map[string]any{"event": "submitted", "cluster": cluster, "jobs": jobs, "source": source})
}

func (j *jsonLines) change(c local.Change) {
	o := jsonChange{
		Event: c.What, Job: c.Job.String(), At: c.At, Status: c.Status.String(), Slot: c.Slot, Detail: c.Detail,
		Output: c.Output, Wall: c.Wall.Seconds(), Signal: c.ExitSignal,
	}
	if c.What == "completed" && c.ExitSignal == 0 {
		o.ExitCode = &c.ExitCode
	}
	j.print(o)
}

func (j *jsonLines) counts(time.Time, local.Counts) {}

func (j *jsonLines) problem(s string) { j.print(map[string]any{"event": "warning", "detail": s}) }

func (j *jsonLines) end(c local.Counts, took time.Duration, kept string) {
	o := map[string]any{
		"event": "finished", "total": c.Total, "done": c.Done, "failed": c.Failed, "held": c.Held, "removed": c.Removed,
		"impossible": c.Impossible, "unfinished": c.Idle - c.Impossible + c.Running + c.Suspended, "seconds": took.Seconds(),
	}
	if kept != "" {
		o["kept"] = kept
	}
	j.print(o)
}
