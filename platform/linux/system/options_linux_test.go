// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// visit is this machine, with scanners of the test's own.
func visit(t *testing.T, more ...machine.Scanner) *System {
	t.Helper()
	s, err := Visit(more...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestReader reads a file, the environment, what the program sets and what was set
// from afar, each of which counts before the last, and shows them what the program
// is.
func TestReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "condor_config")
	if err := os.WriteFile(file, []byte("A = file\nB = file\nC = file\nD = file\nHOW = $(A)\nDEEP = $(LOCAL_DIR)/x of $(USERNAME) on $(HOSTNAME)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	read := visit(t).Reader(Configuration{
		File: file, Dir: "/where", Env: []string{"_CONDOR_B=env", "_CONDOR_C=env", "_CONDOR_D=env"},
		Texts: []config.Text{{Name: "program", Text: "C = program, before $(C)\nD = program\n"}},
	})
	snap, err := read(t.Context(), &machine.Inventory{Hostname: "desk"}, []config.Text{{Name: "afar", Text: "D = afar\n"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"A": "file", "B": "env", "C": "program, before env", "D": "afar", "SUBSYSTEM": "STARTD"} {
		if got := snap.String(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := snap.String("DEEP"); !strings.HasPrefix(got, "/where/x of ") || !strings.HasSuffix(got, " on desk") || strings.Contains(got, "of  on") {
		t.Errorf("facts give %q", got)
	}
	if s, _ := snap.Lookup("C"); s.Origin.String() != "program:1" {
		t.Errorf("C is from %v", s.Origin)
	}
	if snap, err := visit(t).Reader(Configuration{File: "/bin/echo NUM_CPUS = 5 |"})(t.Context(), &machine.Inventory{}, nil); err != nil || snap.String("NUM_CPUS") != "5" {
		t.Errorf("a command instead of a file: %v", err)
	}
	var problems config.Problems
	if _, err := read(t.Context(), &machine.Inventory{}, []config.Text{{Name: "afar", Text: "NUM_CPUS = many\n"}}); !errors.As(err, &problems) || problems[0].Knob != "NUM_CPUS" {
		t.Errorf("a value that is none: %v", err)
	}
}

// TestRunOptions fills the options of a run for this machine, to which a scanner
// of the caller's adds.
func TestRunOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := visit(t, machine.ScannerFunc("bench", func(inv *machine.Inventory) error {
		if inv.DetectedCores == 0 {
			t.Error("it is asked before those of the system")
		}
		inv.AddResource("bench", machine.Resource{Name: "Boards", Count: 2})
		return errors.New("one board does not answer")
	}))
	o, found, err := s.Run(t.Context(), Configuration{Dir: dir, Texts: []config.Text{{Name: "t", Text: "NUM_CPUS = 3\nUID_DOMAIN = example.org\n"}}})
	if err != nil {
		t.Fatal(err)
	}
	if o.Inventory.UsableCores != 3 || len(o.Inventory.Resources) != 1 || o.Execute != filepath.Join(dir, "execute") || o.StarterPath != s.Self ||
		len(o.StarterArgs) != 2 || o.StarterArgs[1] != protocol.Command || !strings.HasSuffix(o.User, "@example.org") || o.Log == nil || o.Host.Spawner == nil {
		t.Errorf("%+v", o)
	}
	if len(found) == 0 || !strings.Contains(errors.Join(found...).Error(), "one board does not answer") {
		t.Errorf("found out %v", found)
	}
	if info, err := os.Stat(o.Execute); err != nil || !info.IsDir() {
		t.Errorf("EXECUTE: %v", err)
	}
	again, err := o.Load(t.Context())
	if err != nil || again.String("UID_DOMAIN") != "example.org" {
		t.Errorf("read again: %v", err)
	}
}

// TestRunRefused has nothing to run on.
func TestRunRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"MEMORY = 100\nRESERVED_MEMORY = 200\n": "RESERVED_MEMORY",
		"EXECUTE = " + file + "\n":              "EXECUTE",
		"NUM_CPUS = many\n":                     "NUM_CPUS",
	} {
		if _, _, err := visit(t).Run(t.Context(), Configuration{Dir: t.TempDir(), Texts: []config.Text{{Name: "t", Text: text}}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestDaemonOptions fills the options of the daemon.
func TestDaemonOptions(t *testing.T) {
	t.Parallel()
	s := visit(t)
	o := s.Daemon(Configuration{Dir: t.TempDir(), Env: []string{"A=b"}})
	if o.Platform == nil || o.Load == nil || o.StarterPath != s.Self || o.PID != os.Getpid() || len(o.Env) != 1 || o.System.Files == nil || o.Version == "" {
		t.Errorf("%+v", o)
	}
	if _, err := o.Load(t.Context(), &machine.Inventory{}, nil); err != nil {
		t.Error(err)
	}
}
