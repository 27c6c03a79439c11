// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is realpool as a user starts it.
type program struct {
	t    *testing.T
	path string
	env  []string
}

// built builds realpool. The test is skipped where a command cannot be run
// inside a root directory of the release without making one first, unless
// EXECPOINT_REALPOOL=required says that it has to.
func built(t *testing.T, suite string) program {
	t.Helper()
	dir, err := defaultStore(os.Getenv, os.Geteuid())
	if err != nil {
		t.Skipf("no store: %v", err)
	}
	required := os.Getenv("EXECPOINT_REALPOOL") == "required"
	if s, err := openStore(dir); !required {
		if err != nil {
			t.Skipf("no store: %v", err)
		}
		if _, ok, err := s.find(suite, packages(""), ""); err != nil || !ok {
			t.Skipf("no root directory with HTCondor of Debian %s: go run ./ci/realpool make -htcondor %s", suite, suite)
		}
		if lacks := thisMachine().missing(false); len(lacks) > 0 {
			t.Skip(strings.Join(lacks, "; "))
		}
	}
	path := filepath.Join(t.TempDir(), "realpool")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program{t, path, os.Environ()}
}

func (p program) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = p.env
	return cmd
}

// must runs it and returns what it printed on standard output.
func (p program) must(args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func TestExec(t *testing.T) {
	t.Parallel()
	p := built(t, "sid")
	// The root directory cannot be written, the places for it can; the checkout is
	// there; the name has an address that is not loopback.
	out := p.must("exec", "--", "sh", "-c", "touch /etc/x 2>/dev/null || echo read-only; touch /tmp/x /var/log/x && echo written; grep -m1 module /src/go.mod; getent hosts $(hostname -f)")
	if want := "read-only\nwritten\nmodule github.com/execpoint/execpoint\n192.0.2.2       node.execpoint.test node\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out := p.must("exec", "-user", tester, "-bind", "/etc/passwd:/mnt/a/passwd", "--", "sh", "-c", "id -un; echo $HOME; test -r /mnt/a/passwd && echo seen"); out != tester+"\n/home/"+tester+"\nseen\n" {
		t.Errorf("%q", out)
	}
	// The status of the command is that of realpool, death by a signal as a shell has it.
	for script, want := range map[string]int{"exit 7": 7, "kill -TERM $$": 128 + 15} {
		var exit *exec.ExitError
		if err := p.command("exec", "--", "sh", "-c", script).Run(); !errors.As(err, &exit) || exit.ExitCode() != want {
			t.Errorf("%s: %v", script, err)
		}
	}
	if out, err := p.command("exec", "--", "no-such-program").CombinedOutput(); err == nil || !strings.Contains(string(out), "no program no-such-program inside") {
		t.Errorf("%v: %s", err, out)
	}
}

// A signal goes to the command; after SIGKILL the kernel ends what ran inside,
// and the next start removes what was written.
func TestEnds(t *testing.T) {
	t.Parallel()
	p := built(t, "sid")
	for _, tt := range []struct {
		sig  syscall.Signal
		want string // of the command's last line
	}{{syscall.SIGTERM, "told"}, {syscall.SIGKILL, ""}} {
		t.Run(tt.sig.String(), func(t *testing.T) {
			mark := rand.Text()
			// A process apart, as a daemon makes itself one.
			cmd := p.command("exec", "--", "sh", "-c", "setsid sleep 1000."+digits(mark)+" & trap 'echo told; exit' TERM; echo ready; while :; do sleep 0.1; done")
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(pipe)
			if !lines.Scan() || lines.Text() != "ready" {
				t.Fatalf("%q, %v", lines.Text(), cmd.Wait())
			}
			// A shell does not wait until its child has become sleep.
			if err := until(20*time.Second, func() error {
				if !runs(t, "sleep\x001000."+digits(mark)) {
					return errors.New("the process inside is not seen from here, so this test would prove nothing")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			last := ""
			for lines.Scan() {
				last = lines.Text()
			}
			_ = cmd.Wait()
			if last != tt.want {
				t.Errorf("the command said %q, want %q", last, tt.want)
			}
			if err := until(20*time.Second, func() error {
				if runs(t, "sleep\x001000."+digits(mark)) {
					return errors.New("a process that was started inside still runs")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			p.must("sweep")
		})
	}
	dir, err := defaultStore(os.Getenv, os.Geteuid())
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("%v; mounts:\n%s", err, mounts)
	}
}

// digits makes a number of a text, for the argument of sleep.
func digits(text string) string {
	var b strings.Builder
	for _, c := range text {
		b.WriteByte('0' + byte(c)%10)
	}
	return b.String()
}

// runs says whether a process with that in its command line is there.
func runs(t *testing.T, part string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		if text, err := os.ReadFile(name); err == nil && bytes.HasPrefix(text, []byte(part)) {
			return true
		}
	}
	return false
}

// The pool of the README, in both versions: the jobs of examples/pool run in
// our Execution Point, and side by side with HTCondor's own.
func TestPool(t *testing.T) {
	t.Parallel()
	for _, r := range releases() {
		t.Run(r.suite, func(t *testing.T) {
			t.Parallel()
			p := built(t, r.suite)
			name := "test-" + rand.Text()[:8]
			t.Cleanup(func() { _ = exec.Command(p.path, "down", "-name", name).Run() })
			if out := p.must("up", "-htcondor", r.suite, "-with-original", "-name", name); !strings.Contains(out, "Hello from tester@node: execpoint ran me") {
				t.Errorf("the first job did not run:\n%s", out)
			}
			if out := p.must("up", "-name", name); !strings.Contains(out, "is up already") {
				t.Errorf("a second up: %s", out)
			}
			out := p.must("in", "-name", name, "sh", "-c", "condor_submit compare.sub >&2 && condor_submit files.sub >&2 && condor_wait -wait 120 compare.log >&2 && condor_wait -wait 120 files.log >&2; cat compare.execpoint.out compare.original.out; head -n 1 files.counted; condor_status -direct "+hostInside+" -af EP State")
			for _, want := range []string{"execpoint ran me in", "original ran me in", "6 a\n", "execpoint Unclaimed"} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
			var exit *exec.ExitError
			if err := p.command("in", "-name", name, "sh", "-c", "exit 5").Run(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
				t.Errorf("the status of a command in the pool: %v", err)
			}
			if out := p.must("down", "-name", name); !strings.Contains(out, "is down") {
				t.Errorf("down: %s", out)
			}
			dir, err := defaultStore(os.Getenv, os.Geteuid())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "runs", name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the directory of the pool is still there: %v", err)
			}
			if out, err := p.command("in", "-name", name, "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "no pool") {
				t.Errorf("a command in no pool: %v: %s", err, out)
			}
		})
	}
}
