// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// CategoryKey is the attribute that gives a record its category, as
// slog.String(CategoryKey, "D_SECURITY"). Records without it are of
// D_ERROR for errors and of D_ALWAYS otherwise; a record of level debug is
// the second verbosity of its category, and D_ALWAYS:2 is D_FULLDEBUG.
const CategoryKey = "cat"

// TextKey is the attribute of a text that keeps its lines: it stands behind the
// message of a DebugHandler's record, as slog.String(TextKey, "what a program
// printed"). A line of it that looks like the beginning of a record is indented,
// so that a hostile text cannot forge one. Where there is no DebugHandler it is
// an attribute as any other.
const TextKey = "text"

// categories are HTCondor's, in its order.
var categories = [...]string{
	"D_ALWAYS", "D_ERROR", "D_STATUS", "D_ZKM", "D_JOB", "D_MACHINE", "D_CONFIG", "D_PROTOCOL", "D_PRIV", "D_DAEMONCORE", "D_FULLDEBUG", "D_SECURITY",
	"D_COMMAND", "D_MATCH", "D_NETWORK", "D_KEYBOARD", "D_PROCFAMILY", "D_IDLE", "D_THREADS", "D_ACCOUNTANT", "D_SYSCALLS", "D_CRON", "D_HOSTNAME",
	"D_PERF_TRACE", "D_LOAD", "D_25", "D_26", "D_AUDIT", "D_TEST", "D_STATS", "D_MATERIALIZE", "D_DYE",
}

const (
	always = 0
	failed = 1
	status = 2
)

func categoryOf(name string) (int, bool) {
	for i, c := range categories {
		if strings.EqualFold(c, name) {
			return i, true
		}
	}
	return always, false
}

// Debug says which records a daemon's log shows and what stands in front of
// each, as <SUBSYSTEM>_DEBUG does.
type Debug struct {
	basic, verbose uint32 // a bit for each category

	PID       bool // D_PID: "(pid:4711) "
	Category  bool // D_CAT: "(D_ALWAYS) "
	SubSecond bool // D_SUB_SECOND: milliseconds behind the time
	Timestamp bool // D_TIMESTAMP: Unix seconds for the time
	Bare      bool // nothing stands in front: who takes the lines has his own (LOG_TO_SYSLOG)

	// TimeFormat is DEBUG_TIME_FORMAT, as strftime has it; "" is
	// "%m/%d/%y %H:%M:%S".
	TimeFormat string
}

// ParseDebug reads lists of categories, such as the values of ALL_DEBUG and
// then STARTD_DEBUG: names divided by blanks, commas or bars, each with a
// verbosity behind a colon if it is not 1, or with '-' in front to switch it
// off. unknown are words that mean nothing.
func ParseDebug(lists ...string) (d Debug, unknown []string) {
	d.basic = 1<<always | 1<<failed | 1<<status
	for _, list := range lists {
		for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return strings.ContainsRune("|, \t\r\n", r) }) {
			if !d.flag(word) {
				unknown = append(unknown, word)
			}
		}
	}
	return d, unknown
}

func (d *Debug) flag(word string) bool {
	verbosity := 1
	name := strings.TrimPrefix(word, "+")
	if rest, off := strings.CutPrefix(name, "-"); off {
		name, verbosity = rest, 0
	}
	name, level, _ := strings.Cut(name, ":")
	if level != "" && level[0] >= '0' && level[0] <= '9' {
		verbosity = int(level[0] - '0')
	}
	on := verbosity > 0
	var bits uint32
	switch strings.ToUpper(name) {
	case "D_ALL":
		d.PID, d.Category = on, on
		bits = ^uint32(0)
	case "D_ANY":
		bits = ^uint32(0)
	case "D_PID":
		d.PID = on
	case "D_CAT", "D_LEVEL", "D_CATEGORY":
		d.Category = on
	case "D_SUB_SECOND":
		d.SubSecond = on
	case "D_TIMESTAMP":
		d.Timestamp = on
	case "D_FDS", "D_IDENT", "D_BACKTRACE": // nothing here has these
	case "D_FULLDEBUG":
		verbosity *= 2
		bits = 1 << always
	case "D_FAILURE":
		bits = 1 << failed
	default:
		i, ok := categoryOf(name)
		if !ok {
			return false
		}
		bits = 1 << i
	}
	if !on {
		d.verbose &^= bits
		return true
	}
	d.basic |= bits
	if verbosity > 1 {
		d.verbose |= bits
	}
	return true
}

