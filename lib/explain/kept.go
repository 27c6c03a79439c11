// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
)

// Kept says that the owner's policy keeps a job from every slot, and why in one line.
// reason is the same as long as the same expressions refuse; it has no values in it,
// which change all the time. Both are "" if a slot would take the job now, or when it
// is free.
func Kept(verdicts []Verdict) (reason, text string) {
	var reasons []string
	for i := range verdicts {
		kept := false
		for k := range verdicts[i].Refusals {
			r := &verdicts[i].Refusals[k]
			if r.Name == limits || r.Name == ofTheJob {
				continue
			}
			kept = true
			if key := r.Name + " " + r.Origin; !slices.Contains(reasons, key) {
				reasons = append(reasons, key)
			}
			if text == "" {
				text = oneLine(r.Residual.Sentence(r.Name))
			}
		}
		if !kept {
			return "", ""
		}
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "\n"), text
}

// oneLine has the lines below the first of a sentence numbered behind it.
func oneLine(sentence string) string {
	lines := strings.Split(sentence, "\n")
	if len(lines) < 3 {
		return strings.Join(strings.Fields(sentence), " ")
	}
	for i := range lines[1:] {
		lines[1+i] = fmt.Sprintf("(%d) %s", 1+i, strings.TrimSpace(lines[1+i]))
	}
	return lines[0] + " " + strings.Join(lines[1:], ", ")
}
