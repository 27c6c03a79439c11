// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"math/bits"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/execpoint/execpoint/lib/policy"
)

// Span is a time that a slot spends in one pair.
type Span struct {
	From, To time.Duration
	Pair     policy.Pair
	Job      string
}

// Lane is what one slot does from beginning to end. A dynamic slot has gaps
// where it is not there.
type Lane struct {
	Slot  string
	Spans []Span
}

// Lanes turns the moves into what each slot does, in the order in which slots
// are first seen.
func (r *Result) Lanes() []Lane {
	var lanes []Lane
	at := map[string]int{}
	open := map[string]*Move{}
	finish := func(slot string, until time.Duration) {
		m := open[slot]
		if m == nil || until <= m.At || m.absent(m.To) {
			return
		}
		l := &lanes[at[slot]]
		l.Spans = append(l.Spans, Span{From: m.At, To: until, Pair: m.To, Job: m.Job})
	}
	for i := range r.Moves {
		m := &r.Moves[i]
		if _, ok := at[m.Slot]; !ok {
			at[m.Slot] = len(lanes)
			lanes = append(lanes, Lane{Slot: m.Slot})
			if m.At > 0 && !m.absent(m.From) {
				open[m.Slot] = &Move{To: m.From}
			}
		}
		finish(m.Slot, m.At)
		open[m.Slot] = m
	}
	last := r.End
	if r.Down >= 0 {
		last = r.Down
	}
	for i := range lanes {
		finish(lanes[i].Slot, last)
	}
	return lanes
}

// absent reports whether the slot is not there in that pair: a dynamic one that
// is not claimed.
func (m *Move) absent(p policy.Pair) bool {
	return m.Dynamic && (p == policy.OwnerIdle || p == policy.UnclaimedIdle)
}

// clockText is a time as the tables show it: days, hours, minutes, seconds.
func clockText(d time.Duration) string {
	d = d.Round(100 * time.Millisecond)
	tenths := int(d/(100*time.Millisecond)) % 10
	s := int(d / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		text = fmt.Sprintf("%dd ", days) + text
	}
	if tenths > 0 {
		text += fmt.Sprintf(".%d", tenths)
	}
	return text
}

// spanText is a span of time with its two greatest units.
func spanText(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s >= 86400:
		return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
	case s >= 3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	case s >= 60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}

// maxRows is how many moves and jobs a table for people shows.
const maxRows = 1000

// WriteText prints the moves, the jobs, the sums and the picture for a
// terminal of so many columns.
func (r *Result) WriteText(w io.Writer, columns int) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TIME\tSLOT\tFROM\tTO\tJOB\tWHY")
	for i := range r.Moves[:min(len(r.Moves), maxRows)] {
		m := &r.Moves[i]
		fmt.Fprintf(t, "%s\t%s\t%v\t%v\t%s\t%s\n", clockText(m.At), m.Slot, m.From, m.To, dash(m.Job), m.Why())
	}
	t.Flush()
	more(&b, len(r.Moves), "moves")
	b.WriteByte('\n')
	fmt.Fprintln(t, "JOB\tKIND\tSTATE\tARRIVED\tBEGAN\tENDED\tSTARTS\tEVICTED\tDONE\tLOST\tSUSPENDED")
	for i := range r.Jobs[:min(len(r.Jobs), maxRows)] {
		j := &r.Jobs[i]
		state := j.State
		if j.Why != "" {
			state += " (" + j.Why + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", j.ID, j.Kind, state, clockText(j.Arrived), since(j.Began), since(j.Ended),
			j.Starts, j.Evictions, spanText(j.Done), spanText(j.Lost), spanText(j.Suspended))
	}
	t.Flush()
	more(&b, len(r.Jobs), "jobs")
	b.WriteByte('\n')
	b.WriteString(r.Total.String())
	if r.Down >= 0 {
		fmt.Fprintf(&b, "the Execution Point ended at %s\n", clockText(r.Down))
	}
	for _, n := range r.Notes[:min(len(r.Notes), maxRows)] {
		fmt.Fprintf(&b, "%s %s:%d: %s\n", clockText(n.At), r.Name, n.Line, n.Text)
	}
	more(&b, len(r.Notes), "notes")
	for _, n := range r.Warnings {
		fmt.Fprintf(&b, "%s odd: %s\n", clockText(n.At), n.Text)
	}
	b.WriteByte('\n')
	r.picture(&b, columns)
	_, err := io.WriteString(w, b.String())
	return err
}

