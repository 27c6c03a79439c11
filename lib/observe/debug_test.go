// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseDebug(t *testing.T) {
	t.Parallel()
	tests := []struct {
		lists   []string
		shown   []string // beyond D_ALWAYS, D_ERROR and D_STATUS
		verbose []string
		want    Debug // header
		unknown []string
	}{
		{lists: nil},
		{lists: []string{"D_FULLDEBUG"}, verbose: []string{"D_ALWAYS"}},
		{lists: []string{"D_ALWAYS:2"}, verbose: []string{"D_ALWAYS"}},
		{lists: []string{"D_SECURITY:2, D_COMMAND|d_network"}, shown: []string{"D_SECURITY", "D_COMMAND", "D_NETWORK"}, verbose: []string{"D_SECURITY"}},
		{lists: []string{"D_SECURITY:2", "-D_SECURITY"}, shown: []string{"D_SECURITY"}},
		{lists: []string{"D_PID D_CAT", "D_SUB_SECOND D_TIMESTAMP -D_PID"}, want: Debug{Category: true, SubSecond: true, Timestamp: true}},
		{lists: []string{"D_ALL"}, shown: []string{"D_JOB", "D_DYE", "D_LOAD"}, want: Debug{PID: true, Category: true}},
		{lists: []string{"D_ANY:2"}, shown: []string{"D_JOB", "D_STATS"}, verbose: []string{"D_ALWAYS", "D_JOB"}},
		{lists: []string{"D_FAILURE D_NOTHING D_FDS"}, unknown: []string{"D_NOTHING"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.lists, "+"), func(t *testing.T) {
			t.Parallel()
			d, unknown := ParseDebug(tt.lists...)
			if !slices.Equal(unknown, tt.unknown) {
				t.Errorf("unknown are %q, want %q", unknown, tt.unknown)
			}
			for _, c := range append([]string{"D_ALWAYS", "D_ERROR", "D_STATUS"}, tt.shown...) {
				if basic, _ := d.Shows(c); !basic {
					t.Errorf("%s is not shown", c)
				}
			}
			for _, c := range []string{"D_ALWAYS", "D_JOB", "D_SECURITY", "D_COMMAND"} {
				basic, verbose := d.Shows(c)
				if verbose != slices.Contains(tt.verbose, c) && !strings.HasPrefix(tt.lists[0], "D_ANY") {
					t.Errorf("%s verbose is %v", c, verbose)
				}
				if basic && c != "D_ALWAYS" && !slices.Contains(tt.shown, c) && !strings.HasPrefix(tt.lists[0], "D_A") {
					t.Errorf("%s is shown", c)
				}
			}
			d.basic, d.verbose = 0, 0
			if d != tt.want {
				t.Errorf("header is %+v, want %+v", d, tt.want)
			}
		})
	}
}

