// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/tool/slots"
)

// options read one text and nothing else.
func options(text string) config.Options {
	return config.Options{Root: "/c", Subsystem: "STARTD", Facts: map[string]string{"LOCAL_DIR": "/l", "TILDE": "/l"}, ReadFile: func(path string) ([]byte, error) {
		if path == "/c" {
			return []byte(text), nil
		}
		return nil, errors.New("no such file")
	}}
}

// TestOf: a described machine counts for what slots may have; one that is not known
// says nothing of them.
func TestOf(t *testing.T) {
	t.Parallel()
	d, err := slots.ParseMachine("m.json", []byte(`{"cpus": 4, "memory_mb": 8000, "disk_kb": 1000000}`))
	if err != nil {
		t.Fatal(err)
	}
	const tooMany = "STARTD_DETECT_GPUS = false\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = cpus=3\n"
	for _, tt := range []struct {
		name, text string
		m          Machine
		code       string // of the one finding, "" for none
	}{
		{"too many cores", tooMany, Described(d, time.Unix(1_780_000_000, 0)), "EP05"},
		{"of a machine that is not known", tooMany, Machine{}, ""},
		{"a policy that does not parse", "START = = 1\n", Machine{}, "EP0"},
	} {
		list := tt.m.Of(t.Context(), options(tt.text))
		if tt.code == "" && len(list) > 0 || tt.code != "" && (len(list) == 0 || !strings.HasPrefix(string(list[0].Code), tt.code)) {
			t.Errorf("%s: %v, want %q", tt.name, list, tt.code)
		}
		var text, lines strings.Builder
		if err := errors.Join(Print(&text, list, false), Print(&lines, list, true)); err != nil || strings.Count(text.String(), "\n") < len(list) || strings.Contains(text.String(), `\n`) || strings.Count(lines.String(), `"code":`) != len(list) {
			t.Errorf("%s: %v\n%s%s", tt.name, err, &text, &lines)
		}
		if got := Counts(list, false); got != (len(list) > 0) {
			t.Errorf("%s: counts: %v", tt.name, got)
		}
		if err := Print(closed{}, list, true); len(list) > 0 && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: a closed output: %v", tt.name, err)
		}
	}
}

// closed takes nothing.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
