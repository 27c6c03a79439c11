// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/observe"
)

// logs are the daemon's log and what starters write to standard error.
type logs struct {
	log     *slog.Logger
	handler *observe.DebugHandler
	file    *observe.LogFile // nil with another writer
	starter *os.File
	own     []io.Closer // what was opened here
}

func openLogs(s *config.Snapshot, o Options) (*logs, error) {
	set, err := observe.LogSettingsFrom(s, subsystem)
	if err != nil {
		return nil, err
	}
	l := &logs{starter: o.StarterLog}
	out := o.Out
	if out == nil {
		path := set.Path
		if path == "" {
			path = filepath.Join(s.String("LOG"), "StartLog")
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("STARTD_LOG: %w", err)
		}
		if l.file, err = observe.OpenLog(path, set.Limit, set.Keep, time.Now); err != nil {
			return nil, fmt.Errorf("STARTD_LOG: %w", err)
		}
		out, l.own = l.file, append(l.own, l.file)
	}
	if l.starter == nil {
		path := filepath.Join(s.String("LOG"), "StarterLog")
		if l.starter, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			return nil, errors.Join(fmt.Errorf("LOG: %w", err), l.close())
		}
		l.own = append(l.own, l.starter)
	}
	l.handler = observe.NewDebugHandler(out, set.Debug, o.PID)
	l.log = slog.New(l.handler)
	l.unknown(set.Unknown)
	return l, nil
}

// reconfigure takes new categories and limits over; the file stays.
func (l *logs) reconfigure(s *config.Snapshot) {
	set, err := observe.LogSettingsFrom(s, subsystem)
	if err != nil {
		l.log.Warn("the log stays as it was configured", "err", err)
		return
	}
	l.handler.Configure(set.Debug)
	l.unknown(set.Unknown)
	if l.file != nil {
		l.file.SetLimit(set.Limit, set.Keep)
	}
}

func (l *logs) unknown(words []string) {
	for _, word := range words {
		l.log.Warn("STARTD_DEBUG has a category that is not known", "word", word)
	}
}

func (l *logs) close() error {
	var bad []error
	for _, c := range l.own {
		bad = append(bad, c.Close())
	}
	return errors.Join(bad...)
}