// row: S2-035
func TestDebugHandler(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 14, 0, 56, 123_600_000, time.Local)
	tests := []struct {
		flags, format string
		say           func(l *slog.Logger)
		want          string
	}{
		{say: func(l *slog.Logger) { l.Info("State change", "slot", "slot1_1", "from", "Owner") }, want: "11/20/26 14:00:56 slot1_1: State change from=Owner\n"},
		{say: func(l *slog.Logger) { l.Debug("detail") }},
		{flags: "D_FULLDEBUG D_CAT", say: func(l *slog.Logger) { l.Debug("detail") }, want: "11/20/26 14:00:56 (D_ALWAYS:2) detail\n"},
		{flags: "D_CAT D_PID", say: func(l *slog.Logger) { l.Info("x") }, want: "11/20/26 14:00:56 (pid:4711) (D_ALWAYS) x\n"},
		{flags: "D_CAT", say: func(l *slog.Logger) { l.Error("x", "err", errors.New("a\nb")) }, want: "11/20/26 14:00:56 (D_ERROR) ERROR: x err=\"a\\nb\"\n"},
		{flags: "D_SUB_SECOND", say: func(l *slog.Logger) { l.Warn("x") }, want: "11/20/26 14:00:56.124 WARNING: x\n"},
		{flags: "D_TIMESTAMP", say: func(l *slog.Logger) { l.Info("x") }, want: fmt.Sprintf("%d x\n", at.Unix())},
		{format: `"%Y-%m-%dT%H:%M:%S%% %q"`, say: func(l *slog.Logger) { l.Info("x") }, want: "2026-11-20T14:00:56% %q x\n"},
		{say: func(l *slog.Logger) { l.Info("x", CategoryKey, "D_SECURITY") }},
		{flags: "D_SECURITY D_CAT", say: func(l *slog.Logger) { l.With(CategoryKey, "D_SECURITY", "peer", "<a:1>").Info("x") }, want: "11/20/26 14:00:56 (D_SECURITY) x peer=<a:1>\n"},
		{flags: "D_SECURITY", say: func(l *slog.Logger) { l.Debug("x", CategoryKey, "D_SECURITY") }},
		{flags: "D_SECURITY:2 D_CAT", say: func(l *slog.Logger) { l.Debug("x", CategoryKey, "D_SECURITY") }, want: "11/20/26 14:00:56 (D_SECURITY:2) x\n"},
		{flags: "D_CAT", say: func(l *slog.Logger) { l.Error("x", CategoryKey, "D_COMMAND") }, want: "11/20/26 14:00:56 (D_COMMAND|D_FAILURE) ERROR: x\n"},
		{flags: "D_CAT", say: func(l *slog.Logger) { l.WithGroup("g").Info("x", CategoryKey, "y") }, want: "11/20/26 14:00:56 (D_ALWAYS) x g.cat=y\n"},
		{say: func(l *slog.Logger) {
			l.Info("x", TextKey, "[ a = \"b\" ]\r\n\tc\x01\n12/31/26 00:00:00 forged\n12/31/2026 00:00:00 not\n\n")
		},
			want: "11/20/26 14:00:56 x [ a = \"b\" ]\n\tc\\x01\n\t12/31/26 00:00:00 forged\n12/31/2026 00:00:00 not\n"},
		{flags: "D_TIMESTAMP", say: func(l *slog.Logger) { l.Info("x", TextKey, "y\n9999999999 forged") }, want: fmt.Sprintf("%d x y\n\t9999999999 forged\n", at.Unix())},
		{format: "%B.%d", say: func(l *slog.Logger) { l.Info("x", TextKey, "y\nMay.20 forged\nno") }, want: "November.20 x y\n\tMay.20 forged\nno\n"},
		{say: func(l *slog.Logger) { l.WithGroup("g").Info("x", TextKey, "y\nz") }, want: "11/20/26 14:00:56 x g.text=\"y\\nz\"\n"},
		{flags: "D_CAT", say: func(l *slog.Logger) { l.Info("x", CategoryKey, "D_STATUS") }, want: "11/20/26 14:00:56 (D_ALWAYS) x\n"},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i, " ", tt.flags), func(t *testing.T) {
			t.Parallel()
			d, _ := ParseDebug(tt.flags)
			d.TimeFormat = tt.format
			var b bytes.Buffer
			tt.say(slog.New(atTime{NewDebugHandler(&b, d, 4711), at}))
			if b.String() != tt.want {
				t.Errorf("the log has %q, want %q", b.String(), tt.want)
			}
		})
	}
}

// A reconfiguration changes what the log shows, for loggers made before too.
// No text makes a line that begins as a record does.
func FuzzText(f *testing.F) {
	f.Add("a\n11/20/26 14:00:56 x")
	f.Add("\r\n\r11/20/26\v14:00:56\n\n")
	at := time.Date(2026, 11, 20, 14, 0, 56, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		var b bytes.Buffer
		slog.New(atTime{NewDebugHandler(&b, Debug{basic: 1}, 1), at}).Info("x", TextKey, text)
		record, ok := strings.CutSuffix(b.String(), "\n")
		for i, line := range strings.Split(record, "\n") {
			if len(line) > 17 && i > 0 {
				if _, err := time.Parse("01/02/06 15:04:05", line[:17]); err == nil {
					ok = false
				}
			}
		}
		if !ok {
			t.Errorf("%q became %q", text, b.String())
		}
	})
}

func TestDebugAfterReconfiguration(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	before, _ := ParseDebug("")
	h := NewDebugHandler(&b, before, 4711)
	l := slog.New(h).With("slot", "slot1")
	l.Debug("detail one")
	after, _ := ParseDebug("D_FULLDEBUG")
	h.Configure(after)
	l.Debug("detail two")
	h.Configure(before)
	l.Debug("detail three")
	if s := b.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "slot1: detail two") {
		t.Errorf("the log has %q, want the second line alone", s)
	}
}

func TestParseLogLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]LogLimit{
		"10 Mb": {Bytes: 10 << 20}, "1000000": {Bytes: 1000000}, "0": {}, "5Kb": {Bytes: 5 << 10}, "2 GB": {Bytes: 2 << 30}, "1 T": {Bytes: 1 << 40}, "7b": {Bytes: 7}, "3 MiB": {Bytes: 3 << 20}, "4 M": {Bytes: 4 << 20},
		"1 day": {Age: 24 * time.Hour}, "30 min": {Age: 30 * time.Minute}, "30 m": {Age: 30 * time.Minute}, "2 hours": {Age: 2 * time.Hour}, "9 Sec": {Age: 9 * time.Second}, "1 Week": {Age: 168 * time.Hour},
	} {
		if got, err := ParseLogLimit(text); got != want || err != nil {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "Mb", "-5", "5 x", "5 Mb 6", "99999999999999999999", "9999999999 T", "9999999999999 weeks", "5 Mx"} {
		if got, err := ParseLogLimit(bad); err == nil {
			t.Errorf("%q is %+v; want an error", bad, got)
		}
	}
}

func TestLogFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "StartLog")
	now := time.Date(2026, 11, 20, 14, 0, 0, 0, time.Local)
	clock := func() time.Time { return now }
	l, err := OpenLog(path, LogLimit{Bytes: 10}, 1, clock)
	if err != nil {
		t.Fatal(err)
	}
	write := func(s string) {
		t.Helper()
		if _, err := l.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	files := func(want map[string]string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range entries {
			b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
			got[e.Name()] = string(b)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("files are %q, want %q", got, want)
		}
	}
	write("123456\n")
	write("78901\n") // beyond the limit: the next one goes into a new file
	files(map[string]string{"StartLog": "123456\n78901\n"})
	write("two\n")
	files(map[string]string{"StartLog": "two\n", "StartLog.old": "123456\n78901\n"})
	write("two and more\n")
	write("three\n")
	files(map[string]string{"StartLog": "three\n", "StartLog.old": "two\ntwo and more\n"})

	l.SetLimit(LogLimit{Bytes: 3}, 2)
	write("four\n")
	write("five\n")
	files(map[string]string{"StartLog": "five\n", "StartLog.20261120T140005": "three\n", "StartLog.20261120T140006": "four\n"})

	l.SetLimit(LogLimit{Age: time.Hour}, 2)
	write("six\n")
	now = now.Add(2 * time.Hour)
	write("seven\n")
	files(map[string]string{"StartLog": "seven\n", "StartLog.20261120T140006": "four\n", "StartLog.20261120T160008": "five\nsix\n"})

	// Somebody else moves it away.
	if err := os.Rename(path, filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	write("eight\n")
	files(map[string]string{"StartLog": "eight\n", "StartLog.20261120T140006": "four\n", "StartLog.20261120T160008": "five\nsix\n", "moved": "seven\n"})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l, err = OpenLog(path, LogLimit{}, 0, clock); err != nil {
		t.Fatal(err)
	}
	write("nine\n")
	if b, _ := os.ReadFile(path); string(b) != "eight\nnine\n" {
		t.Errorf("opened again it holds %q", b)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := OpenLog(filepath.Join(path, "x"), LogLimit{}, 0, clock); err == nil {
		t.Error("a log below a file")
	}
}

func BenchmarkDebugHandler(b *testing.B) {
	d, _ := ParseDebug("D_SECURITY D_CAT")
	l := slog.New(NewDebugHandler(discard{}, d, 4711))
	b.ReportAllocs()
	for b.Loop() {
		l.Info("State change", "slot", "slot1_1", "from", "Owner")
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// atTime is a handler whose records are all of one time.
type atTime struct {
	slog.Handler
	at time.Time
}

func (a atTime) Handle(ctx context.Context, r slog.Record) error {
	r.Time = a.at
	return a.Handler.Handle(ctx, r)
}

func (a atTime) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atTime{a.Handler.WithAttrs(attrs), a.at}
}
func (a atTime) WithGroup(name string) slog.Handler { return atTime{a.Handler.WithGroup(name), a.at} }
