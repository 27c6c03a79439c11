// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/rapidtest"
)

func TestDutyCycle(t *testing.T) {
	t.Parallel()
	var d dutyCycle
	d.configure(20*time.Minute, 4*time.Minute)
	at := time.Hour
	d.begin(at)
	want := func(whole, recent float64) {
		t.Helper()
		got := d.shares()
		if text := fmt.Sprintf("%.4f %.4f", got.Whole, got.Recent); text != fmt.Sprintf("%.4f %.4f", whole, recent) {
			t.Errorf("got %s, want %.4f %.4f", text, whole, recent)
		}
	}
	// spend works and then rests.
	spend := func(work, rest time.Duration) {
		at += work
		d.rest(at)
		at += rest
		d.woke(at)
	}
	want(0, 0)
	at += time.Minute
	d.rest(at)
	want(0, 0) // the first cycle is not over
	at += 3 * time.Minute
	d.woke(at)
	want(0.25, 0.25)
	spend(0, 16*time.Minute)
	want(0.05, 0.05)
	spend(0, 4*time.Minute) // the first minutes leave the window
	want(1.0/24, 0)
	for range 5 {
		spend(3*time.Minute, time.Minute)
	}
	want(16.0/44, 0.75)
	spend(0, 10*time.Hour) // as of a machine that slept
	want(16.0/644, 0)
	d.configure(time.Minute, time.Minute)
	spend(30*time.Second, 30*time.Second)
	want(16.5/645, 0.5)
}

func TestDutyWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines           string
		window, quantum time.Duration
	}{
		{"", 20 * time.Minute, 4 * time.Minute},
		{"STATISTICS_WINDOW_SECONDS = 600\nSTATISTICS_WINDOW_QUANTUM = 60", 10 * time.Minute, time.Minute},
		{"STATISTICS_WINDOW_SECONDS = 600\nDCSTATISTICS_WINDOW_SECONDS = 300\nSTATISTICS_WINDOW_QUANTUM_DC = 30", 5 * time.Minute, 30 * time.Second},
		{"STATISTICS_WINDOW_QUANTUM_DC = 30\nSTATISTICS_WINDOW_QUANTUM_DAEMONCORE = 10", 20 * time.Minute, 10 * time.Second},
	} {
		s, err := config.Parse("duty.conf", c.lines+"\n", config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		if window, quantum := dutyWindow(s); window != c.window || quantum != c.quantum {
			t.Errorf("%s: %v by %v, want %v by %v", strings.ReplaceAll(c.lines, "\n", "; "), window, quantum, c.window, c.quantum)
		}
	}
}

// Shares are shares, and the memory is bounded, whatever happens when.
func TestDutyCycleBounds(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(r *rapid.T) {
		var d dutyCycle
		d.configure(time.Minute, time.Second)
		at := time.Duration(0)
		d.begin(at)
		r.Repeat(map[string]func(*rapid.T){
			"work": func(r *rapid.T) { at += time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(r, "work")) },
			"rest": func(*rapid.T) { d.rest(at) },
			"wake": func(*rapid.T) { d.woke(at) },
			"configure": func(r *rapid.T) {
				d.configure(time.Duration(rapid.Int64Range(0, 1<<50).Draw(r, "window")), time.Second)
			},
			"": func(r *rapid.T) {
				got := d.shares()
				if !(got.Whole >= 0 && got.Whole <= 1 && got.Recent >= 0 && got.Recent <= 1) {
					r.Fatalf("%+v", got)
				}
				if len(d.recent) > mostQuanta {
					r.Fatalf("%d quanta", len(d.recent))
				}
			},
		})
	})
}
