// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"runtime"
	"strconv"
	"testing"
)

// A starter looks at its job every few seconds, perhaps for weeks, and seldom
// collects garbage: a look must leave next to none.
func TestLookLeavesLittle(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("the race detector allocates too")
	}
	got := scenario[outcome](t, "look", "none")
	const most = 2048 // bytes; it was 6,160 with os.Open and bytes.Fields
	if left, err := strconv.ParseUint(got.Text, 10, 64); err != nil || left > most {
		t.Errorf("a look at a job of two processes leaves %s bytes, want at most %d", got.Text, most)
	}
}

// scenarioLook tells how many bytes a look at a job allocates.
func scenarioLook(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	f, err := s.Spawn(specOf("sh:sleep 100 & wait"))
	if err != nil {
		return outcome{}, err
	}
	for {
		if u, err := f.Usage(); err != nil || u.Procs > 1 {
			break // sh has started sleep
		}
	}
	const looks = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range looks {
		if _, err := f.Usage(); err != nil {
			return outcome{}, err
		}
	}
	runtime.ReadMemStats(&after)
	_, err = f.Close()
	return outcome{Text: strconv.FormatUint((after.TotalAlloc-before.TotalAlloc)/looks, 10)}, err
}
