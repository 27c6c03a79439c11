// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
)

// TestPeer runs the chosen tests and compares what came of them with the list.
func TestPeer(t *testing.T) {
	realpool.Patient(t)
	tree, in, user := needs(t)
	chosen, err := choose(readList(t), os.Getenv("EXECPOINT_PEER"))
	if err != nil {
		t.Fatal(err)
	}
	which, err := kinds(os.Getenv("EXECPOINT_PEER_KIND"))
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := strconv.Atoi(cmp.Or(os.Getenv("EXECPOINT_PEER_JOBS"), "3"))
	if err != nil || jobs < 1 {
		t.Fatalf("EXECPOINT_PEER_JOBS=%s; want a number from 1", os.Getenv("EXECPOINT_PEER_JOBS"))
	}
	b := newBench(t, tree, in, user, which)
	var orders []order
	for _, one := range chosen {
		for _, k := range which {
			orders = append(orders, order{one, k})
		}
	}
	all := rows(b.all(inTime(t), orders, jobs))
	t.Logf("\n%s", printed(all))
	if file := os.Getenv("EXECPOINT_PEER_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(tsv(all)), 0o644); err != nil {
			t.Error(err)
		}
	}
	for _, r := range all {
		t.Run(r.Test.Name, func(t *testing.T) { report(t, r) })
	}
}

// report says what of a row is not as the list has it. It fails for one that has
// to pass with ours and does not, unless the original does not either: then it
// is this machine that it does not suit.
func report(t *testing.T, r row) {
	t.Helper()
	if o := r.Original; o != nil && o.Verdict != passed {
		t.Logf("it does not pass with the original: %s %s; more in %s\n%s", o.Verdict, o.Why, o.Dir, o.Tail)
	}
	o := r.Ours
	switch {
	case o == nil:
	case o.Verdict == passed && r.Test.Ours == expectFail:
		t.Logf("it passes with ours now, but the list does not expect it (%s): its line in %s should be changed", r.Test.Why, listFile)
	case o.Verdict == passed || r.Test.Ours != expectPass:
	case r.Original != nil && r.Original.Verdict != passed:
		t.Logf("nor with ours: %s %s", o.Verdict, o.Why)
	default:
		t.Errorf("the list expects it to pass with ours: %s, %s, after %.0f s; more in %s\n%s", o.Verdict, o.Why, o.Took.Seconds(), o.Dir, o.Tail)
	}
}

// newBench makes the directory of everything, with our programs and the trees of
// links in it.
func newBench(t *testing.T, tree sourceTree, in installation, user account, which []kind) *bench {
	t.Helper()
	// Not t.TempDir: its name may be too long for a socket.
	dir, err := os.MkdirTemp("", "eppeer")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Dir: dir, Source: tree, Overlays: map[kind]string{}, User: user, Keep: os.Getenv("EXECPOINT_TEST_KEEP") != "", Say: t.Logf}
	t.Cleanup(func() {
		// Whatever failed, nothing stays that was started here.
		if _, err := endLeft(context.WithoutCancel(t.Context()), dir); err != nil {
			t.Error(err)
		}
		if t.Failed() || b.Keep {
			t.Logf("what the tests left is in %s", dir)
			return
		}
		b.discard(outcome{Dir: dir})
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, k := range which {
		instead := ""
		if k == ours {
			instead = filepath.Join(dir, "bin")
			if err := buildOurs(instead); err != nil {
				t.Fatal(err)
			}
		}
		b.Overlays[k] = filepath.Join(dir, string(k))
		if err := overlay(b.Overlays[k], in, instead); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// inTime ends some time before go test would end everything, so that what was
// found by then is reported and nothing is left.
func inTime(t *testing.T) context.Context {
	t.Helper()
	deadline, ok := t.Deadline()
	if !ok {
		return t.Context()
	}
	ctx, cancel := context.WithDeadlineCause(t.Context(), deadline.Add(-min(time.Minute, time.Until(deadline)/10)),
		fmt.Errorf("the -timeout of go test, %v from the start, is too short", time.Until(deadline).Round(time.Second)))
	t.Cleanup(cancel)
	return ctx
}
