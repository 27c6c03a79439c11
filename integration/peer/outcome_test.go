// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// verdict is what came of a run.
type verdict string

const (
	passed  verdict = "pass"
	failed  verdict = "fail"
	skipped verdict = "skip"    // the test skips itself here
	tooLong verdict = "timeout" // it was ended
	unable  verdict = "unable"  // it could not be run
)

// outcome is a run of a test.
type outcome struct {
	Test    peerTest
	Kind    kind
	Verdict verdict
	Why     string // unless it passed
	Took    time.Duration
	Cases   cases
	Starts  starts
	Tries   int
	Dir     string // what it left, unless that was removed
	Tail    string // the end of its output
}

// cases are those that a test counts.
type cases struct{ Passed, Skipped, Failed int }

var (
	pytestEnd  = regexp.MustCompile(`(?m)^=+ (.*) in [0-9.]+s.*=+$`)
	pytestPart = regexp.MustCompile(`([0-9]+) (passed|failed|errors?|skipped|xfailed|xpassed)\b`)
	perlCheck  = regexp.MustCompile(`(?m)^(PASSED|FAILED) check `)
)

// count reads the cases from a test's output: the last line of pytest, or the
// checks that a Perl test says it made.
func count(output string) cases {
	var c cases
	if ends := pytestEnd.FindAllStringSubmatch(output, -1); ends != nil {
		for _, m := range pytestPart.FindAllStringSubmatch(ends[len(ends)-1][1], -1) {
			n, _ := strconv.Atoi(m[1]) // the pattern has digits only
			switch m[2] {
			case "passed", "xpassed":
				c.Passed += n
			case "skipped", "xfailed":
				c.Skipped += n
			default:
				c.Failed += n
			}
		}
		return c
	}
	for _, m := range perlCheck.FindAllStringSubmatch(output, -1) {
		if m[1] == "PASSED" {
			c.Passed++
		} else {
			c.Failed++
		}
	}
	return c
}

// starts are the starts of an Execution Point's daemons, as their logs tell.
type starts struct {
	Startds, Starters int
	Ours              bool // a startd of ours was among them
}

var startLine = regexp.MustCompile(`(?m)^.*STARTING UP.*$`)

// ourMark is in the version of our programs.
const ourMark = " execpoint-"

// seen looks for starts in the logs below a directory.
func seen(dir string) (starts, error) {
	var s starts
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a sandbox that its job made unreadable, say
		}
		startd, starter := strings.HasPrefix(d.Name(), "StartLog"), strings.HasPrefix(d.Name(), "StarterLog")
		if !startd && !starter {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n := len(startLine.FindAll(b, -1))
		if starter {
			s.Starters += n
			return nil
		}
		s.Startds += n
		s.Ours = s.Ours || bytes.Contains(b, []byte(ourMark))
		return nil
	})
	return s, err
}

// judge fills in the verdict. code is the driver's exit status, or -1 if it was
// ended because its time was over.
func (o *outcome) judge(code int) {
	switch {
	case code == -1:
		o.Verdict, o.Why = tooLong, fmt.Sprintf("not done within %v", o.Test.limit())
	case code != 0:
		o.Verdict, o.Why = failed, fmt.Sprintf("exit status %d", code)
		if o.Cases != (cases{}) {
			o.Why += fmt.Sprintf(", %d of %d cases failed", o.Cases.Failed, o.Cases.Failed+o.Cases.Passed)
		}
	case o.Cases.Failed > 0:
		o.Verdict, o.Why = failed, fmt.Sprintf("%d cases failed, although the exit status is 0", o.Cases.Failed)
	case o.Cases.Passed == 0 && o.Cases.Skipped > 0:
		o.Verdict, o.Why = skipped, "it skips all of its cases"
	case o.Cases.Passed < o.Test.Cases:
		o.Verdict, o.Why = failed, fmt.Sprintf("%d cases passed, the list has %d", o.Cases.Passed, o.Test.Cases)
	case o.Test.Startds > 0 && o.Starts.Startds == 0:
		o.Verdict, o.Why = failed, "it passed, but no log shows a startd that was started"
	case o.Test.Starters > 0 && o.Starts.Starters == 0:
		o.Verdict, o.Why = failed, "it passed, but no log shows a starter that was started" // as if a job had run
	case o.Test.Startds > 0 && o.Starts.Ours != (o.Kind == ours):
		o.Verdict, o.Why = failed, "it passed, but with a startd of the other kind"
	default:
		o.Verdict, o.Why = passed, ""
	}
}

