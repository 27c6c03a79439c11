// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"
)

// Text prints the report for a person, as of now.
func (r *Report) Text(now time.Time) string {
	var b strings.Builder
	switch {
	case r.Slot != "":
		fmt.Fprintf(&b, "%s is %s/%s%s\n", r.Slot, r.State, r.Activity, since(now, r.Since))
		if r.Job != "" {
			fmt.Fprintf(&b, "  job       %s\n", r.Job)
		}
	case r.Job != "":
		fmt.Fprintf(&b, "job %s is %s%s\n", r.Job, r.State, since(now, r.Since))
	default:
		b.WriteString("this job, if it were submitted now\n")
	}
	if r.From != "" {
		fmt.Fprintf(&b, "  came from %s at %s", r.From, r.At.Format("15:04:05"))
		if r.Number != "" {
			fmt.Fprintf(&b, " (transition %s)", r.Number)
		}
		b.WriteString("\n")
	}
	if r.Why != "" {
		fmt.Fprintf(&b, "  because   %s\n", r.Why)
	}
	if r.Answer != "" {
		fmt.Fprintf(&b, "\n%s\n", indented(r.Answer, "  "))
	}
	for i := range r.Slots {
		v := &r.Slots[i]
		fmt.Fprintf(&b, "\n  %s\n%s\n", v.who(), indented(strings.Join(v.lines(), "\n"), "    "))
	}
	for i := range r.Exprs {
		r.Exprs[i].text(&b, r.Answer)
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  %s\n", n)
	}
	return b.String()
}

func since(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return " for " + Span(max(now.Sub(then), 0))
}

func indented(s, by string) string { return by + strings.ReplaceAll(s, "\n", "\n"+by) }

// text prints an expression, and what would change it unless that was said.
func (x *Expression) text(b *strings.Builder, said string) {
	fmt.Fprintf(b, "\n  %s is %s\n", x.Name, x.Value)
	if x.Text != "" {
		fmt.Fprintf(b, "    %s\n", x.Text)
	}
	if x.Origin != "" {
		fmt.Fprintf(b, "    set at  %s\n", x.Origin)
	}
	for _, m := range x.Macros {
		fmt.Fprintf(b, "    uses    %s\n", m)
	}
	for _, r := range x.Reads {
		fmt.Fprintf(b, "    read    %s\n", r)
	}
	if x.Residual == nil || x.Residual.Is || x.Residual.Constant {
		return // a constant says so itself
	}
	if text := x.Residual.Sentence(x.Name); !strings.Contains(said, text) {
		b.WriteString(indented(text, "    ") + "\n")
	}
}

// Together leaves out reports about slots that say nothing else than an
// earlier one, which then notes their names.
func Together(list []*Report) []*Report {
	var out []*Report
	first := map[string]*Report{}
	for _, r := range list {
		key := strings.ReplaceAll(r.Text(r.Since), r.Slot, "slot")
		if same, ok := first[key]; ok {
			same.Notes = append(same.Notes, "the same holds for "+r.Slot)
			continue
		}
		first[key] = r
		out = append(out, r)
	}
	return out
}
