// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/local"
)

var printableCases = map[string]string{
	"":                               "",
	"1.0 done: exited with status 0": "1.0 done: exited with status 0",
	"Grüße, 世界, 👍":                   "Grüße, 世界, 👍",
	"\x1b[2J\x1b]0;title\a":          `\x1b[2J\x1b]0;title\a`,
	"a\r\nb\tc":                      `a\r\nb\tc`,
	"\u009b31m":                      `\u009b31m`, // CSI in one character
	"\u202eabc":                      `\u202eabc`,
	"\x9b31m \xff":                   `\x9b31m \xff`,
	`C:\x1b "q"`:                     `C:\x1b "q"`,
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range printableCases {
		if got := printable(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for in := range printableCases {
		f.Add(in, 7)
	}
	f.Fuzz(func(t *testing.T, in string, most int) {
		got := printable(in)
		if strings.IndexFunc(got, unicode.IsControl) >= 0 || !utf8.ValidString(got) || printable(got) != got {
			t.Errorf("%q is shown as %q", in, got)
		}
		if cut := fit(got, most); columns(cut) > max(most, 0) || !strings.HasPrefix(got, cut) {
			t.Errorf("%q cut to %d columns is %q", got, most, cut)
		}
	})
}

// TestBar draws the progress in terminals of every width: it never takes more than
// there is, and what matters least goes first.
func TestBar(t *testing.T) {
	t.Parallel()
	c := local.Counts{Total: 1234, Done: 617, Running: 16, Idle: 600, Held: 1}
	const elapsed = 10 * time.Minute
	for width, want := range map[int]string{
		200: "[############------------] 617/1234 done, 16 running, 600 idle, 1 held, about 9 min 59 s left",
		80:  "[#####------] 617/1234 done, 16 running, 600 idle, 1 held, about 9 min 59 s left",
		70:  "617/1234 done, 16 running, 600 idle, 1 held, about 9 min 59 s left",
		60:  "[#######-------] 617/1234 done, 16 running, 600 idle, 1 held",
		40:  "617/1234 done, 16 running, 600 idle",
		20:  "617/1234 done",
		5:   "617/1",
		0:   "",
		-1:  "",
	} {
		if got := bar(c, elapsed, width); got != want {
			t.Errorf("in %d columns\n%s, want\n%s", width, got, want)
		}
	}
	for width := range 120 {
		if got := bar(c, elapsed, width); columns(got) > width {
			t.Errorf("in %d columns: %s", width, got)
		}
	}
	if got, want := bar(local.Counts{}, 0, 80), "[------------------------] 0/0 done, 0 running, 0 idle"; got != want {
		t.Errorf("no jobs: %s", got)
	}
}
