// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package documents

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// example is a command of a page, and what the page says that it prints.
type example struct {
	line    int
	command string
	want    string
}

// background reports whether a command runs while the next ones do.
func (e example) background() bool { return strings.HasSuffix(e.command, " &") }

// ours begin what a person would run.
var ours = regexp.MustCompile(`^(?:condor_\w+|go|sh) `)

// examples reads the commands of a page. A line of a block that looks like a
// command but is not marked as one is an error: nothing would run it.
func examples(text string) ([]example, error) {
	var list []example
	var open *example // takes the lines of output
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		shown, code := strings.CutPrefix(line, "    ")
		switch {
		case line == "":
			if open != nil {
				open.want += "\n"
			}
		case !code || strings.HasPrefix(line, "      - "):
			open = nil
		case strings.HasPrefix(shown, "$ "):
			list = append(list, example{line: n, command: strings.TrimSpace(shown[2:])})
			open = &list[len(list)-1]
		case open != nil:
			open.want += shown + "\n"
		case ours.MatchString(shown):
			return nil, fmt.Errorf("line %d: %q looks like a command and has no $ before it", n, shown)
		}
	}
	for i := range list {
		list[i].want = strings.TrimRight(list[i].want, "\n")
	}
	return list, nil
}

// What differs from run to run, and what stands for it.
var varying = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\b\d+(?:\.\d+)? m?s\b`), "N s"},
	{regexp.MustCompile(` +\n`), "\n"},
	// A loaded machine takes long for what is usually there at once.
	{regexp.MustCompile(`(?m)^waiting for .*\n`), ""},
	// The machine may have other tests at work.
	{regexp.MustCompile(`(?m)^warning: (?:a condor_startd|another condor_ep run) \(process .*\n`), ""},
	{regexp.MustCompile(`(?m)^warning: \d+ more processes are called condor_.*\n`), ""},
}

// settled is a text without what differs from run to run.
func settled(text string, machine ...string) string {
	text += "\n"
	for _, name := range machine {
		if name != "" {
			text = strings.ReplaceAll(text, name, "node7")
		}
	}
	for _, v := range varying {
		text = v.is.ReplaceAllString(text, v.as)
	}
	return strings.TrimRight(text, "\n")
}

// matches reports whether got is what the page shows.
func matches(want, got string) bool {
	var b strings.Builder
	b.WriteString(`\A`)
	lines := strings.Split(want, "\n")
	for i, line := range lines {
		last := i == len(lines)-1
		if strings.TrimSpace(line) == "…" {
			b.WriteString(`(?s:.*)`)
			if !last {
				b.WriteString(`(?m:^)`)
			}
			continue
		}
		for j, part := range strings.Split(line, "…") {
			if j > 0 {
				b.WriteString(`[^\n]*`)
			}
			b.WriteString(regexp.QuoteMeta(part))
		}
		if !last {
			b.WriteString("\n")
		}
	}
	b.WriteString(`\n?\z`)
	return regexp.MustCompile(b.String()).MatchString(got)
}

func TestExamplesOfAPage(t *testing.T) {
	t.Parallel()
	got, err := examples("text\n\n    $ one\n    a\n\n      b\n    $ two &\n\ntext\n\n    KNOB = 1\n\n    $ cat x\n    y\n")
	if want := "[{3 one a\n\n  b} {7 two & } {13 cat x y}]"; err != nil || fmt.Sprint(got) != want || !got[1].background() || got[0].background() {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"    condor_ep status\n", "    go run ./x\n", "    sh examples/x\n"} {
		if _, err := examples(bad); err == nil {
			t.Errorf("%q has no $ and is not noticed", bad)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want, got string
		ok        bool
	}{
		{"a\nb", "a\nb", true}, {"a\nb", "a\nc", false}, {"a", "a\nb", false}, {"a\n…", "a\nb\nc", true}, {"a\n…", "b\na", false},
		{"…\nc", "a\nb\nc", true}, {"…\nc", "a\nb\nxc", false}, {"…\nc", "c", true}, {"a\n…\nc", "a\nc", true}, {"pid …, up", "pid 17, up", true},
		{"pid …, up", "pid 17\n, up", false}, {"a.b", "axb", false}, {"(…", "(x", true},
	} {
		if got := matches(tt.want, tt.got); got != tt.ok {
			t.Errorf("%q, %q: %v", tt.want, tt.got, got)
		}
	}
	if got := settled("slot1@vm.example.org ran 0.3 s, 20 ms  \nx", "vm.example.org"); got != "slot1@node7 ran N s, N s\nx" {
		t.Errorf("%q", got)
	}
	const busy = "a\nwaiting for the start\nwarning: a condor_startd (process 7 of condor) uses this machine, too; drain it\n" +
		"warning: another condor_ep run (process 8 of eve) uses this machine, too; wait\nwarning: 4 more processes are called condor_startd\nb"
	if got := settled(busy, "vm"); got != "a\nb" {
		t.Errorf("%q", got)
	}
}
