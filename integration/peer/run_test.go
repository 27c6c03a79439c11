// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/platform/linux/bound"
)

// bench runs tests, each in a directory of its own.
type bench struct {
	Dir      string // of everything
	Source   sourceTree
	Overlays map[kind]string
	User     account
	Keep     bool // what every run leaves
	Say      func(format string, args ...any)

	runs atomic.Int64
}

// account is whose processes the tests are.
type account struct {
	Name       string
	Credential *syscall.Credential // nil for the one that we run as
}

// order is a test to be run.
type order struct {
	Test peerTest
	Kind kind
}

// expected says whether an outcome is what the list has, so that it is believed
// at once. The original passes all of them.
func (o outcome) expected() bool {
	want := expectPass
	if o.Kind == ours {
		want = o.Test.Ours
	}
	return want == expectEither || (o.Verdict == passed) == (want == expectPass)
}

// all runs orders, some at a time, and then again, one by one, those that failed
// against expectation. The outcomes have the order of the orders.
func (b *bench) all(ctx context.Context, orders []order, jobs int) []outcome {
	outcomes := make([]outcome, len(orders))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(jobs, 1) {
		workers.Go(func() {
			for i := range next {
				outcomes[i] = b.run(ctx, orders[i])
			}
		})
	}
	for _, i := range longestFirst(orders) {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, o := range outcomes {
		if o.Verdict == passed || o.Verdict == unable || o.expected() {
			continue
		}
		again := b.run(ctx, orders[i])
		if again.Verdict == unable { // for want of time, say
			b.discard(again)
			continue
		}
		again.Tries = 2
		outcomes[i] = again
		b.discard(o)
	}
	for i, o := range outcomes {
		if o.Verdict == passed || o.expected() {
			b.discard(o)
			outcomes[i].Dir = ""
		}
	}
	return outcomes
}

// longestFirst are the places of orders, with those first that may take longest,
// for nothing to be waited for at the end. What is to fail often fails because
// it waits until its time is over.
func longestFirst(orders []order) []int {
	likely := func(o order) time.Duration {
		if o.Kind == ours && o.Test.Ours != expectPass {
			return o.Test.limit()
		}
		return time.Duration(o.Test.Seconds) * time.Second
	}
	places := make([]int, len(orders))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(likely(orders[b]), likely(orders[a])) })
	return places
}

// discard removes what a run left, unless everything is kept.
func (b *bench) discard(o outcome) {
	if b.Keep || o.Dir == "" {
		return
	}
	// A job may have taken away its own right to a directory.
	_ = filepath.WalkDir(o.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(o.Dir); err != nil {
		b.Say("%v", err)
	}
}

// run runs one test.
func (b *bench) run(ctx context.Context, what order) outcome {
	o := outcome{Test: what.Test, Kind: what.Kind, Tries: 1, Verdict: unable}
	o.Dir = filepath.Join(b.Dir, fmt.Sprintf("%04d", b.runs.Add(1))) // short, for names of sockets, and none begins another
	begin := time.Now()
	if err := b.perform(ctx, &o); err != nil {
		o.Verdict, o.Why = unable, err.Error()
	}
	o.Took = time.Since(begin)
	b.Say("%-8s %-40s %-7s %4.0f s  %s", o.Kind, o.Test.Name, o.Verdict, o.Took.Seconds(), o.Why)
	return o
}

// perform has the driver run a test, ends what it leaves, and judges.
func (b *bench) perform(ctx context.Context, o *outcome) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("there was no time left for it: %w", context.Cause(ctx))
	}
	wants, err := b.prepare(o)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.Test.limit())
	defer cancel()
	out, err := os.Create(filepath.Join(o.Dir, "output"))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(limited, "python3", filepath.Join(b.Source.Dir, driver), "--test", o.Test.Name, "--working-dir", o.Dir,
		"--source-dir", b.Source.Dir, "--prefix-path", b.Overlays[o.Kind], "--dependencies", strings.Join(wants, ";"))
	cmd.Dir, cmd.Env = o.Dir, b.env(*o)
	cmd.Stdout, cmd.Stderr = out, out // a file, not a pipe that a daemon may hold open
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: b.User.Credential, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err = bound.Start(cmd); err == nil {
		err = cmd.Wait()
	}
	ended := limited.Err() != nil
	if _, err := endLeft(context.WithoutCancel(ctx), o.Dir); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !ended {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("it was ended: %w", context.Cause(ctx))
	}
	code := cmd.ProcessState.ExitCode()
	switch {
	case ended:
		code = -1
	case code == -1:
		return fmt.Errorf("the driver was ended: %v", cmd.ProcessState)
	}
	text := b.output(*o)
	o.Cases, o.Tail = count(text), tail(text, 25)
	if o.Starts, err = seen(o.Dir); err != nil {
		return err
	}
	o.judge(code)
	return nil
}

