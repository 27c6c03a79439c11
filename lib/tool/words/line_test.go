// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
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
		if got := Printable(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "a\n  b\tc\n": "a\n  b c\n", "a\x1b[2J\r\n\n\u202eb": "a\\x1b[2J\\r\n\n\\u202eb"} {
		if got := Lines(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for in := range printableCases {
		f.Add(in, 7)
	}
	f.Fuzz(func(t *testing.T, in string, most int) {
		got := Printable(in)
		if strings.IndexFunc(got, unicode.IsControl) >= 0 || !utf8.ValidString(got) || Printable(got) != got {
			t.Errorf("%q is shown as %q", in, got)
		}
		if cut := Fit(got, most); Columns(cut) > max(most, 0) || !strings.HasPrefix(got, cut) {
			t.Errorf("%q cut to %d columns is %q", got, most, cut)
		}
	})
}
