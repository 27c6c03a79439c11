// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPolicies looks at what the documents promise of their policy examples in
// what the scenarios come to. A wanted or forbidden move is "SECOND SLOT PAIR
// JOB"; one that ends in a blank is the beginning of such a text.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scenario     string
		want, forbid []string
		total        string // of the result: "COMPLETED HELD EVICTIONS SUSPENSIONS"
		text         string // must be in the table for people
	}{
		// row: S0-213
		{"default", []string{"4800 slot1_1 Claimed/Retiring 3.0"}, []string{"1800 ", "1805 ", "2400 ", "2405 "}, "3 0 1 0", "received VACATE_CLAIM command"},
		// row: S0-208, S1-060
		{"test-job", []string{"3600 slot1_1 Claimed/Busy 2.0", "7200 slot1_1 Claimed/Busy 3.0", "12360 slot1_1 Claimed/Busy 1.0"},
			[]string{"1200 slot1_1 ", "1260 slot1_1 "}, "4 0 0 0", ""},
		// row: S0-209, S0-210
		{"time-of-day", []string{"136800 slot1_1 Claimed/Suspended 1.0", "169200 slot1_2 Claimed/Busy 2.0"}, []string{"144000 slot1_", "144300 slot1_"}, "2 0 1 1",
			"MY.ClockMin = 480, MY.ClockDay = 1"},
		// row: S0-211, S1-064
		{"desktop", []string{"1800 slot1_1 Claimed/Suspended 1.0", "1800 slot1_2 Claimed/Suspended 2.0", "4205 slot1_1 Claimed/Retiring 1.0"}, nil, "2 0 2 4", "MY.KeyboardIdle = 0"},
		{"cluster", nil, []string{"1800 slot1_", "3600 slot1_1 Claimed/Suspended 1.0"}, "4 0 0 2", ""},
		// row: S0-214, S0-215, S0-216, S0-217
		{"suspendable", []string{"60 slot3 Claimed/Busy 1.0", "60 slot4 Claimed/Busy 2.0", "1860 slot3 Claimed/Suspended 1.0", "3065 slot3 Claimed/Busy 1.0", "3660 slot4 Claimed/Suspended 2.0"},
			[]string{"1860 slot4 "}, "5 0 0 3", "CONTINUE is TRUE [CONTINUE, suspendable.conf:"},
		// row: S0-218
		{"interactive", []string{"300 slot1 Claimed/Retiring 1.0", "905.1 slot1 Claimed/Busy 4.0"}, []string{"300 slot2 "}, "3 0 1 0", ""},
		{"interactive-only", []string{"60 slot2 Claimed/Busy 1.0", "3600 slot1 Claimed/Busy 4.0"}, []string{"60 slot1 "}, "5 0 0 0", ""},
		// row: S3-023
		{"dedicated", []string{"600 slot1_1 Claimed/Busy 2.0", "600 slot1_2 Claimed/Busy 3.0"}, []string{"60 slot1_", "1200 slot1_"}, "2 0 0 0", ""},
		// row: S3-024
		{"dedicated-preferred", []string{"60 slot1 Claimed/Busy 1.0", "1200 slot1 Preempting/Vacating 1.0", "1200.1 slot1 Claimed/Busy 3.0"}, nil, "3 0 1 0", ""},
		{"dedicated-desktop", []string{"900 slot1_2 Claimed/Suspended 2.0", "1505 slot1_2 Claimed/Retiring 2.0"}, []string{"900 slot1_1 "}, "3 0 2 2", ""},
		// row: S4-006
		{"memory-hold", []string{"665 slot2 Claimed/Retiring 2.0"}, nil, "1 1 1 0", "held (Your job used too much virtual memory.)"},
		{"default-6.8", []string{"1200 slot1_1 Claimed/Suspended 1.0", "3600 slot1_1 Claimed/Suspended 1.0", "4205 slot1_1 Preempting/Vacating 1.0"}, nil, "0 0 2 3", ""},
		{"backfill", []string{"331 slot1 Backfill/Busy ", "1860 slot1 Backfill/Killing ", "1862 slot1 Claimed/Busy 1.0", "5400 slot1 Backfill/Killing "}, nil, "1 0 0 0", "START_BACKFILL is TRUE"},
		{"drain", []string{"1200 slot1_1 Claimed/Retiring 1.0", "3060 slot1_2 Preempting/Vacating 2.0", "7200 slot1 Owner/Idle "}, []string{"1860 slot1_"}, "3 0 1 0", "entering Drained state"},
		// row: S1-069
		{"vm1-vm2", []string{"1860 slot2 Claimed/Suspended 1.0", "3065 slot2 Claimed/Busy 1.0", "5400 slot2 Claimed/Suspended 1.0"}, nil, "2 0 0 2", ""},
	} {
		path := filepath.Join(policies, c.scenario+".scn")
		var stdout, stderr bytes.Buffer
		if status := cmdSimulate([]string{"-json", path}, nil, &stdout, &stderr); status != exitOK {
			t.Errorf("%s: %d %s", c.scenario, status, &stderr)
			continue
		}
		var r struct {
			Total       struct{ Completed, Held, Evictions, Suspensions int }
			Transitions []struct {
				T             float64
				Slot, To, Job string
			}
		}
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		var moves []string
		for _, m := range r.Transitions {
			moves = append(moves, fmt.Sprintf("%v %s %s %s", m.T, m.Slot, m.To, m.Job))
		}
		for _, want := range c.want {
			if !slices.Contains(moves, want) {
				t.Errorf("%s: no move %q", c.scenario, want)
			}
		}
		for _, not := range c.forbid {
			if i := slices.IndexFunc(moves, func(m string) bool { return strings.HasPrefix(m, not) }); i >= 0 {
				t.Errorf("%s: the move %q should not be", c.scenario, moves[i])
			}
		}
		if got := fmt.Sprint(r.Total.Completed, r.Total.Held, r.Total.Evictions, r.Total.Suspensions); got != c.total {
			t.Errorf("%s: %s in all, want %s", c.scenario, got, c.total)
		}
		stdout.Reset()
		cmdSimulate([]string{path}, nil, &stdout, &stderr)
		if text := strings.ReplaceAll(stdout.String(), policies+"/", ""); !strings.Contains(text, c.text) {
			t.Errorf("%s: %q is not said", c.scenario, c.text)
		}
	}
}
