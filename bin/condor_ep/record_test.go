// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whatVaries are the figures of a paragraph that differ from run to run.
var whatVaries = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|[0-9.]+ (s|KiB|MiB|B|min)\b|ended on \S+|Job 1\.\d of \S+`)

var ofAClock = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// How a job ended is told by history and explain alike: in a paragraph, and whole as JSON.
func TestRecordOfAJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sh", "#!/bin/sh\nsleep 0.1\nexit $1\n")
	p.write(t, "job.sub", small+"executable = job.sh\narguments = $(how)\nqueue how in (3, 0)\n")
	p.write(t, "ep.conf", "NUM_CPUS = 1\nBASE_CGROUP =\nSTARTD_HISTORY = "+filepath.Join(p.dir, "startd_history")+"\n")
	if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitSomeFailed {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	const want = `JOB WHERE X: it exited with status 3.
Of its time its input took X, the program took X, what was left and the output took X, all of it took X.
No control group limited it.
It used at most X of memory, X of processor time, and X of disk at its end.
What it left outside its scratch directory was not looked for.
`
	for _, command := range []string{"history", "explain"} {
		status, stdout, stderr := p.ep(t, command, "-config", "ep.conf", "1.0")
		got := whatVaries.ReplaceAllStringFunc(stdout, func(s string) string {
			switch {
			case strings.HasPrefix(s, "Job"):
				return "JOB"
			case strings.HasPrefix(s, "ended"):
				return "WHERE"
			}
			return "X"
		})
		got = strings.Replace(got, "WHERE at X", "WHERE X", 1)
		got = strings.Replace(got, " and 1 process,", ",", 1) // if a look met it
		if d := cmp.Diff(want, got); d != "" || status != exitOK || stderr != "" {
			t.Errorf("%s: status %d, %q\n%s", command, status, stderr, d)
		}
		status, stdout, stderr = p.ep(t, command, "-config", "ep.conf", "-json", "1.0")
		text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(stdout), "["), "]")
		var ad struct {
			Record struct {
				Activation string
				Status     struct{ Code int }
				Usage      struct {
					Peak int64 `json:"peak_rss_kib"`
				}
				Ran struct{ Stages map[string]string }
			} `json:"ExecpointExitRecord"`
		}
		if err := json.Unmarshal([]byte(text), &ad); err != nil || status != exitOK {
			t.Fatalf("%s: status %d, %v\n%s%s", command, status, err, stdout, stderr)
		}
		if r := ad.Record; r.Activation == "" || r.Status.Code != 3 || r.Usage.Peak == 0 || len(r.Ran.Stages) != 4 {
			t.Errorf("%s: %+v", command, r)
		}
	}
	if status, stdout, stderr := p.ep(t, "explain", "-config", "ep.conf", "7.0"); status == exitOK || stdout != "" || stderr == "" {
		t.Errorf("a job that never was: status %d, %q, %q", status, stdout, stderr)
	}
	if status, _, stderr := p.ep(t, "history", "-config", "ep.conf", "slot1"); status != exitUsage || !strings.Contains(stderr, "no job") {
		t.Errorf("no job: status %d, %q", status, stderr)
	}
}

// All that a record can say, and ads that have none.
func TestRecordsAsText(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	text, err := os.ReadFile("testdata/records.history")
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "h", string(text))
	var got strings.Builder
	for _, id := range []string{"1.0", "2.0", "3.0", "4.0"} {
		status, stdout, stderr := p.ep(t, "history", "-file", "h", id)
		if status != exitOK || stderr != "" {
			t.Errorf("%s: status %d, %q", id, status, stderr)
		}
		got.WriteString(ofAClock.ReplaceAllString(stdout, "DATE") + "\n") // of the place where the test runs
	}
	want, err := os.ReadFile("testdata/records.txt")
	if d := cmp.Diff(string(want), got.String()); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}
