// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package benchmark measures how fast one core is, in the two figures that
// HTCondor advertises: Mips for whole numbers and KFlops for real ones. It owns
// the two workloads and how a figure becomes one of several runs.
//
// The package must never take longer than it was given, count work whose result
// is wrong, or look at a clock of its own.
//
//	begin := time.Now()
//	mips, err := benchmark.Mips(func() time.Duration { return time.Since(begin) }, benchmark.Span)
package benchmark

import (
	"errors"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// The attributes of the two figures, as HTCondor spells them.
const (
	AttrMips   = "Mips"
	AttrKFlops = "KFlops"
)

// Span is how long one measurement takes.
const Span = time.Second

// slices is how many parts a measurement has. Whatever else the machine does
// makes a part slower and none faster, so the fastest one counts.
const slices = 10

// Mips returns the speed in whole numbers, of a VAX 11/780 being 1, as
// measured for span. elapsed tells the time since some fixed instant.
func Mips(elapsed func() time.Duration, span time.Duration) (int64, error) {
	// A VAX 11/780 made 1757 rounds of Dhrystone in a second.
	const vax = 1757
	var w whole
	rate, err := fastest(elapsed, span, w.run)
	if err != nil {
		return 0, errs.E("benchmark.Mips", errs.KindOf(err), "", err)
	}
	return figure(rate * batch * perRound / vax), nil
}

// KFlops returns the speed in thousands of operations on double precision
// numbers in a second, as measured for span.
func KFlops(elapsed func() time.Duration, span time.Duration) (int64, error) {
	s := newSystem(order)
	rate, err := fastest(elapsed, span, s.solve)
	if err != nil {
		return 0, errs.E("benchmark.KFlops", errs.KindOf(err), "", err)
	}
	return figure(rate * s.operations() / 1000), nil
}

// figure is at least 1: a pool takes 0 for not measured.
func figure(f float64) int64 { return max(1, int64(f)) }

var errNoTime = errors.New("no time passes on the clock")

// fastest repeats work for span and returns how often in a second it was done
// in the fastest part.
func fastest(elapsed func() time.Duration, span time.Duration, work func() error) (float64, error) {
	// A clock that stands still must not be waited for.
	const most = 10_000_000
	if err := work(); err != nil { // with cold caches; not counted
		return 0, err
	}
	best := 0.0
	begin := elapsed()
	from, count := begin, 0
	for range most {
		if err := work(); err != nil {
			return 0, err
		}
		count++
		now := elapsed()
		if took := now - from; took >= span/slices && took > 0 {
			best = max(best, float64(count)/took.Seconds())
			from, count = now, 0
		}
		if now-begin >= span && best > 0 {
			return best, nil
		}
	}
	return 0, errs.E("", errs.Broken, "", errNoTime)
}

// Weigh returns the figure to advertise when new was measured and old is what
// was advertised before: three parts of the old and one of the new, so that one
// disturbed run does little harm. Without an old one, 0, it is the new one.
func Weigh(old, new float64) float64 {
	if old <= 0 {
		return new
	}
	return (3*old + new) / 4
}