// Shows reports whether records of a category are shown, and whether those of
// its second verbosity are.
func (d Debug) Shows(category string) (basic, verbose bool) {
	i, _ := categoryOf(category)
	return d.basic&(1<<i) != 0, d.verbose&(1<<i) != 0
}

// DebugHandler writes slog records as a daemon's log, with the header and of
// the categories that a Debug says:
//
//	11/20/26 14:00:56.123 (pid:4711) (D_SECURITY:2) slot1_1: resumed a session peer=<192.0.2.1:9618>
//
// Else it is a LogHandler.
type DebugHandler struct {
	LogHandler
	debug    *atomic.Pointer[Debug] // shared with all that were made of this one
	pid      int
	category int
	named    bool // a category was given
}

// NewDebugHandler returns a handler that writes to w.
func NewDebugHandler(w io.Writer, d Debug, pid int) *DebugHandler {
	h := &DebugHandler{LogHandler: *NewLogHandler(w, slog.LevelDebug), debug: new(atomic.Pointer[Debug]), pid: pid}
	h.debug.Store(&d)
	return h
}

// Configure replaces what the log shows, as a reconfiguration does: for this
// handler and all that were made of it.
func (h *DebugHandler) Configure(d Debug) { h.debug.Store(&d) }

// Enabled implements slog.Handler.
func (h *DebugHandler) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || h.debug.Load().verbose != 0
}

// Handle implements slog.Handler.
func (h *DebugHandler) Handle(_ context.Context, r slog.Record) error {
	debug := h.debug.Load()
	category, named := h.category, h.named
	slot := h.slot
	rest := append(make([]byte, 0, 128), h.attrs...)
	text := ""
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == CategoryKey && h.prefix == "":
			category, named = categoryOf(a.Value.String())
			return true
		case a.Key == TextKey && h.prefix == "" && !debug.Bare: // where a record is a line it stays one
			text = a.Value.String()
			return true
		}
		rest, slot = h.appendAttr(rest, slot, h.prefix, a)
		return true
	})
	if r.Level >= slog.LevelError && !named {
		category = failed
	}
	verbose := r.Level < slog.LevelInfo
	shown := debug.basic
	if verbose {
		shown = debug.verbose
	}
	// Whatever went wrong is shown, whichever category it is of.
	if shown&(1<<category) == 0 && r.Level < slog.LevelWarn {
		return nil
	}
	b := make([]byte, 0, 256)
	if !debug.Bare {
		b = debug.header(b, r.Time, h.pid)
	}
	header := len(b)
	if debug.Category && !debug.Bare {
		b = appendCategory(b, category, verbose, r.Level >= slog.LevelError)
	}
	if slot != "" {
		b = append(append(b, slot...), ": "...)
	}
	switch {
	case r.Level >= slog.LevelError:
		b = append(b, "ERROR: "...)
	case r.Level >= slog.LevelWarn:
		b = append(b, "WARNING: "...)
	}
	b = appendOneLine(b, r.Message)
	b = append(b, rest...)
	if text != "" {
		b = appendText(append(b, ' '), string(b[:header]), text)
	}
	b = append(b, '\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b)
	return err
}

