// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package thishost

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
)

// census counts what it is told to kill.
type census struct {
	host.Census
	killed int
}

func (*census) Boot() string           { return "boot" }
func (*census) Alive(host.ProcID) bool { return false }
func (*census) Running(int) bool       { return false }
func (c *census) KillRemains(host.Remains) (int, error) {
	c.killed++
	return 1, nil
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
		if err := (&Platform{Census: c}).Sweep(execute); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(execute)
		if c.killed != want || err != nil || len(left) != 0 {
			t.Errorf("%v: %d killed, want %d; %d directories left, %v", mode, c.killed, want, len(left), err)
		}
	}
}
