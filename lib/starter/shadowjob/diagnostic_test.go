// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"bytes"
	"strings"
	"testing"
)

// Of a log that several starters wrote, one after the other, the part of the last one
// with that pid is found.
func TestLinesOf(t *testing.T) {
	t.Parallel()
	const a, b = "t ** PID = 7\nt seven says\n", "t ** PID = 77\nt other\n"
	for _, tt := range []struct {
		name, log string
		most      int
		want      string
	}{
		{"alone", a, 1000, a},
		{"another after it", a + b, 1000, a},
		{"others around it", b + a + b, 1000, a},
		{"a pid that was there before", "** PID = 7\nold\n" + b + a, 1000, a},
		{"none", b, 1000, ""},
		{"nothing", "", 1000, ""},
		{"no end of line", a + "t and", 1000, a + "t and"},
		{"too long", a + strings.Repeat("t more\n", 100) + "t last\n", 20, "t more\nt last\n"},
		{"one long line", "** PID = 7\n" + strings.Repeat("x", 10000), 10, "xxxxxxxxxx"},
	} {
		if got := string(linesOf(strings.NewReader(tt.log), 7, tt.most)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzLinesOf(f *testing.F) {
	f.Add([]byte("** PID = 7\nx\n** PID = 8\ny\n"), 4)
	f.Fuzz(func(t *testing.T, log []byte, most int) {
		most = max(0, min(most, 1<<16))
		got := linesOf(bytes.NewReader(log), 7, most)
		if len(got) > most || !bytes.Contains(log, got) {
			t.Errorf("%q of %q", got, log)
		}
	})
}
