// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"iter"
)

// SearchAll is Search in several histories, each the list of its files: the newest job
// of all comes first, and Limit counts those of all.
func (q *Query) SearchAll(ctx context.Context, histories [][]string, found func(Record) bool, bad func(path string, offset int64, err error)) error {
	if len(histories) == 1 {
		return q.Search(ctx, histories[0], found, bad)
	}
	var heads []*head
	for _, files := range histories {
		h := &head{}
		next, stop := iter.Pull(func(yield func(Record) bool) { h.failed = q.Search(ctx, files, yield, bad) })
		defer stop()
		if h.next = next; h.advance() {
			heads = append(heads, h)
		} else if h.failed != nil {
			return h.failed
		}
	}
	for shown := 0; len(heads) > 0 && (q.Limit == 0 || shown < q.Limit); shown++ {
		first := 0
		for i, h := range heads {
			if h.ended > heads[first].ended {
				first = i
			}
		}
		h := heads[first]
		if !found(h.record) {
			return nil
		}
		if !h.advance() {
			if h.failed != nil {
				return h.failed
			}
			heads = append(heads[:first], heads[first+1:]...)
		}
	}
	return nil
}

// head is the newest record of a history that was not passed on yet.
type head struct {
	next   func() (Record, bool)
	record Record
	ended  int64 // its CompletionDate
	failed error // of the search, once it is over
}

// advance goes on to the next record, false if there is none.
func (h *head) advance() (ok bool) {
	if h.record, ok = h.next(); ok {
		h.ended, _ = h.record.Ad.EvalInt("CompletionDate", nil)
	}
	return ok
}