// appendText appends lines. Those that begin as header does are indented, and
// control characters other than a tab are escaped.
func appendText(b []byte, header, text string) []byte {
	first, _, _ := strings.Cut(header, " ")
	for i, line := range strings.Split(strings.TrimRight(text, "\r\n"), "\n") {
		if i > 0 {
			b = append(b, '\n')
			word := line
			if end := strings.IndexAny(line, " \t"); end >= 0 {
				word = line[:end]
			}
			if shape(word) == shape(first) {
				b = append(b, '\t')
			}
		}
		for j, part := range strings.Split(strings.TrimSuffix(line, "\r"), "\t") {
			if j > 0 {
				b = append(b, '\t')
			}
			b = appendOneLine(b, part)
		}
	}
	return b
}

// shape is a word with 0 for each digit and a for letters: of the beginnings of
// two records it is the same.
func shape(word string) string {
	b := make([]byte, 0, len(word))
	for i := range len(word) {
		switch c := word[i]; {
		case c >= '0' && c <= '9':
			b = append(b, '0')
		case c|0x20 < 'a' || c|0x20 > 'z':
			b = append(b, c)
		case len(b) == 0 || b[len(b)-1] != 'a':
			b = append(b, 'a')
		}
	}
	return string(b)
}

// WithAttrs implements slog.Handler.
func (h *DebugHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	b := []byte(c.attrs)
	for _, a := range attrs {
		if a.Key == CategoryKey && c.prefix == "" {
			c.category, c.named = categoryOf(a.Value.String())
			continue
		}
		b, c.slot = c.appendAttr(b, c.slot, c.prefix, a)
	}
	c.attrs = string(b)
	return &c
}

// WithGroup implements slog.Handler.
func (h *DebugHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.prefix += name + "."
	return &c
}

// appendCategory appends "(D_ALWAYS:2) ". What is of D_STATUS is shown as
// D_ALWAYS, and an error of another category is marked.
func appendCategory(b []byte, category int, verbose, bad bool) []byte {
	mark := ""
	switch {
	case bad && category > failed:
		mark = "|D_FAILURE"
	case bad:
		category = failed
	}
	if category == status {
		category = always
	}
	b = append(append(b, '('), categories[category]...)
	if verbose {
		b = append(b, ":2"...)
	}
	return append(append(b, mark...), ") "...)
}

// header appends the time and who writes.
func (d *Debug) header(b []byte, at time.Time, pid int) []byte {
	at = at.Round(0)
	if d.SubSecond {
		at = at.Round(time.Millisecond)
	}
	if d.Timestamp {
		b = strconv.AppendInt(b, at.Unix(), 10)
	} else {
		b = strftime(b, d.TimeFormat, at)
	}
	if d.SubSecond {
		ms := at.Nanosecond() / int(time.Millisecond)
		b = append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	}
	b = append(b, ' ')
	if d.PID {
		b = strconv.AppendInt(append(b, "(pid:"...), int64(pid), 10)
		b = append(b, ") "...)
	}
	return b
}

// strftime appends a time in a format of C. What it does not know stays as it
// is written.
func strftime(b []byte, format string, at time.Time) []byte {
	format = strings.Trim(format, `"`)
	if format == "" {
		format = "%m/%d/%y %H:%M:%S"
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b = append(b, format[i])
			continue
		}
		i++
		if layout, ok := timeLayout(format[i]); ok {
			b = at.AppendFormat(b, layout)
			continue
		}
		switch format[i] {
		case '%':
			b = append(b, '%')
		case 's':
			b = strconv.AppendInt(b, at.Unix(), 10)
		default:
			b = append(b, '%', format[i])
		}
	}
	return b
}

// timeLayout is what Go calls one conversion of strftime.
func timeLayout(c byte) (string, bool) {
	layout := timeLayouts[c]
	return layout, layout != ""
}

// timeLayouts are data of the program: a map would be made for every line of a log.
var timeLayouts = [256]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02",
	'h': "Jan", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05",
	'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
}
