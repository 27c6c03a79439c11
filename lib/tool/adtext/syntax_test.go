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
	} {
		if got := Detect(tt.text); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got, tt.want)
		}
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
