// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
	"github.com/execpoint/execpoint/lib/sandbox"
)

const attacker = 61234 // a user who need not exist

// victim is a process that a forged record names.
type victim struct {
	*exec.Cmd
	id   host.ProcID
	boot string
}

func newVictim(t *testing.T) victim {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for which another user forges records")
	}
	v := victim{Cmd: exec.Command("sleep", "1000")}
	if err := v.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = v.Process.Kill()
		_ = v.Wait()
	})
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	start, err := strconv.ParseUint(strings.Fields(rest)[19], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	p, err := thishost.Visit()
	if err != nil {
		t.Fatal(err)
	}
	v.id, v.boot = host.ProcID{PID: v.Process.Pid, Start: start}, p.Census.Boot()
	if !p.Census.Alive(v.id) {
		t.Fatalf("%v is not its process", v.id)
	}
	return v
}

// killed reports whether the victim has ended; it is not waited for.
func (v victim) killed(t *testing.T) bool {
	t.Helper()
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.id.PID))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(state), ") Z ")
}

// ended is a process that is no more.
var ended = host.ProcID{PID: 4_000_000, Start: 1}

// forge makes below execute the sandbox of a starter that ended, whose job the
// victim is said to be.
func (v victim) forge(t *testing.T, execute string) {
	t.Helper()
	own := filepath.Join(execute, "dir_4000000", "htcondor")
	text, err := json.Marshal(sandbox.Record{Version: 1, Activation: "a", Slot: "slot1", Boot: v.boot, Starter: ended, Job: v.id})
	if err = errors.Join(err, os.MkdirAll(own, 0o755), os.WriteFile(filepath.Join(own, "starter.record"), append(text, '\n'), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// forgeRun makes the record of a run that ended, as base/run-1.
func forgeRun(t *testing.T, base string, o run.Owner) {
	t.Helper()
	text, err := json.Marshal(o)
	if err = errors.Join(err, os.MkdirAll(filepath.Join(base, "run-1"), 0o700), os.WriteFile(filepath.Join(base, "run-1", "owner.json"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// giveAway makes everything at path the attacker's.
func giveAway(t *testing.T, path string) {
	t.Helper()
	err := filepath.WalkDir(path, func(p string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, attacker, attacker))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What another user wrote where root's runs are recorded, or where one had its
// sandboxes, has no process killed and nothing removed, and the message says
// why.
func TestForgedRuns(t *testing.T) {
	t.Parallel()
	job := small + "executable = /bin/true\ntransfer_executable = false\nqueue\n"
	for _, tt := range []struct {
		name  string
		forge func(t *testing.T, p place, v victim) (keeps string)
		want  int
		said  string
	}{
		{"the directory that had a name which can be guessed", func(t *testing.T, p place, v victim) string {
			base := filepath.Join(p.tmp, "execpoint-0")
			forgeRun(t, base, run.Owner{Proc: ended, Execute: filepath.Join(base, "run-1", "execute")})
			v.forge(t, filepath.Join(base, "run-1", "execute"))
			giveAway(t, base)
			return base
		}, exitOK, ""},
		{"the directory of the records", func(t *testing.T, p place, v victim) string {
			base := filepath.Join(p.tmp, "runs")
			forgeRun(t, base, run.Owner{Proc: ended, Execute: filepath.Join(base, "run-1", "execute")})
			v.forge(t, filepath.Join(base, "run-1", "execute"))
			giveAway(t, base)
			return base
		}, exitUsage, "it belongs to the user 61234, want 0"},
		{"a directory of the records that others may write", func(t *testing.T, p place, v victim) string {
			base := filepath.Join(p.tmp, "runs")
			forgeRun(t, base, run.Owner{Proc: ended, Execute: filepath.Join(base, "run-1", "execute")})
			v.forge(t, filepath.Join(base, "run-1", "execute"))
			giveAway(t, filepath.Join(base, "run-1"))
			if err := os.Chmod(base, 0o777); err != nil {
				t.Fatal(err)
			}
			return base
		}, exitUsage, "others may write in it (mode 0777)"},
		{"one run in it", func(t *testing.T, p place, v victim) string {
			base := filepath.Join(p.tmp, "runs")
			forgeRun(t, base, run.Owner{Proc: ended, Execute: filepath.Join(base, "run-1", "execute")})
			v.forge(t, filepath.Join(base, "run-1", "execute"))
			if err := os.Chmod(base, 0o700); err != nil {
				t.Fatal(err)
			}
			giveAway(t, filepath.Join(base, "run-1"))
			return filepath.Join(base, "run-1")
		}, exitOK, ""},
		{"the EXECUTE of a run that was root's", func(t *testing.T, p place, v victim) string {
			execute := filepath.Join(p.tmp, "theirs")
			forgeRun(t, filepath.Join(p.tmp, "runs"), run.Owner{Proc: ended, Execute: execute})
			v.forge(t, execute)
			giveAway(t, execute)
			return execute
		}, exitOK, "theirs"},
		{"a sandbox in the EXECUTE of a run that was root's", func(t *testing.T, p place, v victim) string {
			execute := filepath.Join(p.tmp, "ours")
			forgeRun(t, filepath.Join(p.tmp, "runs"), run.Owner{Proc: ended, Execute: execute})
			v.forge(t, execute)
			giveAway(t, filepath.Join(execute, "dir_4000000"))
			if err := os.Chmod(execute, 0o755); err != nil {
				t.Fatal(err)
			}
			return ""
		}, exitOK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, v := newPlace(t), newVictim(t)
			keeps := tt.forge(t, p, v)
			p.write(t, "job.sub", job)
			status, stdout, stderr := p.ep(t, "run", "job.sub")
			if status != tt.want || !strings.Contains(stderr, tt.said) {
				t.Errorf("status %d, want %d and %q\n%s%s", status, tt.want, tt.said, stdout, stderr)
			}
			if v.killed(t) {
				t.Error("a process that a forged record names was killed")
			}
			if _, err := os.Stat(keeps); keeps != "" && err != nil {
				t.Errorf("what is another user's was removed: %v", err)
			}
		})
	}
}

// A record that root itself wrote does count: what a run left is cleared away.
// It shows that the victims above are those that would be killed.
func TestOwnRecordsCount(t *testing.T) {
	t.Parallel()
	p, v := newPlace(t), newVictim(t)
	base, execute := filepath.Join(p.tmp, "runs"), filepath.Join(p.tmp, "ours")
	forgeRun(t, base, run.Owner{Proc: ended, Execute: execute})
	v.forge(t, execute)
	if err := os.Chmod(base, 0o700); err != nil {
		t.Fatal(err)
	}
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	if status, stdout, stderr := p.ep(t, "run", "job.sub"); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if !v.killed(t) {
		t.Error("what a run left still runs")
	}
	if left, err := os.ReadDir(execute); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	p.nothingLeft(t)
}
