// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// ticking is a clock that goes on by step at each look.
func ticking(step time.Duration) func() time.Duration {
	now := time.Duration(0)
	return func() time.Duration { now += step; return now }
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		measure func(func() time.Duration, time.Duration) (int64, error)
		want    int64
	}{
		// One batch, or one solution, in each millisecond of this clock.
		{AttrMips, Mips, 939},        // 1,000 × 1,000 rounds × 1.65 / 1757
		{AttrKFlops, KFlops, 686666}, // 1,000 × (2·100³/3 + 2·100²) operations
	} {
		got, err := tt.measure(ticking(time.Millisecond), 200*time.Millisecond)
		if err != nil || got != tt.want {
			t.Errorf("%s = %d, %v, want %d", tt.name, got, err, tt.want)
		}
		slow, err := tt.measure(ticking(time.Hour), time.Second)
		if err != nil || slow != 1 {
			t.Errorf("%s of a very slow machine: %d, %v", tt.name, slow, err)
		}
	}
}

// TestFastestPartCounts shows that work beside a measurement does not lower it.
func TestFastestPartCounts(t *testing.T) {
	t.Parallel()
	now, done := time.Duration(0), 0
	work := func() error {
		done++
		now += 10 * time.Millisecond
		if done < 60 {
			now += 30 * time.Millisecond // others are at work
		}
		return nil
	}
	got, err := fastest(func() time.Duration { return now }, 4*time.Second, work)
	if err != nil || math.Abs(got-100) > 1e-9 {
		t.Errorf("got %g in a second, %v", got, err)
	}
	if now > 5*time.Second {
		t.Errorf("took %v of 4s", now)
	}
}

func TestBadMachines(t *testing.T) {
	t.Parallel()
	bad := errors.New("wrong")
	calls := 0
	_, err := fastest(ticking(time.Millisecond), time.Second, func() error {
		if calls++; calls > 5 {
			return bad
		}
		return nil
	})
	if !errors.Is(err, bad) {
		t.Errorf("wrong results are counted: %v", err)
	}
	_, err = fastest(func() time.Duration { return time.Hour }, time.Second, func() error { return nil })
	if !errs.Is(err, errs.Broken) || !errors.Is(err, errNoTime) {
		t.Errorf("a clock that stands still: %v", err)
	}
}

func TestSystemIsChecked(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 17, order} {
		if err := newSystem(n).solve(); err != nil {
			t.Errorf("order %d: %v", n, err)
		}
	}
	s := newSystem(20)
	for j := range s.original {
		s.original[j][3] = 0 // a row of zeros has no solution
	}
	if err := s.solve(); !errs.Is(err, errs.Broken) {
		t.Errorf("a singular system is solved: %v", err)
	}
	s = newSystem(20)
	s.original[4][4] = math.NaN()
	if err := s.solve(); err == nil || !strings.Contains(err.Error(), "calculates wrongly") {
		t.Errorf("not a number is a solution: %v", err)
	}
}

func TestWeigh(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ old, new, want float64 }{
		{0, 1000, 1000}, {-1, 1000, 1000}, {1000, 1000, 1000}, {1000, 2000, 1250}, {1250, 2000, 1437.5},
	} {
		if got := Weigh(tt.old, tt.new); got != tt.want {
			t.Errorf("Weigh(%g, %g) = %g, want %g", tt.old, tt.new, got, tt.want)
		}
	}
}

func BenchmarkWhole(b *testing.B) {
	var w whole
	b.ReportAllocs()
	for b.Loop() {
		if err := w.run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSystem(b *testing.B) {
	s := newSystem(order)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.solve(); err != nil {
			b.Fatal(err)
		}
	}
}
