// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// againAfter is when why is called again for a job that still waits: the reason may
// have changed.
const againAfter = time.Minute

// waiting are jobs that wait for one reason.
type waiting struct {
	reason, text string
	jobs         []*job
}

// TellWaits reports why jobs have been idle for so long, each reason of a job once.
// why returns the text for a job and the reason, which stays the same as long as the
// cause does; "" is a reason that users need not know. why is called for one of the jobs
// with the same signature, and for most signatures at most. more says where a person
// finds more about a job.
func (a *AP) TellWaits(now clock.Instant, long time.Duration, most int, why func(job *classad.Ad) (reason, text string), more func(job string) string) {
	if a.stopped {
		return
	}
	asked := make(map[int]*waiting)
	var told []*waiting
	for _, j := range a.idle {
		if now.Sub(j.since) < long || j.restart.waits(now) || !j.wait.asked.IsZero() && now.Sub(j.wait.asked) < againAfter {
			continue
		}
		w, ok := asked[j.place.sig]
		if !ok {
			if len(asked) == most {
				continue // the next time
			}
			reason, text := why(j.ad)
			at := slices.IndexFunc(told, func(w *waiting) bool { return w.reason == reason })
			if at < 0 {
				at = len(told)
				told = append(told, &waiting{reason: reason, text: text})
			}
			w = told[at]
			asked[j.place.sig] = w
		}
		j.wait.asked = now
		if j.wait.isNew(w.reason) {
			w.jobs = append(w.jobs, j)
		}
	}
	for _, w := range told {
		if len(w.jobs) == 0 {
			continue
		}
		first := w.jobs[0].id
		a.changed(Change{Job: first, At: now.Wall, Status: Idle, What: "waits", Others: len(w.jobs) - 1, Detail: w.text + "; " + more(first.String())})
	}
}
