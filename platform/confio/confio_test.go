// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package confio

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/config"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want []string
		err  string
	}{
		{" /bin/x a  b ", []string{"/bin/x", "a", "b"}, ""},
		{"/bin/x 'a b'", []string{"/bin/x", "'a", "b'"}, ""},
		{`"/bin/x 'a b' c"`, []string{"/bin/x", "a b", "c"}, ""},
		{`"/bin/x 'it''s' ""q"""`, []string{"/bin/x", "it's", `"q"`}, ""},
		{`"/bin/x ''"`, []string{"/bin/x", ""}, ""},
		{"", nil, "no command"},
		{`""`, nil, "no command"},
		{`"/bin/x`, nil, "double quote"},
		{`"/bin/x 'a"`, nil, "single quote"},
	} {
		got, err := split(tt.in)
		if d := cmp.Diff(tt.want, got); d != "" || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v %s", tt.in, err, d)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(`"/bin/x 'a b' c"`)
	f.Fuzz(func(t *testing.T, s string) {
		words, err := split(s)
		if err == nil && len(words) == 0 {
			t.Error("no words and no error")
		}
	})
}

// TestCommands runs programs as a configuration does: their output, their
// status, one that hangs with a child that holds the output, and one that
// never stops writing.
func TestCommands(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the programs are those of Unix")
	}
	if out, err := RunCommand("/bin/echo A = 1"); string(out) != "A = 1\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := RunWith(t.Context(), []string{"A=1"})("/usr/bin/env"); string(out) != "A=1\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	var ended *config.ExitError
	if out, err := RunCommand(`"/bin/sh -c 'echo x; exit 3'"`); string(out) != "x\n" || !errors.As(err, &ended) || ended.Status != 3 {
		t.Errorf("%q, %v", out, err)
	}
	begin := time.Now()
	if _, err := runWithin(t.Context(), 50*time.Millisecond, nil, `"/bin/sh -c '/bin/sleep 600 & /bin/sleep 600'"`); err == nil || !strings.Contains(err.Error(), "longer than 50ms") {
		t.Errorf("a command that hangs: %v", err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("a command that hangs held us for %v", took)
	}
	if _, err := RunCommand("/bin/cat /dev/zero"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a command that never stops writing: %v", err)
	}
	pid := filepath.Join(t.TempDir(), "pid")
	if _, err := RunCommand(`"/bin/sh -c '/bin/sleep 600 & echo $! >` + pid + `'"`); err == nil || !strings.Contains(err.Error(), "held its output") {
		t.Errorf("a command that leaves a program behind: %v", err)
	}
	left, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); runs(strings.TrimSpace(string(left))); {
		if time.Now().After(deadline) {
			t.Fatal("the program that it left behind still runs")
		}
		runtime.Gosched()
	}
	if _, err := RunCommand("/no/such/program"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
}

// runs reports whether there is a process that has not ended.
func runs(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestHangingInclude shows that a command of a configuration which never ends
// gives an error at its line.
func TestHangingInclude(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("c", "A = 1\ninclude command : /bin/sleep 600\n", config.Options{RunCommand: func(command string) ([]byte, error) {
		return nil, errors.New("the command took longer than 30s and was ended")
	}})
	if s != nil || err == nil || err.Error() != `c:2:19: cannot include: the command took longer than 30s and was ended (value "/bin/sleep 600", want a readable source)` {
		t.Errorf("%v", err)
	}
}

func TestReadDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "d"), 0o755), os.WriteFile(filepath.Join(dir, "b"), nil, 0o644), os.WriteFile(filepath.Join(dir, "a"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadDir(dir)
	if d := cmp.Diff([]string{"a", "b"}, got); d != "" || err != nil {
		t.Error(err, d)
	}
	if is, err := IsDir(dir); !is || err != nil {
		t.Error(is, err)
	}
	if is, err := IsDir(filepath.Join(dir, "a")); is || err != nil {
		t.Error(is, err)
	}
	if _, err := IsDir(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
