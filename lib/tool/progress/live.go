// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// live draws one line again and again, for a terminal. Lines that matter later
// scroll above it.
type live struct {
	plain
	start time.Time
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

// Begin implements Reporter.
func (l *live) Begin(cluster, jobs int, source string) {
	l.total = jobs
	l.above(beginLine(cluster, jobs, source))
}

// Change implements Reporter.
func (l *live) Change(c local.Change) {
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

// Note implements Reporter.
func (l *live) Note(kind Kind, what string) { l.above(noteLine(kind, what)) }

// Leaving implements Reporter.
func (l *live) Leaving(text string, _ ep.ShutdownView) { l.above(text) }

func (l *live) above(s string) {
	fmt.Fprint(l.w, clearLine, words.Printable(s), "\n", l.line())
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

// Counts implements Reporter.
func (l *live) Counts(now time.Time, c local.Counts) {
	l.now, l.took = &c, now.Sub(l.start)
	fmt.Fprint(l.w, clearLine, l.line())
}

// End implements Reporter.
func (l *live) End(c local.Counts, took time.Duration, kept string) {
	fmt.Fprint(l.w, clearLine)
	l.plain.End(c, took, kept)
}

// bar draws the state of a run in no more than so many columns: a bar, the jobs
// by what they do, time left. What matters least goes first where there is no
// room: the bar becomes shorter and goes, then the words from the end.
func bar(c local.Counts, elapsed time.Duration, most int) string {
	over := c.Done + c.Held + c.Removed + c.Impossible
	parts := []string{fmt.Sprintf("%d/%d done", c.Done, c.Total), fmt.Sprintf("%d running", c.Running), fmt.Sprintf("%d idle", c.Idle-c.Impossible)}
	if c.Suspended > 0 {
		parts = append(parts, fmt.Sprintf("%d suspended", c.Suspended))
	}
	if c.Held > 0 {
		parts = append(parts, fmt.Sprintf("%d held", c.Held))
	}
	if left := c.Total - over; c.Done > 0 && left > 0 {
		rest := time.Duration(math.Round(float64(elapsed) / float64(c.Done) * float64(left)))
		parts = append(parts, "about "+words.Short(rest)+" left")
	}
	text := strings.Join(parts, ", ")
	for len(parts) > 1 && len(text) > most {
		parts = parts[:len(parts)-1]
		text = strings.Join(parts, ", ")
	}
	room := min(most-len(text)-len("[] "), barWidth)
	if room < barLeast {
		return words.Fit(text, most)
	}
	filled := 0
	if c.Total > 0 {
		filled = over * room / c.Total
	}
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", filled), strings.Repeat("-", room-filled), text)
}