// tail is the end of a text, at most n lines of it.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func TestCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		output string
		want   cases
	}{
		{"collected 4 items\n\n===== 4 passed in 11.69s =====\n", cases{Passed: 4}},
		{"== short ==\n==== 2 failed, 3 passed, 1 error, 4 skipped, 7 warnings in 71.01s (0:01:11) ====\n", cases{Passed: 3, Skipped: 4, Failed: 3}},
		{"==== 5 skipped in 0.5s ====\n", cases{Skipped: 5}},
		{"==== 1 xfailed, 1 xpassed, 2 errors in 0.5s ====", cases{Passed: 1, Skipped: 1, Failed: 2}},
		{"==== no tests ran in 0.01s ====", cases{}},
		{"PASSED check a in test b\n\nFAILED check c in test b\n x PASSED check\n", cases{Passed: 1, Failed: 1}},
		{"nothing\n", cases{}},
	} {
		if got := count(tt.output); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.output, got, tt.want)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	list := peerTest{Cases: 3, Startds: 1}
	right := starts{Startds: 1, Ours: true}
	for _, tt := range []struct {
		name string
		o    outcome
		code int
		want string
	}{
		{"all well", outcome{Test: list, Kind: ours, Cases: cases{Passed: 3}, Starts: right}, 0, "pass: "},
		{"a Perl test", outcome{Test: peerTest{Startds: 1}, Kind: ours, Starts: right}, 0, "pass: "},
		{"no startd wanted", outcome{Kind: original}, 0, "pass: "},
		{"the original", outcome{Test: list, Kind: original, Cases: cases{Passed: 3}, Starts: starts{Startds: 1}}, 0, "pass: "},
		{"exit status", outcome{Test: list, Kind: ours, Cases: cases{Passed: 2, Failed: 1}, Starts: right}, 136, "fail: exit status 136, 1 of 3 cases failed"},
		{"exit status alone", outcome{Test: list, Kind: ours}, 2, "fail: exit status 2"},
		{"a lying exit status", outcome{Test: list, Kind: ours, Cases: cases{Failed: 1}, Starts: right}, 0, "fail: 1 cases failed, although the exit status is 0"},
		{"skipped", outcome{Test: list, Kind: ours, Cases: cases{Skipped: 3}}, 0, "skip: it skips all of its cases"},
		{"fewer cases", outcome{Test: list, Kind: ours, Cases: cases{Passed: 2, Skipped: 1}, Starts: right}, 0, "fail: 2 cases passed, the list has 3"},
		{"no startd", outcome{Test: list, Kind: ours, Cases: cases{Passed: 3}}, 0, "fail: it passed, but no log shows a startd that was started"},
		{"no starter", outcome{Test: peerTest{Startds: 1, Starters: 2}, Kind: ours, Starts: right}, 0, "fail: it passed, but no log shows a starter that was started"},
		{"the wrong startd", outcome{Test: list, Kind: ours, Cases: cases{Passed: 3}, Starts: starts{Startds: 1}}, 0, "fail: it passed, but with a startd of the other kind"},
		{"too long", outcome{Test: peerTest{Seconds: 100}, Kind: ours}, -1, "timeout: not done within 6m40s"},
	} {
		if tt.o.judge(tt.code); string(tt.o.Verdict)+": "+tt.o.Why != tt.want {
			t.Errorf("%s: got %s: %s, want %s", tt.name, tt.o.Verdict, tt.o.Why, tt.want)
		}
	}
}

func TestSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "log", "StartLog"), "11/23 ** condor_startd (CONDOR_STARTD) STARTING UP\n11/23 ** $CondorVersion: 25.14.0 execpoint-0.1.0 $\nmore\n")
	write(t, filepath.Join(dir, "a", "log", "StarterLog.slot1_1"), "x ** condor_starter STARTING UP slot=slot1_1\ny\nx ** condor_starter (CONDOR_STARTER) STARTING UP\n")
	write(t, filepath.Join(dir, "a", "log", "SchedLog"), "** condor_schedd STARTING UP\n")
	if got, err := seen(dir); err != nil || got != (starts{Startds: 1, Starters: 2, Ours: true}) {
		t.Errorf("ours: got %+v, %v", got, err)
	}
	write(t, filepath.Join(dir, "a", "log", "StartLog"), "** condor_startd (CONDOR_STARTD) STARTING UP\n")
	write(t, filepath.Join(dir, "b", "StartLog.old"), "** condor_startd (CONDOR_STARTD) STARTING UP\n")
	if got, err := seen(dir); err != nil || got != (starts{Startds: 2, Starters: 2}) {
		t.Errorf("the original: got %+v, %v", got, err)
	}
}
