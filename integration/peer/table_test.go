// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// row is a test with its outcomes, of which one may be missing.
type row struct {
	Test           peerTest
	Original, Ours *outcome
}

// rows puts the outcomes of a test side by side, in the order in which the tests
// come first.
func rows(outcomes []outcome) []row {
	var all []row
	at := map[string]int{}
	for i := range outcomes {
		o := &outcomes[i]
		n, ok := at[o.Test.Name]
		if !ok {
			n = len(all)
			at[o.Test.Name] = n
			all = append(all, row{Test: o.Test})
		}
		if o.Kind == ours {
			all[n].Ours = o
		} else {
			all[n].Original = o
		}
	}
	return all
}

// tableHead names the columns of a table.
var tableHead = []string{"test", "original", "ours", "listed", "s original", "s ours", "cases original", "cases ours", "starts original", "starts ours", "note"}

// columns are those of a row.
func (r row) columns() []string {
	note := ""
	if r.Ours != nil && r.Ours.Verdict != passed {
		note = r.Ours.Why
		if r.Test.Why != "" {
			note = r.Test.Why + " (" + note + ")"
		}
	}
	for _, o := range []*outcome{r.Original, r.Ours} {
		if o != nil && o.Tries > 1 {
			note = strings.TrimSpace(note + " [" + string(o.Kind) + ": second try]")
		}
	}
	if r.Original != nil && r.Original.Verdict != passed {
		note = strings.TrimSpace(note + " [original: " + r.Original.Why + "]")
	}
	f := []string{r.Test.Name}
	f = append(f, each(r, func(o outcome) string { return string(o.Verdict) })...)
	f = append(f, string(r.Test.Ours))
	f = append(f, each(r, func(o outcome) string { return fmt.Sprintf("%.0f", o.Took.Seconds()) })...)
	f = append(f, each(r, func(o outcome) string { return o.Cases.String() })...)
	f = append(f, each(r, func(o outcome) string { return fmt.Sprintf("%d/%d", o.Starts.Startds, o.Starts.Starters) })...)
	return append(f, note)
}

// each is what f says of the original and of ours.
func each(r row, f func(outcome) string) []string {
	all := []string{"-", "-"}
	for i, o := range []*outcome{r.Original, r.Ours} {
		if o != nil {
			all[i] = cmp.Or(f(*o), "-")
		}
	}
	return all
}

// String tells the cases that passed of those that were tried.
func (c cases) String() string {
	if c == (cases{}) {
		return "-"
	}
	s := fmt.Sprintf("%d/%d", c.Passed, c.Passed+c.Failed)
	if c.Skipped > 0 {
		s += fmt.Sprintf("+%d", c.Skipped)
	}
	return s
}

// tsv is a table as tab-separated values.
func tsv(all []row) string {
	var b strings.Builder
	b.WriteString(strings.Join(tableHead, "\t") + "\n")
	for _, r := range all {
		b.WriteString(strings.Join(r.columns(), "\t") + "\n")
	}
	return b.String()
}

// printed is a table for people, with what it comes to.
func printed(all []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(tableHead, "\t")) // a strings.Builder takes all
	for _, r := range all {
		_, _ = fmt.Fprintln(w, strings.Join(r.columns(), "\t"))
	}
	_ = w.Flush()
	b.WriteString(totals(all))
	return b.String()
}

// totals counts the passes of those of the 142, and of the others.
func totals(all []row) string {
	var b strings.Builder
	for _, more := range []bool{false, true} {
		run, pass, n := map[kind]int{}, map[kind]int{}, 0
		for _, r := range all {
			if (r.Test.Group == groupMore) != more {
				continue
			}
			n++
			for _, o := range []*outcome{r.Original, r.Ours} {
				if o == nil {
					continue
				}
				run[o.Kind]++
				if o.Verdict == passed {
					pass[o.Kind]++
				}
			}
		}
		if n == 0 {
			continue
		}
		which := "of the 142"
		if more {
			which = "of the others"
		}
		fmt.Fprintf(&b, "%s:", which)
		for _, k := range []kind{original, ours} {
			if run[k] > 0 {
				fmt.Fprintf(&b, " %d of %d pass with %s;", pass[k], run[k], map[kind]string{original: "the original", ours: "ours"}[k])
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestTable(t *testing.T) {
	t.Parallel()
	a := peerTest{Name: "a", Group: "job", Ours: expectPass}
	b := peerTest{Name: "b", Group: "files", Ours: expectFail, Why: "no such thing"}
	c := peerTest{Name: "c", Group: groupMore, Ours: expectPass}
	all := rows([]outcome{
		{Test: a, Kind: original, Verdict: passed, Took: 4 * time.Second, Cases: cases{Passed: 2, Skipped: 1}, Tries: 1},
		{Test: b, Kind: original, Verdict: passed, Took: 5 * time.Second, Tries: 2},
		{Test: a, Kind: ours, Verdict: passed, Took: 3600 * time.Millisecond, Cases: cases{Passed: 2, Skipped: 1}, Starts: starts{Startds: 1, Starters: 3}, Tries: 1},
		{Test: b, Kind: ours, Verdict: failed, Why: "exit status 1", Took: time.Minute, Cases: cases{Passed: 1, Failed: 1}, Tries: 1},
		{Test: c, Kind: ours, Verdict: tooLong, Why: "not done within 5m0s", Took: 5 * time.Minute, Tries: 2},
	})
	const want = `test	original	ours	listed	s original	s ours	cases original	cases ours	starts original	starts ours	note
a	pass	pass	pass	4	4	2/2+1	2/2+1	0/0	1/3	
b	pass	fail	fail	5	60	-	1/2	0/0	0/0	no such thing (exit status 1) [original: second try]
c	-	timeout	pass	-	300	-	-	-	0/0	not done within 5m0s [ours: second try]
`
	if got := tsv(all); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const sums = "of the 142: 2 of 2 pass with the original; 1 of 2 pass with ours;\nof the others: 0 of 1 pass with ours;\n"
	if got := printed(all); !strings.HasSuffix(got, sums) || !strings.Contains(got, "\na     pass      pass     pass    4 ") {
		t.Errorf("got\n%s", got)
	}
}