// output is what a test printed; if there is none, what the driver did.
func (b *bench) output(o outcome) string {
	name := o.Test.Name
	folder := filepath.Join(o.Dir, testsFolder, name+"_ctest")
	for _, file := range []string{filepath.Join(folder, name+".run.out"), filepath.Join(folder, name+".saveme", name+".run.out"), filepath.Join(o.Dir, "output")} {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

// env is the environment of a test. That every path in it is below the run's
// directory is how its processes are found again.
func (b *bench) env(o outcome) []string {
	prefix := b.Overlays[o.Kind]
	return []string{
		"PATH=" + filepath.Join(prefix, "bin") + ":" + filepath.Join(prefix, "sbin") + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"PYTHONPATH=" + filepath.Join(prefix, "lib", "python3"), "LD_LIBRARY_PATH=" + filepath.Join(prefix, "lib"), "PYTHONDONTWRITEBYTECODE=1",
		// Tests of 25.14.0 queue more than once in a submit file, which 25.14.1 refuses unless it is told otherwise.
		"_CONDOR_SUBMIT_PREVENT_MULTI_QUEUE=false",
		"TMPDIR=" + filepath.Join(o.Dir, "tmp"), "HOME=" + o.Dir, "USER=" + b.User.Name, "LOGNAME=" + b.User.Name, "LANG=C.UTF-8", "TERM=dumb",
	}
}

// prepare makes the directory of a run with links to what tests share, and
// returns the files that this one wants beside it.
func (b *bench) prepare(o *outcome) ([]string, error) {
	shared := filepath.Join(o.Dir, testsFolder)
	for _, dir := range []string{o.Dir, filepath.Join(o.Dir, "src"), shared, filepath.Join(o.Dir, "tmp"), filepath.Join(o.Dir, "made")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		if err := b.own(dir); err != nil {
			return nil, err
		}
	}
	files, err := filepath.Glob(filepath.Join(b.Source.Dir, testsFolder, "*.pm"))
	if err != nil {
		return nil, err
	}
	for _, name := range perlFiles {
		files = append(files, filepath.Join(b.Source.Dir, scriptsFolder, name))
	}
	files = append(files, filepath.Join(b.Source.Dir, testsFolder, "Check"))
	for _, file := range files {
		if err := os.Symlink(file, filepath.Join(shared, filepath.Base(file))); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	wants, err := b.Source.wants(o.Test)
	if err != nil {
		return nil, err
	}
	for i, entry := range wants {
		if !built(entry) {
			continue
		}
		if wants[i], err = standIn(filepath.Join(o.Dir, "made"), entry); err != nil {
			return nil, err
		}
	}
	return wants, nil
}

// own gives a directory to the user of the tests.
func (b *bench) own(path string) error {
	if b.User.Credential == nil {
		return nil
	}
	return os.Lchown(path, int(b.User.Credential.Uid), int(b.User.Credential.Gid))
}

func TestLongestFirst(t *testing.T) {
	t.Parallel()
	short, long, bad := peerTest{Name: "short", Seconds: 3, Ours: expectPass}, peerTest{Name: "long", Seconds: 100, Ours: expectPass}, peerTest{Name: "bad", Seconds: 4, Ours: expectFail}
	orders := []order{{short, original}, {short, ours}, {bad, original}, {bad, ours}, {long, original}}
	if got, want := longestFirst(orders), []int{3, 4, 2, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
