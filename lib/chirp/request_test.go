// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chirp

import (
	"fmt"
	"strings"
	"testing"
)

var requestLines = []string{
	"open a b 1", `open a\ b\\c rw 420`, "close -1", "sread 1 2 3 4 5", `set_job_attr A "x\ y"`, "  version  ", "unlink", "open a b", "close x",
	`unlink \`, "close 99999999999999999999", "nothing", "", "write 1 5 rest", "\tunlink\tx",
}

func TestParseRequest(t *testing.T) {
	t.Parallel()
	want := []string{
		"open [a b] [1 0 0 0 0]", `open [a b\c rw] [420 0 0 0 0]`, "close [ ] [-1 0 0 0 0]", "sread [ ] [1 2 3 4 5]", `set_job_attr [A "x y"] [0 0 0 0 0]`,
		"version [ ] [0 0 0 0 0]", "", "", "", `unlink [ ] [0 0 0 0 0]`, "", "", "", "write [ ] [1 5 0 0 0]", "unlink [x ] [0 0 0 0 0]",
	}
	for i, line := range requestLines {
		r, ok := parseRequest(line)
		got := ""
		if ok {
			got = fmt.Sprintf("%s %v %v", r.verb.name, r.words, r.ints)
		}
		if got != want[i] {
			t.Errorf("%q: %q, want %q", line, got, want[i])
		}
	}
}

// quoteWord writes a word so that nextWord reads it again.
func quoteWord(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if strings.IndexByte(blanks+"\\", word[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(word[i])
	}
	return b.String()
}

// FuzzParseRequest: what is read can be written and read again.
func FuzzParseRequest(f *testing.F) {
	for _, l := range requestLines {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, ok := parseRequest(line)
		if !ok {
			return
		}
		text, words, ints := r.verb.name, 0, 0
		for _, kind := range r.verb.args {
			if kind == 's' {
				if r.words[words] == "" {
					return // a lone backslash is an empty word, which cannot be written
				}
				text += " " + quoteWord(r.words[words])
				words++
				continue
			}
			text += fmt.Sprintf(" %d", r.ints[ints])
			ints++
		}
		again, ok := parseRequest(text)
		if !ok || again != r {
			t.Errorf("%q is %+v, written %q it is %+v", line, r, text, again)
		}
	})
}
