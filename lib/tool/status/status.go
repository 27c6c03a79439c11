// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/spelling"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// Print prints a status as it is at now; of a status that is nil nothing. Times are
// shown as how long they are ago, amounts in units of 1024. What jobs and people called
// things is shown without what a terminal would obey. Errors of w are not told: it is a
// terminal or a pipe, where they show as missing lines.
func Print(w io.Writer, s *observe.Status, now time.Time) {
	if s == nil {
		return
	}
	what := ""
	if s.Program != "" { // an older one does not say
		what = words.Printable(s.Program) + ", "
	}
	fmt.Fprintf(w, "%s, %spid %d, up %s\n", words.Printable(s.Name), what, s.PID, words.Short(now.Sub(s.Started)))
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "  SLOT\tTYPE\tSTATE\tACTIVITY\tSINCE\tCPUS\tMEMORY\tDISK\tJOB\tUSER")
	for _, sl := range s.Slots {
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\t%g\t%s\t%s\t%s\t%s\n", words.Printable(sl.Name), sl.Type, sl.State, sl.Activity,
			words.Short(now.Sub(sl.Since)), sl.Cpus, words.Size(sl.MemoryMiB<<20), words.Size(sl.DiskKiB<<10), words.Printable(sl.Job), words.Printable(sl.User))
	}
	// The writer below is a terminal or a pipe; its errors show as missing lines.
	_ = tw.Flush()
	for _, sl := range s.Slots {
		if sl.Broken != "" {
			fmt.Fprintf(w, "  %s is broken: %s\n", words.Printable(sl.Name), words.Printable(sl.Broken))
		}
	}
	for _, what := range s.NotContained {
		fmt.Fprintf(w, "  not contained: %s\n", words.Printable(what))
	}
	if s.Draining != nil {
		fmt.Fprintln(w, "  "+words.Printable(drain(s.Draining, now)))
		if s.Draining.Start != "" {
			fmt.Fprintf(w, "  lets in meanwhile: %s\n", words.Printable(s.Draining.Start))
		}
	}
	if s.Ending != "" {
		fmt.Fprintf(w, "  ending: %s\n", words.Printable(s.Ending))
	}
	if j := s.Jobs; j != nil {
		fmt.Fprintf(w, "  jobs: %d idle, %d running, %d held, %d of %d done\n", j.Idle, j.Running, j.Held, j.Done, j.Total)
	}
}

// drain says how far a drain is.
func drain(d *observe.Draining, now time.Time) string {
	who := ""
	if d.By != "" && !strings.Contains(d.Reason, d.By) {
		who = " by " + d.By
	}
	s := fmt.Sprintf("draining (%s, id %s)%s for %s: %s", d.How, d.ID, who, words.Short(now.Sub(d.Since)), d.Reason)
	left := spelling.Count(d.Jobs, "job") + " left"
	switch {
	case d.Drained:
		s += "; drained"
	case d.Jobs == 0:
	case d.Until != nil:
		s += fmt.Sprintf("; %s, for at most %s", left, words.Short(d.Until.Sub(now)))
	default:
		s += fmt.Sprintf("; %s, until they end", left)
	}
	return s + "; then " + d.Then
}
