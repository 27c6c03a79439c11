// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// The range of TestTrackingGroups, of which no machine has a group.
const firstGID, lastGID = 54001, 54002

// Each job has a group of the range to itself. A job for which none is left does not
// run, and the log says so; another range counts when the daemon starts again, and
// USE_PROCD has no say. A process without any other mark is found by it when the
// starter was killed.
//
// row: S0-060, S0-061, S0-062, S0-063, S0-064
func TestTrackingGroups(t *testing.T) {
	conf := func(last int) string {
		return fmt.Sprintf("USE_GID_PROCESS_TRACKING = True\nUSE_PROCD = False\nBASE_CGROUP =\nMIN_TRACKING_GID = %d\nMAX_TRACKING_GID = %d\n", firstGID, last)
	}
	w := newWorldOf(t, func(w *world) {
		w.must(os.WriteFile(filepath.Join(w.ep.Dir, "condor_config"), []byte(w.base+conf(lastGID)), 0o644))
	})
	w.round(conf(lastGID))
	word := fmt.Sprintf("87654%d", os.Getpid()%10000)
	var jobs []*job
	var dirs []string
	had := make(map[string]int)
	for _, name := range []string{"one", "two"} {
		j := w.submit(name, "id -G >groups\n(env -i setsid sh -c '(sleep "+word+" &)' >/dev/null 2>&1 </dev/null &)\nsleep 0.3\n"+strings.ReplaceAll(stay, "$1", name+"1"), "")
		dir := j.scratch()
		b, err := os.ReadFile(filepath.Join(dir, "groups"))
		w.must(err)
		for _, g := range strings.Fields(string(b)) {
			if n, _ := strconv.Atoi(g); n >= firstGID && n <= lastGID {
				had[g]++
			}
		}
		jobs, dirs = append(jobs, j), append(dirs, dir)
	}
	if len(had) != 2 || had[strconv.Itoa(firstGID)] != 1 || had[strconv.Itoa(lastGID)] != 1 {
		t.Errorf("the jobs have the groups %v, want each of %d and %d once", had, firstGID, lastGID)
	}

	// More are not there, whatever the configuration says meanwhile.
	w.must(os.WriteFile(filepath.Join(w.ep.Dir, "condor_config"), []byte(w.base+"Round = 1\nSTARTD_ATTRS = $(STARTD_ATTRS), Round\n"+conf(lastGID+5)), 0o644))
	w.ep.Signal(syscall.SIGHUP)
	w.pool.Eventually("the other range is put off", realpool.Patience, func(context.Context) error {
		if log := w.ep.Log("StartLog"); !strings.Contains(log, "take effect only when the Execution Point is started again: MAX_TRACKING_GID") {
			return errors.New("nothing is said of it")
		}
		return nil
	})
	third := w.submit("three", "id -G\n", "")
	w.pool.Eventually("no group is left", realpool.Patience, func(context.Context) error {
		if log := w.ep.Log("StartLog"); !strings.Contains(log, "no tracking group id is left") {
			return errors.New("nothing is said of it")
		}
		return nil
	})
	if log := third.file("log"); strings.Contains(log, "executing") {
		t.Errorf("it runs:\n%s", log)
	}
	third.remove()

	// What hides from its dead starter is found by its group.
	starter, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(dirs[0])), "dir_"))
	w.must(err)
	if n := len(w.processes("sleep\x00" + word)); n != 2 {
		t.Fatalf("%d processes hide, want 2", n)
	}
	w.must(syscall.Kill(starter, syscall.SIGKILL))
	w.pool.Eventually("the process of the first job is gone", realpool.Patience, func(context.Context) error {
		if n := len(w.processes("sleep\x00" + word)); n > 1 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
	jobs[0].remove()
	w.must(os.WriteFile(filepath.Join(dirs[1], "go"), nil, 0o644))
	jobs[1].done()
	w.pool.Eventually("nothing is left of the second", soon, func(context.Context) error {
		if n := len(w.processes("sleep\x00" + word)); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
	w.idle()
}
