// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package golden

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

// batch is how many Execution Points run at a time.
const batch = 16

// sampled are the groups of cases that are not run unless there is time.
var sampled = map[string]bool{"logname": true, "environment": true, "usage": true, "identity": true}

// TestRecorded runs the recorded cases on our Execution Point.
//
// row: S0-058
func TestRecorded(t *testing.T) {
	want := expectations(t)
	var runs []*run
	only := os.Getenv("EXECPOINT_GOLDEN") // a case, while something is looked into
	for _, r := range records(t) {
		if want.unrun(r.ID) || only == "" && sampled[r.Group] && !realpool.Long() || only != "" && r.ID != only {
			continue
		}
		runs = append(runs, &run{record: r})
	}
	w := newWorld(t)
	byConfig := map[string][]*run{}
	for _, r := range runs {
		byConfig[r.Config] = append(byConfig[r.Config], r)
	}
	for configs := range slices.Chunk(slices.Sorted(maps.Keys(byConfig)), batch) {
		w.all(configs, byConfig)
	}
	for _, r := range runs {
		t.Run(r.ID, func(t *testing.T) { want.judge(t, r.ID, r.record.facts(), r.seen) })
	}
	want.report(t, only == "" && realpool.Long())
}

// all runs the cases of some configurations at the same time.
func (w *world) all(configs []string, byConfig map[string][]*run) {
	w.t.Helper()
	var eps []*realpool.EP
	var runs []*run
	for _, config := range configs {
		mine := byConfig[config]
		ep := w.begin(fmt.Sprintf("ep%x", w.numbered()), max(8, 3*len(mine)), w.replace(config))
		eps = append(eps, ep)
		for _, r := range mine {
			r.world, r.ep = w, ep
			r.submit()
			for _, early := range runs {
				if !early.done {
					early.look()
				}
			}
			runs = append(runs, r)
		}
	}
	err := realpool.Until(w.t.Context(), 100*time.Second, 50*time.Millisecond, func(context.Context) error {
		var waits error
		for _, r := range runs {
			if !r.done && !r.look() {
				waits = errors.Join(waits, fmt.Errorf("%s: %s", r.ID, r.where()))
			}
		}
		return waits
	})
	if err != nil {
		w.t.Errorf("these did not get as far as recorded:\n%v", err)
	}
	for _, r := range runs {
		r.finish()
	}
	for _, ep := range eps {
		if !ep.Stop(syscall.SIGQUIT, 20*time.Second) {
			w.t.Errorf("%s does not end", ep.Name)
		}
		if left := ep.Scratch(); len(left) > 0 {
			w.t.Errorf("%s leaves %q", ep.Name, left)
		}
		if left := leaves(ep.Dir); len(left) > 0 {
			w.t.Errorf("%s leaves the groups %q", ep.Name, left)
		}
	}
}

// leaves are the groups of an Execution Point's jobs that are there.
func leaves(dir string) []string {
	var found []string
	for _, depth := range []string{"*/*", "*/*/*"} {
		all, _ := filepath.Glob("/sys/fs/cgroup/" + depth + "/" + strings.ReplaceAll(dir, "/", "_") + "_execute_*")
		found = append(found, all...)
	}
	return found
}

var number int

// numbered is the next number of an Execution Point.
func (w *world) numbered() int { number++; return number }
