// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package adtext

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", Old}, {"A = 1", Old}, {"\n A = [x = 1]", Old}, {"// only a comment", Old}, {"/* open [", Old},
		{"[A = 1]", New}, {" // x\n/* y */ [", New}, {"\r\n\t{\"A\": 1}", JSON}, {"/**/{", JSON},
		// Lists of ads, as condor_history -json and condor_status -long:new write them.
		{"[\n{\"A\": 1}\n]", JSON}, {"[ /* x */ {", JSON}, {"{\n[A = 1]\n}", New}, {"{}", JSON}, {"[\n]", New}, {"[", New},
		{"\ufeffA = 1", Old}, {"\ufeff{\"A\": 1}", JSON},
	} {
		if got := Detect(tt.text); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

// TestCopyList: a list in brackets is its ads, and a byte order mark before the first
// is part of none.
func TestCopyList(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"[\n{\"A\": 1}\n,\n{\"A\": 2}\n]\n", "{\n[A = 1],\n[A = 2]\n}\n", "\ufeffA = 1\n\nA = 2\n", "\ufeff[A = 1][A = 2]"} {
		var b strings.Builder
		if err := Copy(&b, strings.NewReader(text), Auto, Old); err != nil || b.String() != "A = 1\n\nA = 2\n" {
			t.Errorf("%q: %q, %v", text, &b, err)
		}
	}
	if ad, err := Read(strings.NewReader("\ufeff{\"A\": 1}"), JSON); err != nil || ad.Len() != 1 {
		t.Errorf("with a byte order mark: %v, %v", ad, err)
	}
}

// TestForeignMistake: the line that is shown has what a terminal would obey replaced,
// and the caret stays below its place.
func TestForeignMistake(t *testing.T) {
	t.Parallel()
	_, err := Parse("A = \"\x1b[2J\u009bx\" + )", Old)
	var b strings.Builder
	PrintMistake(&b, "tool", &Mistake{Name: "a\x1bd", Err: err})
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 4 || strings.ContainsAny(b.String(), "\x1b\u009b") || !strings.HasPrefix(lines[0], `tool: a\x1bd:1:`) ||
		lines[1] != `A = "?[2J?x" + )` || strings.TrimLeft(lines[2], " ") != "^" {
		t.Errorf("%q", b.String())
	}
}

// TestCopyFaults tells the reader's faults from the writer's.
func TestCopyFaults(t *testing.T) {
	t.Parallel()
	var wrote *WriteError
	if err := Copy(closed{}, strings.NewReader("A = 1"), Auto, New); !errors.As(err, &wrote) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a closed output: %v", err)
	}
	if err := Copy(io.Discard, strings.NewReader("A = "), Auto, New); err == nil || errors.As(err, &wrote) {
		t.Errorf("a text that does not parse: %v", err)
	}
}

// closed takes nothing.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
