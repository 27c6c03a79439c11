// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package realpool

import (
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// Event is one event of a job event log, as its text.
type Event struct {
	Code          eventlog.Code
	Cluster, Proc int
	Text          string // the whole, without the dots that close it
	End           int    // where the next one begins in the log
}

const eventEnd = "\n...\n"

var eventHead = regexp.MustCompile(`^(\d{3}) \((\d+)\.(\d+)\.\d+\) `)

// Events are the events in a job event log that are there as a whole. What has
// no head of an event is passed over.
func Events(log string) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for at := 0; ; {
			text, _, whole := strings.Cut(log[at:], eventEnd)
			if !whole {
				return
			}
			at += len(text) + len(eventEnd)
			m := eventHead.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			var n [3]int
			for i := range n {
				n[i], _ = strconv.Atoi(m[i+1]) // digits
			}
			if !yield(Event{Code: eventlog.Code(n[0]), Cluster: n[1], Proc: n[2], Text: text, End: at}) {
				return
			}
		}
	}
}
