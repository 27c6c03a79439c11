// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/tool/gpus"
)

// recorded is one run of HTCondor's tool; testdata/README.md says what the
// fields are.
type recorded struct {
	Libs, Env, Args []string
	Out             string
	Exit            int
	Differs         string
	Ours            string
	OursExit        int `json:"ours_exit"`
}

func (r *recorded) String() string {
	return strings.Join(append(append(append([]string{}, r.Libs...), r.Env...), r.Args...), " ")
}

// check compares what ours did with what was recorded.
func (r *recorded) check(t *testing.T, out string, exit int) {
	t.Helper()
	if r.Differs != "" {
		if out == r.Out && exit == r.Exit {
			t.Errorf("no longer differs (%s)", r.Differs)
		}
		r = &recorded{Out: r.Ours, Exit: r.OursExit}
	}
	if diff := cmp.Diff(strings.Split(r.Out, "\n"), strings.Split(out, "\n")); diff != "" || exit != r.Exit {
		t.Errorf("exit %d, want %d; stdout (-want +got):\n%s", exit, r.Exit, diff)
	}
}

func readRecorded(t *testing.T, path string) []*recorded {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []*recorded
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r := new(recorded)
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// answer is what one run of the tool said.
type answer struct {
	out, err string
	exit     int
}

// asked runs the tool on a machine without libraries at a fixed time.
func asked(env map[string]string, args ...string) answer {
	var stdout, stderr bytes.Buffer
	exit := tool(args, system{
		stdout: &stdout, stderr: &stderr, steps: io.Discard,
		getenv:    func(name string) string { return env[name] },
		unsetenv:  func(name string) error { delete(env, name); return nil },
		now:       func() time.Time { return time.Unix(1790000003, 0) },
		libraries: func(_, _ func(string)) gpus.Libraries { return nothing{} },
	})
	return answer{stdout.String(), stderr.String(), exit}
}

// TestSimulated runs every option with devices that are simulated, and
// compares with what HTCondor's tool prints.
func TestSimulated(t *testing.T) {
	t.Parallel()
	for _, r := range readRecorded(t, "testdata/simulate.jsonl") {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			got := asked(map[string]string{}, r.Args...)
			r.check(t, got.out, got.exit)
			if got.err != "" {
				t.Errorf("stderr: %s", got.err)
			}
		})
	}
}
