// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/host"
)

// TestRunning lists programs by their names: the living ones, whoever they belong
// to, also where their arguments are hidden or without end. A child that is
// about to execute another program is none.
func TestRunning(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	parents := map[int]int{44: 5, 45: 5}
	line := func(pid int, name, state string) string {
		return fmt.Sprintf("%d (%s) %s "+fmt.Sprint(parents[pid])+" 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0 0", pid, name, state, 100+pid)
	}
	for pid, p := range map[int]struct{ stat, args string }{
		5:           {line(5, "condor_startd", "S"), "condor_startd\x00-f\x00"},
		40:          {line(40, "condor_ep", "S"), "/x/condor_ep\x00run\x00" + strings.Repeat("a", 10_000) + "\x00"},
		41:          {line(41, "condor_ep", "Z"), ""},
		42:          {line(42, "condor_ep) S", "S"), "condor_ep\x00run\x00"},
		43:          {line(43, "condor_startd", "S"), ""},
		44:          {line(44, "condor_startd", "R"), "condor_startd\x00-f\x00"},
		45:          {line(45, "condor_startd", "S"), "condor_startd\x00-local-name\x00x\x00"},
		os.Getpid(): {line(os.Getpid(), "condor_ep", "R"), "condor_ep\x00run\x00"},
	} {
		dir := filepath.Join(root, fmt.Sprint(pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(p.stat), 0o644); err != nil {
			t.Fatal(err)
		}
		if p.args == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cmdline"), []byte(p.args), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Running(root, "condor_ep", "condor_startd")
	if err != nil {
		t.Fatal(err)
	}
	me := uint32(os.Geteuid())
	want := []host.Program{
		{Proc: host.ProcID{PID: 5, Start: 105}, UID: me, Name: "condor_startd", Args: []string{"condor_startd", "-f"}},
		{Proc: host.ProcID{PID: 40, Start: 140}, UID: me, Name: "condor_ep", Args: []string{"/x/condor_ep", "run", strings.Repeat("a", mostArgs-len("/x/condor_ep run "))}},
		{Proc: host.ProcID{PID: 43, Start: 143}, UID: me, Name: "condor_startd"},
		{Proc: host.ProcID{PID: 45, Start: 145}, UID: me, Name: "condor_startd", Args: []string{"condor_startd", "-local-name", "x"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := Running(filepath.Join(root, "none"), "x"); err == nil {
		t.Error("no procfs is no error")
	}
}
