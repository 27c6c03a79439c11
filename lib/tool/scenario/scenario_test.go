// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
)

// put writes a file into a directory.
func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFile: which configuration counts where the scenario, the caller and a comparison
// each name one.
func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shut := put(t, dir, "shut.conf", "NUM_CPUS = 1\nSTART = False\n")
	open := put(t, dir, "open.conf", "NUM_CPUS = 1\nSTART = True\n")
	const jobs = "job j runs=10m\nat 0s submit j\n"
	both := put(t, dir, "both.scn", "end 1h\nmachine cpus=1\nconfig shut.conf\n    START = True\n"+jobs)
	file := put(t, dir, "file.scn", "end 1h\nmachine cpus=1\nconfig shut.conf\n"+jobs)
	lines := put(t, dir, "lines.scn", "end 1h\nmachine cpus=1\nconfig\n    START = True\n"+jobs)
	bad := put(t, dir, "bad.scn", "end 1h\nat 5m vacate slot7\n")
	seed := uint64(7)
	for _, tt := range []struct {
		name, path    string
		play          Play
		first, second int // jobs that are done; -1 for no comparison
	}{
		{"a file and lines", both, Play{}, 1, -1},
		{"a file", file, Play{}, 0, -1},
		{"another in place of both", both, Play{Config: shut}, 0, -1},
		{"compared with another file, with the same lines", both, Play{Compare: shut}, 1, 1},
		{"compared with another file", file, Play{Compare: open, Seed: &seed}, 0, 1},
		{"lines compared with a file", lines, Play{Compare: shut}, 1, 0},
	} {
		tt.play.Options = config.Options{ReadFile: os.ReadFile}
		o, err := tt.play.File(tt.path)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var b strings.Builder
		if err := o.Print(&b, 80, true); err != nil {
			t.Fatal(err)
		}
		got := strings.Count(b.String(), `"completed":1`)
		if want := tt.first + max(tt.second, 0); got != want || o.Refused {
			t.Errorf("%s: %d times a job is done, want %d; refused %v\n%s", tt.name, got, want, o.Refused, &b)
		}
	}
	if o, err := (Play{Compare: open, Options: config.Options{ReadFile: os.ReadFile}}).File(bad); err != nil || !o.Refused {
		t.Errorf("a slot that is not there: %+v, %v", o, err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.scn"): "none.scn", put(t, dir, "odd.scn", "end 1h\nconfig\n    START = = 1\n"): "odd.scn:3:",
		put(t, dir, "long.scn", strings.Repeat("#", MaxText+1)): "longer than 8388608 bytes", put(t, dir, "gone.scn", "end 1h\nconfig none.conf\n"): "none.conf",
	} {
		if _, err := (Play{Options: config.Options{ReadFile: os.ReadFile}}).File(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
