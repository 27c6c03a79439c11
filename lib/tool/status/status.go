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
// shown as how long they are ago, amounts in units of 1024. Errors of w are not told:
// it is a terminal or a pipe, where they show as missing lines.
func Print(w io.Writer, s *observe.Status, now time.Time) {
	if s == nil {
		return
	}
	what := ""
	if s.Program != "" { // an older one does not say
		what = s.Program + ", "
	}
	fmt.Fprintf(w, "%s, %spid %d, up %s\n", s.Name, what, s.PID, words.Short(now.Sub(s.Started)))
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "  SLOT\tTYPE\tSTATE\tACTIVITY\tSINCE\tCPUS\tMEMORY\tDISK\tJOB\tUSER")
	for _, sl := range s.Slots {
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\t%g\t%s\t%s\t%s\t%s\n", sl.Name, sl.Type, sl.State, sl.Activity,
			words.Short(now.Sub(sl.Since)), sl.Cpus, words.Size(sl.MemoryMiB<<20), words.Size(sl.DiskKiB<<10), sl.Job, sl.User)
	}
	// The writer below is a terminal or a pipe; its errors show as missing lines.
	_ = tw.Flush()
	for _, sl := range s.Slots {
		if sl.Broken != "" {
			fmt.Fprintf(w, "  %s is broken: %s\n", sl.Name, sl.Broken)
		}
	}
	if s.Draining != nil {
		drain(w, s.Draining, now)
	}
	if s.Ending != "" {
		fmt.Fprintf(w, "  ending: %s\n", s.Ending)
	}
	if j := s.Jobs; j != nil {
		fmt.Fprintf(w, "  jobs: %d idle, %d running, %d held, %d of %d done\n", j.Idle, j.Running, j.Held, j.Done, j.Total)
	}
}

// drain says how far a drain is.
func drain(w io.Writer, d *observe.Draining, now time.Time) {
	who := ""
	if d.By != "" && !strings.Contains(d.Reason, d.By) {
		who = " by " + d.By
	}
	fmt.Fprintf(w, "  draining (%s, id %s)%s for %s: %s", d.How, d.ID, who, words.Short(now.Sub(d.Since)), d.Reason)
	left := spelling.Count(d.Jobs, "job") + " left"
	switch {
	case d.Drained:
		fmt.Fprint(w, "; drained")
	case d.Jobs == 0:
	case d.Until != nil:
		fmt.Fprintf(w, "; %s, for at most %s", left, words.Short(d.Until.Sub(now)))
	default:
		fmt.Fprintf(w, "; %s, until they end", left)
	}
	fmt.Fprintf(w, "; then %s\n", d.Then)
	if d.Start != "" {
		fmt.Fprintf(w, "  lets in meanwhile: %s\n", d.Start)
	}
}
