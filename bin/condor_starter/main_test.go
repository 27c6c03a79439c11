// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/starter/role"
)

// installed builds condor_starter into a directory of its own.
func installed(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "condor_starter")
	cmd := exec.Command("go", "build", "-o", exe, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// condor_starter executes the program of the startd that started it, or the
// condor_startd beside it, and answers for itself what a person asks.
func TestProgramOfTheStarter(t *testing.T) {
	t.Parallel()
	exe := installed(t)
	self, err := os.Executable() // it becomes a starter by roleEnv
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(exe), "condor_startd")
	for _, tt := range []struct {
		name   string
		beside string // what condor_startd is a link to, or the text of a script
		env    string
		args   []string
		out    string // has
		errs   string // has
		status int
	}{
		{"version", "", "", []string{"-version"}, commands.CondorVersion, "", 0},
		{"help", "", "", []string{"-help"}, "Usage: condor_starter", "", 0},
		{"which file, asked by a startd", "", self, []string{role.ClassadOption}, fmt.Sprintf("%s = %q\n", role.Attribute, exe), "", 0},
		{"abilities", self, "", []string{role.ClassadOption}, fmt.Sprintf("%s = %q\n", role.Attribute, exe), "", 0},
		{"abilities, nothing beside", "", "", []string{role.ClassadOption}, fmt.Sprintf("%s = %q\n", role.Attribute, exe), "no such file or directory", 1},
		{"beside", self, "", []string{"job.sub"}, "", `"job.sub": unexpected argument; a startd starts it`, 2},
		{"the startd's own", "#!/bin/sh\necho no\n", self, []string{"job.sub"}, "", `"job.sub": unexpected argument; a startd starts it`, 2},
		{"the startd's own is gone", self, "/gone/condor_startd", []string{"job.sub"}, "", `"job.sub": unexpected argument`, 2},
		{"a script beside", "#!/bin/sh\necho no\n", "", nil, "", beside + ": not a program, perhaps a script; the starter is a part of condor_startd", 1},
		{"nothing beside", "", "", nil, "", "open " + beside + ": no such file or directory; the starter is a part of condor_startd, which belongs beside " + exe, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_ = os.Remove(beside)
			switch {
			case strings.HasPrefix(tt.beside, "#!"):
				err = os.WriteFile(beside, []byte(tt.beside), 0o755)
			case tt.beside != "":
				err = os.Symlink(tt.beside, beside)
			}
			if err != nil {
				t.Fatal(err)
			}
			var out, errs strings.Builder
			cmd := exec.Command(exe, tt.args...)
			cmd.Env = role.Of([]string{roleEnv + "=starter", "CONDOR_CONFIG=/dev/null"}, tt.env)
			cmd.Stdout, cmd.Stderr = &out, &errs
			_ = cmd.Run() // the status says it
			if shows := strings.Contains(out.String(), "HasJobDeferral = true\n"); shows != (tt.name == "abilities") {
				t.Errorf("the abilities are shown: %v\n%s", shows, out.String())
			}
			if status := cmd.ProcessState.ExitCode(); status != tt.status || !strings.Contains(out.String(), tt.out) || !strings.Contains(errs.String(), tt.errs) {
				t.Errorf("exit status %d, %q, %q; want %d, %q, %q", status, out.String(), errs.String(), tt.status, tt.out, tt.errs)
			}
		})
	}
}

// Whichever program it is in, a starter is called condor_starter: HTCondor's tools
// and people look for that name.
func TestNameOfTheProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{roleEnv + "=starter"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), cmd.Wait() }()
	name := ""
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && name != "condor_starter\n"; <-tick.C {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		name = string(b)
	}
	if name != "condor_starter\n" {
		t.Errorf("the process is called %q", name)
	}
}
