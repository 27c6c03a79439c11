// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// reader looks settings up by level. It is used while a configuration is
// being read and forgotten afterwards.
type reader struct {
	c         *config.Snapshot
	subsystem string // for the forms that end in _<SUBSYSTEM>; "" has none
	legacy    bool   // LEGACY_ALLOW_SEMANTICS
}

func newReader(c *config.Snapshot, subsystem string) (reader, error) {
	legacy, err := flag(c, "LEGACY_ALLOW_SEMANTICS", false)
	return reader{c: c, subsystem: strings.ToUpper(subsystem), legacy: legacy}, err
}

// find returns the setting that counts for a level: that of the level itself,
// then of the level it falls back to, DEFAULT at last. pattern has %s where
// the level's name goes; own, "" for none, is asked for first, and has another %s
// for the subsystem. A setting of nothing counts as not set, and
// so do the defaults of the table of knobs: they differ for tools.
func (r reader) find(pattern, own string, l Level) (config.Setting, bool) {
	for ; l < levels; l = fallback(l, r.legacy) {
		if own != "" && r.subsystem != "" {
			if s, ok := r.lookup(fmt.Sprintf(own, l, r.subsystem)); ok {
				return s, true
			}
		}
		if s, ok := r.lookup(fmt.Sprintf(pattern, l)); ok {
			return s, true
		}
	}
	return config.Setting{}, false
}

func (r reader) lookup(name string) (config.Setting, bool) {
	s, ok := r.c.Lookup(name)
	if !ok || s.IsDefault || strings.TrimSpace(s.Value) == "" {
		return config.Setting{}, false
	}
	return s, true
}

// seconds reads a number of seconds that is not negative. As in HTCondor it may be
// written as an expression: 24 * 60 * 60.
func (r reader) seconds(s config.Setting) (time.Duration, error) {
	d, err := r.c.Duration(s.Name)
	if err != nil || d < 0 || d > maxSeconds*time.Second {
		return 0, badSetting(s, fmt.Sprintf("want a number of seconds from 0 to %d", maxSeconds))
	}
	return d, nil
}

// maxSeconds bounds durations of sessions: ten years.
const maxSeconds = 10 * 365 * 86400

// badSetting is the error of a setting that cannot be used.
func badSetting(s config.Setting, want string) error {
	return errs.E("security.Configure", errs.Invalid, s.Name,
		fmt.Errorf("%s: %s = %q: %s", s.Origin, s.Name, clip(s.Value), want))
}

// clip makes a text from somewhere else fit for a message: it is short and
// cannot begin a line of its own.
func clip(text string) string {
	const most = 120
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, text)
}

// flag reads a boolean that has a default here when nothing sets it.
func flag(c *config.Snapshot, name string, otherwise bool) (bool, error) {
	if s, ok := c.Lookup(name); !ok || strings.TrimSpace(s.Value) == "" {
		return otherwise, nil
	}
	b, err := c.Bool(name)
	if err != nil {
		return otherwise, errs.E("security.Configure", errs.Invalid, name, err)
	}
	return b, nil
}

// words cuts a setting at commas and blanks.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' })
}
