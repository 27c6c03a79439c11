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
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/observe"
)

// logs are the daemon's log and what starters write to standard error.
type logs struct {
	log     *slog.Logger
	handler *observe.DebugHandler
	system  func(tag string) (io.WriteCloser, error)
	to      sink
	given   bool             // another writer takes the lines
	file    *observe.LogFile // nil until it is wanted
	syslog  io.WriteCloser   // nil until it is wanted
	starter *os.File
	own     []io.Closer // what was opened here
}

// sink passes lines on to where they go now.
type sink struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(line)
}

func (s *sink) aim(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = w
}

func openLogs(s *config.Snapshot, o Options) (*logs, error) {
	set, err := observe.LogSettingsFrom(s, subsystem)
	if err != nil {
		return nil, err
	}
	l := &logs{starter: o.StarterLog, system: o.Platform.Syslog}
	if o.Out != nil {
		l.given = true
		set.Debug.Bare = false
		l.to.aim(o.Out)
	} else if err := l.open(s, set); err != nil {
		return nil, err
	} else {
		l.aim(set)
	}
	if l.starter == nil {
		path := filepath.Join(s.String("LOG"), "StarterLog")
		if l.starter, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			return nil, errors.Join(fmt.Errorf("LOG: %w", err), l.close())
		}
		l.own = append(l.own, l.starter)
	}
	l.handler = observe.NewDebugHandler(&l.to, set.Debug, o.PID)
	l.log = slog.New(l.handler)
	l.unknown(set.Unknown)
	return l, nil
}

// logPath is the file of the daemon's log.
func logPath(s *config.Snapshot, set observe.LogSettings) string {
	if set.Path != "" {
		return set.Path
	}
	return filepath.Join(s.String("LOG"), "StartLog")
}

// open opens what the lines are to go to by these settings. A file that was opened
// before stays the same one.
func (l *logs) open(s *config.Snapshot, set observe.LogSettings) error {
	switch {
	case set.Syslog && l.syslog == nil:
		to, err := l.system("condor_" + strings.ToLower(subsystem))
		if err != nil {
			return fmt.Errorf("LOG_TO_SYSLOG: %w", err)
		}
		l.syslog = to
		l.own = append(l.own, l.syslog)
	case !set.Syslog && l.file == nil:
		path := logPath(s, set)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("STARTD_LOG: %w", err)
		}
		file, err := observe.OpenLog(path, set.Limit, set.Keep, time.Now)
		if err != nil {
			return fmt.Errorf("STARTD_LOG: %w", err)
		}
		l.file = file
		l.own = append(l.own, l.file)
	}
	return nil
}

// aim has the lines go to what open has opened.
func (l *logs) aim(set observe.LogSettings) {
	if set.Syslog {
		l.to.aim(l.syslog)
	} else {
		l.to.aim(l.file)
	}
}

// prepare reads the settings of the log from a configuration that is not in force
// yet, and opens what they need.
func (l *logs) prepare(s *config.Snapshot) (observe.LogSettings, error) {
	set, err := observe.LogSettingsFrom(s, subsystem)
	if err == nil && !l.given {
		err = l.open(s, set)
	}
	return set, err
}

// reconfigure takes over what prepare has read: new categories and limits, and
// whether the system's log is written; the file stays the same one.
func (l *logs) reconfigure(set observe.LogSettings) {
	if l.given {
		set.Debug.Bare = false
	} else {
		l.aim(set)
	}
	l.handler.Configure(set.Debug)
	l.unknown(set.Unknown)
	if l.file != nil {
		l.file.SetLimit(set.Limit, set.Keep)
	}
}

// touched is when the daemon's log was last written before this daemon's time,
// zero if that is not known.
func (l *logs) touched() time.Time {
	if l.file == nil {
		return time.Time{}
	}
	return l.file.Touched()
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
