// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
)

// full is a pipe that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("it is full") }

func TestMeasure(t *testing.T) {
	t.Parallel()
	var out, bad bytes.Buffer
	status := measure(&out, &bad)
	if status != 0 || bad.Len() > 0 || !regexp.MustCompile(`^KFlops = [1-9][0-9]*\n--\n$`).Match(out.Bytes()) {
		t.Errorf("status %d, %q, %q", status, out.String(), bad.String())
	}
	if status := measure(full{}, &bad); status != 1 || !strings.HasPrefix(bad.String(), "condor_kflops: it is full") {
		t.Errorf("what nobody took: status %d, %q", status, bad.String())
	}
}
