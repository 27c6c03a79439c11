// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/observe"
)

// openLogs opens the daemon's and the starters' logs below LOG.
func openLogs(snap *config.Snapshot, level slog.Leveler) (log *slog.Logger, starterLog *os.File, closeAll func() error, err error) {
	dir := snap.String("LOG")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, nil, fmt.Errorf("LOG: %w", err)
	}
	startd, err := os.OpenFile(filepath.Join(dir, "StartLog"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("LOG: %w", err)
	}
	starterLog, err = os.OpenFile(filepath.Join(dir, "StarterLog"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("LOG: %w", err), startd.Close())
	}
	closeAll = func() error { return errors.Join(startd.Close(), starterLog.Close()) }
	return slog.New(leveled{observe.NewLogHandler(startd, slog.LevelDebug), level}), starterLog, closeAll, nil
}

// leveled is a log whose level may change.
type leveled struct {
	slog.Handler
	level slog.Leveler
}

// Enabled reports whether records of a level are written at present.
func (l leveled) Enabled(_ context.Context, at slog.Level) bool { return at >= l.level.Level() }

// WithAttrs returns the same log with attributes for every record.
func (l leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{l.Handler.WithAttrs(attrs), l.level}
}

// WithGroup returns the same log with a name before those of attributes.
func (l leveled) WithGroup(name string) slog.Handler {
	return leveled{l.Handler.WithGroup(name), l.level}
}

// logLevel is what of the daemon's log is written: everything with D_FULLDEBUG
// or a category at level 2 in STARTD_DEBUG or ALL_DEBUG.
func logLevel(snap *config.Snapshot) slog.Level {
	for _, knob := range [...]string{"STARTD_DEBUG", "ALL_DEBUG"} {
		words := strings.FieldsFunc(snap.String(knob), func(r rune) bool { return strings.ContainsRune(" ,|\t", r) })
		for _, w := range words {
			if strings.EqualFold(w, "D_FULLDEBUG") || strings.HasSuffix(w, ":2") {
				return slog.LevelDebug
			}
		}
	}
	return slog.LevelInfo
}
