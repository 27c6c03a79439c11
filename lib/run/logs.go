// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// maxLogs bounds how many event logs are kept open.
const maxLogs = 64

// logs keeps the job event logs of a submit file open between events. It
// belongs to the owner's goroutine.
type logs struct {
	as    func(path string, f func() error) error // with the rights of whose logs they are
	open  map[string]*eventlog.Writer
	order []string // oldest first
}

func newLogs(as func(string, func() error) error) *logs {
	return &logs{as: as, open: make(map[string]*eventlog.Writer)}
}

// asOwner calls f, whose dealings with the file at path are then those of the owner
// of the jobs: what a submit file names may be a link to what is not theirs. Root's
// jobs have logs of root's where nobody else can have put anything in the way, and
// elsewhere those of the account that jobs without one of their own have.
func (o *Options) asOwner(path string, f func() error) error {
	owner, access := o.RunAs, o.Host.Access
	if access == nil || o.Host.Account == nil {
		return f()
	}
	if owner == nil {
		if access.Alone(path) == nil {
			return f()
		}
		var err error
		if owner, err = o.Host.Account(Nobody(o.Config)); err != nil {
			return err
		}
	}
	return access.As(owner, f)
}

// append writes an event. Where an older log cannot be closed, which is an error of
// what was written to it, that is told, and the event is written all the same.
func (l *logs) append(path string, h eventlog.Header, ev eventlog.Event) error {
	var older error
	w, ok := l.open[path]
	if !ok {
		if len(l.order) >= maxLogs {
			oldest := l.order[0]
			l.order = l.order[1:]
			older = l.open[oldest].Close()
			delete(l.open, oldest)
		}
		err := l.as(path, func() (err error) {
			w, err = eventlog.Open(path)
			return err
		})
		if err != nil {
			return errors.Join(older, err)
		}
		l.open[path] = w
		l.order = append(l.order, path)
	}
	return errors.Join(older, w.Write(h, ev))
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
