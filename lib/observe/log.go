// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
)

// LogHandler writes slog records as HTCondor's daemons write their logs:
//
//	11/20/26 14:00:56 slot1_1: Changing activity: Idle -> Busy pid=4711
//
// The attribute "slot" goes in front of the message, warnings and errors are
// marked with their category, all other attributes follow as key=value. Each
// record is one Write of one line: line breaks in values are escaped, so that
// a hostile value cannot forge a record.
type LogHandler struct {
	mu     *sync.Mutex
	w      io.Writer
	level  slog.Level
	slot   string
	prefix string // group names, each with a dot behind
	attrs  string // preformatted, each with a blank before
}

// NewLogHandler returns a handler that writes records of level and above to w.
// Writes are serialized; the caller keeps ownership of w.
func NewLogHandler(w io.Writer, level slog.Level) *LogHandler {
	return &LogHandler{mu: new(sync.Mutex), w: w, level: level}
}

// Enabled implements slog.Handler.
func (h *LogHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// Handle implements slog.Handler.
func (h *LogHandler) Handle(_ context.Context, r slog.Record) error {
	slot := h.slot
	rest := make([]byte, 0, 128)
	rest = append(rest, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		rest, slot = h.appendAttr(rest, slot, h.prefix, a)
		return true
	})
	b := make([]byte, 0, 256)
	b = r.Time.AppendFormat(b, "01/02/06 15:04:05 ")
	switch {
	case r.Level >= slog.LevelError:
		b = append(b, "(D_ERROR) "...)
	case r.Level >= slog.LevelWarn:
		b = append(b, "(D_ALWAYS) WARNING: "...)
	case r.Level < slog.LevelInfo:
		b = append(b, "(D_FULLDEBUG) "...)
	}
	if slot != "" {
		b = append(append(b, slot...), ": "...)
	}
	b = appendOneLine(b, r.Message)
	b = append(append(b, rest...), '\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b)
	return err
}

// WithAttrs implements slog.Handler.
func (h *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	b := []byte(c.attrs)
	for _, a := range attrs {
		b, c.slot = c.appendAttr(b, c.slot, c.prefix, a)
	}
	c.attrs = string(b)
	return &c
}

// WithGroup implements slog.Handler.
func (h *LogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.prefix += name + "."
	return &c
}

func (h *LogHandler) appendAttr(b []byte, slot, prefix string, a slog.Attr) ([]byte, string) {
	v := a.Value.Resolve()
	switch {
	case a.Equal(slog.Attr{}):
		return b, slot
	case v.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, g := range v.Group() {
			b, slot = h.appendAttr(b, slot, prefix, g)
		}
		return b, slot
	case a.Key == "slot" && prefix == "":
		return b, string(appendOneLine(nil, v.String()))
	}
	b = append(append(append(append(b, ' '), prefix...), a.Key...), '=')
	s := v.String()
	if s == "" || strings.ContainsAny(s, " \t\"=") || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return strconv.AppendQuote(b, s), slot
	}
	return append(b, s...), slot
}

// appendOneLine appends s with control characters escaped.
func appendOneLine(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return append(b, s...)
	}
	q := strconv.Quote(s)
	return append(b, q[1:len(q)-1]...)
}
