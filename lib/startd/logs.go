// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/observe"
)

// logs are the daemon's log and what starters write to standard error.
type logs struct {
	log     *slog.Logger
	file    *observe.LogFile // nil with another writer
	out     io.Writer
	starter *os.File
	own     []io.Closer // what was opened here
	pid     int
	now     changing
}

// changing is a handler that a reconfiguration replaces.
type changing struct{ h *atomic.Pointer[slog.Handler] }

// Enabled implements slog.Handler.
func (c changing) Enabled(ctx context.Context, l slog.Level) bool {
	return (*c.h.Load()).Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (c changing) Handle(ctx context.Context, r slog.Record) error {
	return (*c.h.Load()).Handle(ctx, r)
}

// WithAttrs returns a handler of the present kind: loggers with attributes live
// as long as what they are about.
func (c changing) WithAttrs(a []slog.Attr) slog.Handler { return (*c.h.Load()).WithAttrs(a) }

// WithGroup is like WithAttrs.
func (c changing) WithGroup(name string) slog.Handler { return (*c.h.Load()).WithGroup(name) }

func openLogs(s *config.Snapshot, o Options) (*logs, error) {
	l := &logs{pid: o.PID, out: o.Out, starter: o.StarterLog, now: changing{new(atomic.Pointer[slog.Handler])}}
	limit, keep, err := limits(s)
	if err != nil {
		return nil, err
	}
	if l.out == nil {
		path := s.String("STARTD_LOG")
		if path == "" {
			path = filepath.Join(s.String("LOG"), "StartLog")
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("STARTD_LOG: %w", err)
		}
		if l.file, err = observe.OpenLog(path, limit, keep, time.Now); err != nil {
			return nil, fmt.Errorf("STARTD_LOG: %w", err)
		}
		l.out, l.own = l.file, append(l.own, l.file)
	}
	if l.starter == nil {
		path := filepath.Join(s.String("LOG"), "StarterLog")
		if l.starter, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			return nil, errors.Join(fmt.Errorf("LOG: %w", err), l.close())
		}
		l.own = append(l.own, l.starter)
	}
	l.set(s)
	l.log = slog.New(l.now)
	return l, nil
}

func (l *logs) set(s *config.Snapshot) (unknown []string) {
	d, unknown := observe.ParseDebug(s.String("ALL_DEBUG"), s.String("STARTD_DEBUG"))
	d.TimeFormat = s.String("DEBUG_TIME_FORMAT")
	var h slog.Handler = observe.NewDebugHandler(l.out, d, l.pid)
	l.now.h.Store(&h)
	return unknown
}

// reconfigure takes new categories and limits over.
func (l *logs) reconfigure(s *config.Snapshot) {
	for _, word := range l.set(s) {
		l.log.Warn("STARTD_DEBUG has a category that is not known", "word", word)
	}
	limit, keep, err := limits(s)
	if err != nil {
		l.log.Warn("the size of the log stays as it was", "err", err)
		return
	}
	if l.file != nil {
		l.file.SetLimit(limit, keep)
	}
}

func limits(s *config.Snapshot) (observe.LogLimit, int, error) {
	text := s.String("MAX_STARTD_LOG")
	if text == "" {
		text = s.String("MAX_DEFAULT_LOG")
	}
	limit, err := observe.ParseLogLimit(text)
	if err != nil {
		return limit, 0, fmt.Errorf("MAX_STARTD_LOG: %w", err)
	}
	keep := int64(1)
	if set, ok := s.Lookup("MAX_NUM_STARTD_LOG"); ok && set.Value != "" {
		if keep, err = s.Int("MAX_NUM_STARTD_LOG"); err != nil {
			return limit, 0, err
		}
	}
	return limit, int(keep), nil
}

func (l *logs) close() error {
	var bad []error
	for _, c := range l.own {
		bad = append(bad, c.Close())
	}
	return errors.Join(bad...)
}
