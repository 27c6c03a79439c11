// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/bin/internal/commands"
)

// full is a pipe that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("it is full") }

func TestMeasure(t *testing.T) {
	t.Parallel()
	tool := func(w io.Writer, args ...string) (int, string) {
		var bad bytes.Buffer
		return commands.Measure(&commands.Kflops, args, w, &bad, measure), bad.String()
	}
	for _, tt := range []struct{ args, want string }{
		{"", `^KFlops = [1-9][0-9]*\n--\n$`},
		{"-json", `^\{"KFlops":[1-9][0-9]*\}\n$`},
		{"-version", `^\$CondorVersion: .* \$\n\$CondorPlatform: .* \$\n$`},
		{"-help", `^Usage: condor_kflops \[-json\]\n`},
	} {
		var out bytes.Buffer
		if status, bad := tool(&out, strings.Fields(tt.args)...); status != 0 || bad != "" || !regexp.MustCompile(tt.want).Match(out.Bytes()) {
			t.Errorf("%s: status %d, %q, %q", tt.args, status, out.String(), bad)
		}
	}
	for args, want := range map[string]string{"-jso": "unknown option -jso; did you mean -json?", "fast": "unexpected argument \"fast\""} {
		if status, bad := tool(full{}, args); status != 2 || !strings.HasPrefix(bad, "condor_kflops: "+want+"\n") {
			t.Errorf("%s: status %d, %q", args, status, bad)
		}
	}
	if status, bad := tool(full{}); status != 1 || !strings.HasPrefix(bad, "condor_kflops: it is full") {
		t.Errorf("what nobody took: status %d, %q", status, bad)
	}
}
