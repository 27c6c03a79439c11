// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// LogSettings is what a configuration says about a daemon's log.
type LogSettings struct {
	Path string // <SUBSYSTEM>_LOG; "" is no file
	// Syslog says that the system's log is written instead of a file, and that
	// lines have no header: LOG_TO_SYSLOG, or SYSLOG for the path.
	Syslog bool
	Debug  Debug
	Limit  LogLimit
	Keep   int // old logs
	// Unknown are words in the lists of categories that mean nothing.
	Unknown []string
}

// LogSettingsFrom reads the knobs for a daemon of the subsystem, as "STARTD".
func LogSettingsFrom(s *config.Snapshot, subsystem string) (LogSettings, error) {
	own := s.String(subsystem + "_DEBUG")
	if own == "" {
		own = s.String("DEFAULT_DEBUG")
	}
	set := LogSettings{Path: s.String(subsystem + "_LOG"), Keep: 1}
	set.Debug, set.Unknown = ParseDebug(s.String("ALL_DEBUG"), own)
	set.Debug.TimeFormat = s.String("DEBUG_TIME_FORMAT")
	var all []error
	stamps, err := s.Bool("LOGS_USE_TIMESTAMP")
	if err != nil {
		all = append(all, err)
	}
	set.Debug.Timestamp = set.Debug.Timestamp || stamps
	toSystem, err := s.Bool("LOG_TO_SYSLOG")
	if err != nil {
		all = append(all, err)
	}
	if set.Syslog = toSystem || set.Path == "SYSLOG"; set.Syslog {
		set.Path, set.Debug.Bare = "", true
	}
	bad := func(name string, err error) {
		where := name
		if k, ok := s.Lookup(name); ok {
			where = k.Origin.String() + ": " + name
		}
		all = append(all, errs.E("observe.LogSettingsFrom", errs.Invalid, where, err))
	}
	most := "MAX_" + subsystem + "_LOG"
	if s.String(most) == "" {
		most = "MAX_DEFAULT_LOG"
	}
	if text := s.String(most); strings.TrimSpace(text) != "" {
		if set.Limit, err = ParseLogLimit(text); err != nil {
			bad(most, err)
		}
	}
	number := "MAX_NUM_" + subsystem + "_LOG"
	if text := s.String(number); text != "" {
		n, err := s.Int(number)
		if err != nil || n < 0 || n > 10000 {
			bad(number, fmt.Errorf("is %q; want 0 to 10000", text))
		}
		set.Keep = max(int(n), 1)
	}
	if err := errors.Join(all...); err != nil {
		return LogSettings{}, err
	}
	return set, nil
}