func more(b *strings.Builder, n int, what string) {
	if n > maxRows {
		fmt.Fprintf(b, "… and %d more %s\n", n-maxRows, what)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func since(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	return clockText(d)
}

// Why is the reason of a move in one line: what the log of the field would say,
// and the expression that decided, with its origin and what it read.
func (m *Move) Why() string {
	s := m.Reason
	if m.Expression == "" {
		return s
	}
	s += " [" + m.Expression
	if m.Origin != "" {
		s += ", " + m.Origin
	}
	for i, read := range m.Reads {
		if i == 3 {
			s += ", …"
			break
		}
		if i == 0 {
			s += ": " + read
		} else {
			s += ", " + read
		}
	}
	return s + "]"
}

// String prints the sums, a line each.
func (t Totals) String() string {
	share := "-"
	if t.Good+t.Bad > 0 {
		share = fmt.Sprintf("%.1f %%", 100*float64(t.Good)/float64(t.Good+t.Bad))
	}
	wait := "-"
	if t.Began > 0 {
		wait = spanText(t.Waited / time.Duration(t.Began))
	}
	return fmt.Sprintf("jobs: %d, %d completed, %d held, %d removed; %d starts, %d evictions, %d suspensions\n"+
		"work done %s, lost %s (%s of it was good), still running %s; mean wait %s\n",
		t.Jobs, t.Completed, t.Held, t.Removed, t.Starts, t.Evictions, t.Suspensions, spanText(t.Good), spanText(t.Bad), share, spanText(t.Running), wait)
}

// mark is the letter of a pair in the picture for a terminal.
func mark(p policy.Pair) byte {
	switch p.State {
	case policy.Owner:
		return 'o'
	case policy.Unclaimed:
		return '.'
	case policy.Matched:
		return 'm'
	case policy.Backfill:
		return 'f'
	case policy.Drained:
		return 'd'
	case policy.Preempting:
		if p.Activity == policy.Killing {
			return 'k'
		}
		return 'v'
	}
	switch p.Activity {
	case policy.Busy:
		return '#'
	case policy.Suspended:
		return 's'
	case policy.Retiring:
		return 'r'
	}
	return 'c'
}

const markLegend = "o Owner  . Unclaimed  c Claimed/Idle  # Busy  s Suspended  r Retiring  v Vacating  k Killing  d Drained  f Backfill"

// maxLanes is how many slots a picture shows.
const maxLanes = 200

// share is d·n/of. The product may be longer than any time.
func share(d time.Duration, n int, of time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(d), uint64(n))
	q, _ := bits.Div64(hi, lo, uint64(of))
	return time.Duration(q)
}

// picture draws a line for each slot. A column shows the pair in which the slot
// was longest.
func (r *Result) picture(b *strings.Builder, columns int) {
	lanes := r.Lanes()
	width := 0
	for _, l := range lanes {
		width = max(width, len(l.Slot))
	}
	columns = max(columns-width-1, 10)
	for _, l := range lanes[:min(len(lanes), maxLanes)] {
		line := make([]byte, columns)
		longest := make([]time.Duration, columns)
		sums := make([]map[byte]time.Duration, columns)
		for i := range line {
			line[i], sums[i] = ' ', map[byte]time.Duration{}
		}
		for _, s := range l.Spans {
			first, last := int(share(s.From, columns, r.End)), int(share(s.To, columns, r.End))
			for c := first; c <= min(last, columns-1); c++ {
				from, to := share(r.End, c, time.Duration(columns)), share(r.End, c+1, time.Duration(columns))
				in := min(to, s.To) - max(from, s.From)
				k := mark(s.Pair)
				if sums[c][k] += in; in > 0 && sums[c][k] > longest[c] {
					longest[c], line[c] = sums[c][k], k
				}
			}
		}
		fmt.Fprintf(b, "%-*s %s\n", width, l.Slot, line)
	}
	if len(lanes) > maxLanes {
		fmt.Fprintf(b, "… and %d more slots\n", len(lanes)-maxLanes)
	}
	fmt.Fprintf(b, "%*s %s%*s\n%s\n", width, "", "0", columns-1, spanText(r.End), markLegend)
}
