// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
)

// census counts what it is told to kill.
type census struct {
	host.Census
	killed   int
	suspects []string
}

func (*census) Boot() string           { return "boot" }
func (*census) Alive(host.ProcID) bool { return false }
func (*census) Running(int) bool       { return false }
func (c *census) KillRemains(host.Remains) (int, error) {
	c.killed++
	return 1, nil
}

func (c *census) Suspects(host.Remains, string) ([]string, error) { return c.suspects, nil }

// A process that may be of a job is named, since it cannot be killed.
func TestSweepNamesSuspects(t *testing.T) {
	t.Parallel()
	execute := filepath.Join(t.TempDir(), "execute")
	own := filepath.Join(execute, "dir_12345", "htcondor")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	record := `{"version":1,"activation":"slot1#4","slot":"s","boot":"boot","starter":{"pid":12345,"start":1}}` + "\n"
	if err := os.WriteFile(filepath.Join(own, "starter.record"), []byte(record), 0o644); err != nil {
		t.Fatal(err)
	}
	err := (&System{Census: &census{suspects: []string{`process 7@8 ("sleep") works in "/x"`}}}).Sweep(execute)
	if err == nil || !strings.Contains(err.Error(), `process 7@8 ("sleep") works in "/x", after the starter of slot1#4 had died: it may be of that job`) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(execute); err != nil || len(left) != 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
}

// A record that anybody could have written has nobody killed.
func TestSweepOfForgedRecords(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]int{0o755: 1, 0o775: 1, 0o777 | os.ModeSticky: 0, 0o777: 0} {
		execute := filepath.Join(t.TempDir(), "execute")
		own := filepath.Join(execute, "dir_12345", "htcondor")
		if err := os.MkdirAll(own, 0o755); err != nil {
			t.Fatal(err)
		}
		record := `{"version":1,"activation":"x","slot":"s","boot":"boot","starter":{"pid":12345,"start":1},"job":{"pid":1,"start":1},"marker":"HOME=/root"}` + "\n"
		if err := os.WriteFile(filepath.Join(own, "starter.record"), []byte(record), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(execute, mode); err != nil {
			t.Fatal(err)
		}
		c := &census{}
		if err := (&System{Census: c}).Sweep(execute); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(execute)
		if c.killed != want || err != nil || len(left) != 0 {
			t.Errorf("%v: %d killed, want %d; %d directories left, %v", mode, c.killed, want, len(left), err)
		}
	}
}
