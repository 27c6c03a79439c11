// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
)

func TestLogLayout(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 14, 0, 56, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		level slog.Level
		msg   string
		attrs []slog.Attr
		want  string
	}{
		{"plain", slog.LevelInfo, "started", nil, "11/20/26 14:00:56 started\n"},
		{"slot first", slog.LevelInfo, "Changing activity: Idle -> Busy",
			[]slog.Attr{slog.Int("pid", 4711), slog.String("slot", "slot1_1")},
			"11/20/26 14:00:56 slot1_1: Changing activity: Idle -> Busy pid=4711\n"},
		{"error", slog.LevelError, "no disk", nil, "11/20/26 14:00:56 (D_ERROR) no disk\n"},
		{"a value cannot forge a line", slog.LevelInfo, "job said",
			[]slog.Attr{slog.String("text", "x\n11/20/26 forged"), slog.String("slot", "s\n1")},
			"11/20/26 14:00:56 s\\n1: job said text=\"x\\n11/20/26 forged\"\n"},
		{"groups and blanks", slog.LevelWarn, "m",
			[]slog.Attr{slog.Group("job", slog.String("id", "1.0"), slog.String("note", "a b"))},
			"11/20/26 14:00:56 (D_ALWAYS) WARNING: m job.id=1.0 job.note=\"a b\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			r := slog.NewRecord(at, tt.level, tt.msg, 0)
			r.AddAttrs(tt.attrs...)
			if err := NewLogHandler(&b, slog.LevelInfo).Handle(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, b.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLogWithAttrs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	h := NewLogHandler(&b, slog.LevelWarn).WithAttrs([]slog.Attr{slog.String("slot", "slot1"), slog.Int("a", 1)}).WithGroup("g").WithAttrs([]slog.Attr{slog.Int("b", 2)})
	log := slog.New(h)
	log.Info("not seen")
	log.Error("seen", "c", 3)
	got := b.String()
	if !strings.HasSuffix(got, "(D_ERROR) slot1: seen a=1 g.b=2 g.c=3\n") || strings.Contains(got, "not seen") {
		t.Errorf("got %q", got)
	}
}

func TestControlSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	want := &Status{Name: "node1", PID: 7, Slots: []Slot{{Name: "slot1", State: "Unclaimed", Activity: "Idle", Cpus: 2}}}
	go func() {
		Serve(l, nil, func(r Request) Response {
			if r.Op != OpStatus {
				return Response{Err: "there is no slot or job " + r.Subject}
			}
			return Response{Status: want}
		}, nil)
		served <- nil
	}()
	ctx := context.Background()
	resp, err := Call(ctx, path, Request{Op: OpStatus})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, resp.Status); d != "" {
		t.Error(d)
	}
	_, err = Call(ctx, path, Request{Op: OpExplain, Subject: "slot9"})
	if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "slot9") {
		t.Errorf("a refusal must carry the EP's sentence, got %v", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("{nonsense\n")); err != nil {
		t.Fatal(err)
	}
	line, err := readLine(c, 1<<16)
	if err != nil || !strings.Contains(string(line), "not one line of JSON") {
		t.Errorf("got %q, %v", line, err)
	}
	c.Close()
	l.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve after Close: %v", err)
	}
	if _, err := Call(ctx, path, Request{Op: OpStatus}); !errs.Is(err, errs.NotFound) {
		t.Errorf("nobody listens, got %v", err)
	}
}

func TestControlRefusesEndlessLine(t *testing.T) {
	t.Parallel()
	if _, err := readLine(strings.NewReader(strings.Repeat("x", 100)), 64); err == nil || !strings.Contains(err.Error(), "64 bytes") {
		t.Errorf("got %v", err)
	}
}
