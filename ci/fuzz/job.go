// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// patience is how long a program of tests may go on after its time before it
// is ended, which is a finding: some input never ends.
const patience = 2 * time.Minute

// job is one run of fuzz.
type job struct {
	options
	out                io.Writer
	bin                string // for the programs of tests
	fuzzed, properties []pkg
	found              []finding
	execs              int64
	rounds             int // of the properties
}

// finding is a test that did not pass.
type finding struct {
	pkg, test string
	files     []string // what was written under testdata, relative to the root
	output    string
}

// check has the properties draw from new seeds, round after round until the
// time is over, at least once.
func (j *job) check(ctx context.Context, d time.Duration) {
	begin := time.Now()
	programs := map[string]string{}
	for ; ctx.Err() == nil && len(j.properties) > 0 && (j.rounds == 0 || time.Since(begin) < d); j.rounds++ {
		for i, p := range j.properties {
			if p.names == nil {
				continue // one failed; the same would be found again
			}
			name := fmt.Sprintf("properties%d.test", i)
			if programs[p.path] == "" {
				programs[p.path] = j.build(ctx, p, name, "test", "-c")
			}
			if programs[p.path] == "" {
				j.properties[i].names = nil
				continue
			}
			tests := strings.Join(p.names, "|")
			start := time.Now()
			ok := j.play(ctx, p, tests, max(d, 10*time.Minute), programs[p.path],
				"-test.run=^("+tests+")$", "-rapid.checks="+strconv.Itoa(j.checks), "-rapid.seed="+strconv.FormatUint(j.seed+uint64(j.rounds), 10))
			if !ok {
				j.properties[i].names = nil
			}
			if j.rounds == 0 || !ok {
				j.line(p, tests, start, ok, fmt.Sprintf("%d draws of each", j.checks))
			}
		}
	}
}

// fuzz fuzzes one target after the other. Inputs that reach new code are made
// smaller first; in a short time that must not be all that is done.
func (j *job) fuzz(ctx context.Context, each time.Duration) {
	for i, p := range j.fuzzed {
		if ctx.Err() != nil {
			return
		}
		program := j.build(ctx, p, fmt.Sprintf("fuzz%d.test", i), "test", "-c", "-fuzz=^Fuzz")
		if program == "" {
			continue
		}
		for _, name := range p.names {
			start, before := time.Now(), j.execs
			ok := j.play(ctx, p, name, each, program,
				"-test.run=^$", "-test.fuzz=^"+name+"$", "-test.fuzztime="+each.String(), "-test.fuzzminimizetime="+(each/50).String(),
				"-test.fuzzcachedir="+filepath.Join(j.cache, filepath.FromSlash(p.path)), "-test.parallel="+strconv.Itoa(j.workers))
			j.line(p, name, start, ok, fmt.Sprintf("%d inputs", j.execs-before))
		}
		_ = os.Remove(program)
	}
}

// line prints what became of a test.
func (j *job) line(p pkg, name string, start time.Time, ok bool, what string) {
	word := "ok"
	if !ok {
		word = "FAILED"
	}
	fmt.Fprintf(j.out, "%-6s %6.1fs %s %s: %s\n", word, time.Since(start).Seconds(), p.path, name, what)
}

// build makes the program of a package's tests and returns its path, "" if that
// fails, which is noted.
func (j *job) build(ctx context.Context, p pkg, name string, command ...string) string {
	program := filepath.Join(j.bin, name)
	if _, err := j.goCommand(ctx, append(command, "-o", program, p.path)...); err != nil {
		j.found = append(j.found, finding{pkg: p.path, test: "does not build", output: err.Error()})
		return ""
	}
	return program
}

// play runs tests and notes what they find.
func (j *job) play(ctx context.Context, p pkg, name string, d time.Duration, program string, args ...string) bool {
	ctx, cancel := context.WithTimeout(ctx, d+patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = p.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	before := j.kept(p)
	out, err := cmd.CombinedOutput()
	j.execs += tried(out)
	written := slices.DeleteFunc(j.kept(p), func(name string) bool { return slices.Contains(before, name) })
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return true // the user ends it
	case err == nil:
		return true
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		out = fmt.Appendf(out, "it did not end within %v after its time\n", patience)
	case ranOut(out) && len(written) == 0:
		return true
	}
	j.found = append(j.found, finding{pkg: p.path, test: name, files: written, output: tail(fmt.Appendf(out, "%v\n", err))})
	return false
}

var execs = regexp.MustCompile(`(?m)^fuzz: elapsed: .* execs: (\d+) `)

// tried is how many inputs were tried, as the last line that tells it says.
func tried(out []byte) int64 {
	all := execs.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
	return n
}

var timeIsOver = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([0-9.]+s\)\n    context deadline exceeded\n`)

// ranOut reports whether nothing failed but the fuzzer's own clock: before Go
// 1.27 it may report the end of its time as a failure (go.dev/issue/75804).
func ranOut(out []byte) bool {
	return timeIsOver.Match(out) && bytes.Count(out, []byte("--- FAIL")) == 1
}

// mostShown bounds what is shown of a finding.
const mostShown = 4000

func tail(out []byte) string {
	lines := strings.SplitAfter(string(out), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "fuzz: elapsed:") })
	text := strings.Join(lines, "")
	if len(text) > mostShown {
		text = text[:mostShown/2] + "\n...\n" + text[len(text)-mostShown/2:]
	}
	return text
}

// kept are the cases of a package, relative to the root of the repository.
func (j *job) kept(p pkg) (all []string) {
	for _, kind := range []string{"fuzz", "rapid"} {
		_ = filepath.WalkDir(filepath.Join(p.dir, "testdata", kind), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if rel, err := filepath.Rel(j.root, path); err == nil {
					all = append(all, filepath.ToSlash(rel))
				}
			}
			return nil // a package without cases has no such folder
		})
	}
	return all
}

// report prints what was found; that there is something is the error.
func (j *job) report(ctx context.Context) error {
	for _, f := range j.found {
		fmt.Fprintf(j.out, "\n== %s %s\n%s", f.pkg, f.test, f.output)
		for _, name := range f.files {
			fmt.Fprintf(j.out, "commit this case: %s\n", name)
		}
	}
	fmt.Fprintf(j.out, "\n%d fuzz targets, %d inputs tried; %d rounds of the properties; %d findings; inputs are kept in %s\n",
		j.targets(), j.execs, j.rounds, len(j.found), j.cache)
	switch {
	case len(j.found) > 0:
		return fmt.Errorf("fuzz: %d findings", len(j.found))
	case ctx.Err() != nil:
		return errors.New("fuzz: ended before its time")
	}
	return nil
}
