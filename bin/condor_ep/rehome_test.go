// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Options may stand before, between and behind the two names.
func TestMixedCommandLine(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-timeout 5 --cancel ep ap", "ep -timeout=5 ap --cancel", "ep ap --cancel --timeout 5"} {
		fs := newFlags("rehome", io.Discard, io.Discard)
		fs.String("schedd-pool", "", "")
		fs.Bool("reboot", false, "")
		fs.Bool("json", false, "")
		timeout, cancel := fs.Int("timeout", 0, ""), fs.Bool("cancel", false, "")
		_, ok := parsed(fs, strings.Fields(args))
		rest := fs.Args()
		if !ok || !slices.Equal(rest, []string{"ep", "ap"}) || *timeout != 5 || !*cancel {
			t.Errorf("%s: %v, timeout %d, cancel %v", args, rest, *timeout, *cancel)
		}
	}
}

func TestRehomeCommandLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "condor_config")
	if err := os.WriteFile(path, []byte("COLLECTOR_HOST = 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONDOR_CONFIG", path)
	for _, tt := range []struct {
		args   string
		status int
		out    string
		errOut string
	}{
		{"", exitUsage, "", "want the name of an Execution Point and that of an access point"},
		{"ep", exitUsage, "", "want the name of an Execution Point"},
		{"ep ap more", exitUsage, "", "want the name of an Execution Point"},
		{"ep ap -timeout -1", exitUsage, "", "a timeout of 0 or more seconds"},
		{"ep ap -timeout soon", exitUsage, "", "invalid value"},
		{"ep ap", exitSomeFailed, "", "condor_ep rehome: cannot reach schedd ap: "},
		{"-cancel ep ap", exitSomeFailed, "", "no collector knows it"},
		{"-json -cancel ep ap", exitSomeFailed, `"ok":false`, ""},
		{"-schedd-pool nobody:x ep ap", exitSomeFailed, "", "nobody:x"},
	} {
		var out, errOut bytes.Buffer
		if got := tool(append([]string{"rehome"}, strings.Fields(tt.args)...), &out, &errOut); got != tt.status {
			t.Errorf("%q: status %d, want %d\n%s", tt.args, got, tt.status, errOut.String())
		}
		if !strings.Contains(out.String(), tt.out) || !strings.Contains(errOut.String(), tt.errOut) {
			t.Errorf("%q: %q and %q, want %q and %q", tt.args, out.String(), errOut.String(), tt.out, tt.errOut)
		}
	}
}
