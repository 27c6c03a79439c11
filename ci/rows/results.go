// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// outcome is what became of a test or a part of one, over all runs.
type outcome struct {
	passed, failed, skipped bool
	reason                  string // of the last run that skipped it
}

// suite is a test function with its parts by their full names, "Test/part".
type suite struct {
	outcome
	parts map[string]*outcome
}

// results are what several runs of go test -json say together.
type results struct {
	module string
	tests  map[testKey]*suite
}

func newResults(module string) *results { return &results{module, map[testKey]*suite{}} }

// readResults reads the files of a list with commas; a folder stands for the
// *.json in it, and - for stdin.
func readResults(module, list string, stdin io.Reader) (*results, error) {
	r := newResults(module)
	for name := range strings.SplitSeq(list, ",") {
		if name == "-" {
			if err := r.read("standard input", stdin); err != nil {
				return nil, err
			}
			continue
		}
		names := []string{name}
		if info, err := os.Stat(name); err != nil {
			return nil, fmt.Errorf("rows: -results %s: %w", list, err)
		} else if info.IsDir() {
			if names, err = filepath.Glob(filepath.Join(name, "*.json")); err != nil || len(names) == 0 {
				return nil, fmt.Errorf("rows: -results: there is no *.json in %s", name)
			}
		}
		for _, name := range names {
			f, err := os.Open(name)
			if err != nil {
				return nil, err
			}
			err = r.read(name, f)
			_ = f.Close() // it was only read
			if err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// read adds one stream.
func (r *results) read(name string, in io.Reader) error {
	type place struct{ pkg, test string }
	running := map[place]string{} // with the last line that the test logged
	seen := false
	err := readStream(name, in, func(e event) {
		seen = true
		at := place{e.Package, e.Test}
		if e.ends() { // what did not end until now never will: the package did
			for p := range running {
				if p.pkg == e.Package {
					r.at(p.pkg, p.test).failed = true
					delete(running, p)
				}
			}
		}
		if e.Test == "" {
			return
		}
		switch e.Action {
		case "run":
			running[at] = ""
		case "output":
			if last, ok := running[at]; ok {
				running[at] = logged(last, e.Output)
			}
		case "pass":
			r.at(e.Package, e.Test).passed = true
			delete(running, at)
		case "fail":
			r.at(e.Package, e.Test).failed = true
			delete(running, at)
		case "skip":
			o := r.at(e.Package, e.Test)
			o.skipped, o.reason = true, short(running[at])
			delete(running, at)
		}
	})
	if err == nil && !seen {
		return fmt.Errorf("%s:1: holds no event of go test -json", name)
	}
	return err
}

// at is where the outcome of a test or of a part of one is kept.
func (r *results) at(pkg, test string) *outcome {
	folder, ok := strings.CutPrefix(pkg, r.module+"/")
	if !ok && pkg == r.module {
		folder = "."
	}
	top, _, isPart := strings.Cut(test, "/")
	key := testKey{folder, top}
	s := r.tests[key]
	if s == nil {
		s = &suite{parts: map[string]*outcome{}}
		r.tests[key] = s
	}
	if !isPart {
		return &s.outcome
	}
	o := s.parts[test]
	if o == nil {
		o = &outcome{}
		s.parts[test] = o
	}
	return o
}

// fate is what became of a proof.
type fate int

const (
	notRun  fate = iota // no run has it
	ran                 // it passed in one run at least, and failed in none
	skipped             // no run did it
	failed
)

// of says what became of a test, and why it was skipped. Where entries of its
// tables are named, one of them has to have run.
func (r *results) of(p proof) (fate, string) {
	s := r.tests[testKey{p.folder, p.test}]
	switch {
	case s == nil:
		return notRun, "not run"
	case s.failed:
		return failed, "failed"
	case !s.passed:
		return skipped, s.reason
	}
	if p.whole {
		if len(s.parts) == 0 {
			return ran, ""
		}
		return s.anyOf(func(string) bool { return true })
	}
	got, why := notRun, fmt.Sprintf("has no part %s", strings.Join(p.entries, " or "))
	for _, entry := range p.entries {
		f, w := s.anyOf(func(part string) bool { return strings.Contains(part+"/", "/"+entry+"/") })
		if f == ran {
			return ran, ""
		}
		if f != notRun {
			got, why = f, w
		}
	}
	return got, why
}

// anyOf says whether one of the parts has run that have no parts themselves,
// or why not.
func (s *suite) anyOf(wanted func(part string) bool) (fate, string) {
	got, why := notRun, ""
	for _, part := range s.leaves() {
		o := s.parts[part]
		switch {
		case !wanted(part):
		case o.passed:
			return ran, ""
		case o.skipped && got == notRun:
			got, why = skipped, o.reason
		}
	}
	return got, why
}

// leaves are the parts that have no parts, sorted.
func (s *suite) leaves() []string {
	inner := map[string]bool{}
	for part := range s.parts {
		for i := range part {
			if part[i] == '/' {
				inner[part[:i]] = true
			}
		}
	}
	var out []string
	for part := range s.parts {
		if !inner[part] {
			out = append(out, part)
		}
	}
	slices.Sort(out)
	return out
}

var logLine = regexp.MustCompile(`^\s+[^\s:]+\.go:\d+: ?(.*)`)

// logged follows what a test logs: it returns the last message, given the one
// before and what was printed now. The last one of a skipped test says why.
func logged(last, output string) string {
	if m := logLine.FindStringSubmatch(strings.TrimRight(output, "\n")); m != nil {
		return clip(m[1])
	}
	if last != "" && strings.HasPrefix(output, "        ") { // its second line
		return clip(last + " " + strings.TrimSpace(output))
	}
	return last
}

// longest is how much is kept of a reason, in bytes and later in characters.
const longest = 100

func clip(s string) string { return s[:min(len(s), 4*longest)] }

// temporary is what changes from run to run in a reason.
var temporary = regexp.MustCompile(`/tmp/[^\s:"]+`)

// short makes a reason fit for one line of a list.
func short(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(temporary.ReplaceAllString(reason, "/tmp/…"), ""))
	reason = strings.Join(strings.Fields(reason), " ")
	if reason == "" {
		return "no reason is given"
	}
	if rs := []rune(reason); len(rs) > longest {
		return strings.TrimSpace(string(rs[:longest-1])) + "…"
	}
	return reason
}
