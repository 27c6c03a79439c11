// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"github.com/execpoint/execpoint/lib/eventlog"
)

// maxLogs bounds how many event logs are kept open.
const maxLogs = 64

// logs keeps the job event logs of a submit file open between events. It
// belongs to the owner's goroutine.
type logs struct {
	open  map[string]*eventlog.Writer
	order []string // oldest first
}

func newLogs() *logs { return &logs{open: make(map[string]*eventlog.Writer)} }

func (l *logs) append(path string, h eventlog.Header, ev eventlog.Event) error {
	w, ok := l.open[path]
	if !ok {
		if len(l.order) >= maxLogs {
			oldest := l.order[0]
			l.order = l.order[1:]
			if err := l.open[oldest].Close(); err != nil {
				return err
			}
			delete(l.open, oldest)
		}
		var err error
		if w, err = eventlog.Open(path); err != nil {
			return err
		}
		l.open[path] = w
		l.order = append(l.order, path)
	}
	return w.Write(h, ev)
}

func (l *logs) close() error {
	var first error
	for _, path := range l.order {
		if err := l.open[path].Close(); err != nil && first == nil {
			first = err
		}
	}
	l.open, l.order = nil, nil
	return first
}
