// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/directory"
)

func TestParseCollector(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want, err string }{
		{"cm.example", "<cm.example:9618>", ""},
		{"cm.example:9700", "<cm.example:9700>", ""},
		{"10.0.0.1:0", "<10.0.0.1:0>", ""},
		{"cm:9618?sock=collector", "<cm:9618?sock=collector>", ""},
		{"<10.0.0.1:9618?alias=cm&sock=c>", "<10.0.0.1:9618?alias=cm&sock=c>", ""},
		{"[::1]:9700", "<[::1]:9700>", ""},
		{"[::1]", "<[::1]:9618>", ""},
		{"fe80::1", "<[fe80::1]:9618>", ""},
		{"cm:x", "", "the port is no number"},
		{"cm:70000", "", "the port is no number"},
		{":9618", "", "there is no host"},
		{"[::1", "", "bracket"},
		{"[::1]9", "", "no port"},
		{"a/b", "", "cannot be one"},
		{"<", "", "COLLECTOR_HOST"},
	} {
		got, err := directory.ParseCollector(tt.text, 9618)
		if tt.err != "" {
			if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("ParseCollector(%q): %v, want an error about %q", tt.text, err, tt.err)
			}
			continue
		}
		if err != nil || got.String() != tt.want {
			t.Errorf("ParseCollector(%q) = %v, %v; want %s", tt.text, got, err, tt.want)
		}
	}
}

func FuzzParseCollector(f *testing.F) {
	for _, s := range []string{"cm", "cm:1", "[::1]:9", "<1.2.3.4:5?sock=x>", "cm:9618?sock=a&b", "a:b:c", "[", "", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := directory.ParseCollector(text, 9618)
		if err != nil {
			return
		}
		again, err := directory.ParseCollector(at.String(), 9618)
		if err != nil || again.String() != at.String() {
			t.Errorf("%q is %v, which reads as %v, %v", text, at, again, err)
		}
	})
}
