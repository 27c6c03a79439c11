// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/spelling"
)

// reporter shows a run as it goes on. Its methods are called by one goroutine,
// but for waiting and leaving: before the first counts others call them, too.
type reporter interface {
	waiting(what string)
	begin(cluster, jobs int, source string)
	change(local.Change)
	counts(now time.Time, c local.Counts)
	problem(string)
	leaving(text string, v ep.ShutdownView)
	end(c local.Counts, took time.Duration, kept string)
}

// newReporter shows a run on w. width is how wide the terminal behind a file is.
func newReporter(asJSON bool, w io.Writer, width func(*os.File) (columns int, ok bool)) reporter {
	if asJSON {
		return &jsonLines{enc: json.NewEncoder(w)}
	}
	now := time.Now()
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return &plain{w: w, start: now}
	}
	most, ok := width(f)
	if !ok {
		return &plain{w: w, start: now}
	}
	return &live{plain: plain{w: w, start: now}, width: func() int {
		if n, ok := width(f); ok {
			most = n // a terminal that is gone has its last width
		}
		return most
	}}
}

// plain prints one line a change.
type plain struct {
	w     io.Writer
	start time.Time
}

// say prints a line, in one write.
func (p *plain) say(line string) { fmt.Fprintln(p.w, printable(line)) }

func (p *plain) waiting(what string) { p.say("waiting for " + what) }

func (p *plain) begin(cluster, jobs int, source string) { p.say(beginLine(cluster, jobs, source)) }

func beginLine(cluster, jobs int, source string) string {
	return fmt.Sprintf("cluster %d: %s from %s", cluster, spelling.Count(jobs, "job"), source)
}

func (p *plain) change(c local.Change) { p.say(changeLine(c)) }

func (p *plain) counts(time.Time, local.Counts) {}

func (p *plain) problem(s string) { p.say("warning: " + s) }

func (p *plain) leaving(text string, _ ep.ShutdownView) { p.say(text) }

func (p *plain) end(c local.Counts, took time.Duration, kept string) {
	p.say(summary(c, took))
	if kept != "" {
		p.say("kept: " + kept)
	}
}

// leavingText says what the end of a run means for its jobs, and what a second
// Ctrl-C would do.
func leavingText(v ep.ShutdownView) string {
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
	return "at most " + short(left)
}

// endless is more time than anybody waits for.
const endless = 365 * 24 * time.Hour

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
	return s + " in " + short(took)
}

// live draws one line again and again, for a terminal. Lines that matter later
// scroll above it.
type live struct {
	plain
	width func() int // of the terminal, which may change
	now   *local.Counts
	took  time.Duration
	total int
}

const (
	clearLine = "\r\x1b[K"
	barWidth  = 24 // of the bar where there is room
	barLeast  = 8  // a shorter one shows nothing
)

func (l *live) begin(cluster, jobs int, source string) {
	l.total = jobs
	l.above(beginLine(cluster, jobs, source))
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

func (l *live) waiting(what string) { l.above("waiting for " + what) }

func (l *live) problem(s string) { l.above("warning: " + s) }

func (l *live) leaving(text string, _ ep.ShutdownView) { l.above(text) }

func (l *live) above(s string) {
	fmt.Fprint(l.w, clearLine, printable(s), "\n", l.line())
}

// line is the line that is drawn again and again, "" before there is one. Of a
// line that wraps only the last part could be cleared. The terminal's last
// column stays free: some wrap when it is written to.
func (l *live) line() string {
	if l.now == nil {
		return ""
	}
	return bar(*l.now, l.took, l.width()-1)
}

func (l *live) counts(now time.Time, c local.Counts) {
	l.now, l.took = &c, now.Sub(l.start)
	fmt.Fprint(l.w, clearLine, l.line())
}

func (l *live) end(c local.Counts, took time.Duration, kept string) {
	fmt.Fprint(l.w, clearLine)
	l.plain.end(c, took, kept)
}

// bar draws the state of a run in no more than so many columns: a bar, the jobs
// by what they do, time left. What matters least goes first where there is no
// room: the bar becomes shorter and goes, then the words from the end.
func bar(c local.Counts, elapsed time.Duration, most int) string {
	over := c.Done + c.Held + c.Removed + c.Impossible
	words := []string{fmt.Sprintf("%d/%d done", c.Done, c.Total), fmt.Sprintf("%d running", c.Running), fmt.Sprintf("%d idle", c.Idle-c.Impossible)}
	if c.Suspended > 0 {
		words = append(words, fmt.Sprintf("%d suspended", c.Suspended))
	}
	if c.Held > 0 {
		words = append(words, fmt.Sprintf("%d held", c.Held))
	}
	if left := c.Total - over; c.Done > 0 && left > 0 {
		rest := time.Duration(math.Round(float64(elapsed) / float64(c.Done) * float64(left)))
		words = append(words, "about "+short(rest)+" left")
	}
	text := strings.Join(words, ", ")
	for len(words) > 1 && len(text) > most {
		words = words[:len(words)-1]
		text = strings.Join(words, ", ")
	}
	room := min(most-len(text)-len("[] "), barWidth)
	if room < barLeast {
		return fit(text, most)
	}
	filled := 0
	if c.Total > 0 {
		filled = over * room / c.Total
	}
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", filled), strings.Repeat("-", room-filled), text)
}

// jsonLines prints one object a line.
type jsonLines struct {
	mu  sync.Mutex
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
	Others   int       `json:"others,omitempty"`
	Wall     float64   `json:"wall_seconds,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Signal   int       `json:"exit_signal,omitempty"`
}

// print writes v; a reader that went away is noticed by the next write of the
// process, there is nothing better to do here.
func (j *jsonLines) print(v any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.enc.Encode(v)
}

func (j *jsonLines) waiting(what string) {
	j.print(map[string]any{"event": "waiting", "detail": what})
}

func (j *jsonLines) begin(cluster, jobs int, source string) {
	j.print(map[string]any{"event": "submitted", "cluster": cluster, "jobs": jobs, "source": source})
}

func (j *jsonLines) change(c local.Change) {
	o := jsonChange{
		Event: c.What, Job: c.Job.String(), At: c.At, Status: c.Status.String(), Slot: c.Slot, Detail: c.Detail, Others: c.Others,
		Output: c.Output, Wall: c.Wall.Seconds(), Signal: c.ExitSignal,
	}
	if c.What == "completed" && c.ExitSignal == 0 {
		o.ExitCode = &c.ExitCode
	}
	j.print(o)
}

func (j *jsonLines) counts(time.Time, local.Counts) {}

func (j *jsonLines) problem(s string) { j.print(map[string]any{"event": "warning", "detail": s}) }

func (j *jsonLines) leaving(text string, v ep.ShutdownView) {
	o := map[string]any{"event": "ending", "manner": v.Manner.String(), "running": v.Jobs, "sending": v.Sending, "detail": text}
	if v.Left <= endless {
		o["seconds"] = math.Round(v.Left.Seconds())
	}
	j.print(o)
}

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
