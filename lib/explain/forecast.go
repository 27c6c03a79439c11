// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// horizon is how far ahead anything is foretold.
const horizon = 366 * 24 * time.Hour

// maxTurns bounds the moments that are tried for one expression.
const maxTurns = 128

// turns are the times from now at which a comparison may come out otherwise,
// if nothing happens but that time goes by.
func (f *finder) turns(p place, x classad.Syntax) []time.Duration {
	var out []time.Duration
	add := func(seconds float64) {
		if seconds >= 0 && seconds < horizon.Seconds() {
			s := time.Duration(math.Floor(seconds)) * time.Second
			out = append(out, s, s+time.Second, s+2*time.Second)
		}
	}
	diff := func(d time.Duration) (float64, bool) {
		a, okA := f.w.value(x.Args[0], p.s, supposed{after: d}).AsNumber()
		b, okB := f.w.value(x.Args[1], p.s, supposed{after: d}).AsNumber()
		return a - b, okA && okB
	}
	d0, ok0 := diff(0)
	d1, ok1 := diff(time.Second)
	if ok0 && ok1 && d1 != d0 && math.Abs(d1-d0) < 1e6 {
		add(-d0 / (d1 - d0))
	}
	for i, a := range x.Args {
		n := a.Syntax()
		if n.Kind != classad.SyntaxName || !isClock(n.Word) {
			continue
		}
		zone := f.w.location
		if zone == nil {
			zone = time.UTC
		}
		now := f.w.now.In(zone)
		if strings.EqualFold(n.Word, clockDay) {
			for day := 1; day <= 7; day++ {
				add(time.Date(now.Year(), now.Month(), now.Day()+day, 0, 0, 0, 0, zone).Sub(now).Seconds())
			}
			continue
		}
		limit, ok := f.w.value(x.Args[1-i], p.s, supposed{}).AsNumber()
		if !ok || limit < -1 || limit > 24*60 {
			continue
		}
		for _, minute := range []int{0, int(limit), int(limit) + 1} {
			for day := range 2 {
				add(time.Date(now.Year(), now.Month(), now.Day()+day, 0, minute, 0, 0, zone).Sub(now).Seconds())
			}
		}
	}
	return out
}

// forecast is the first moment of those given at which the expression comes to
// what is wanted, nil if there is none.
func (f *finder) forecast(e *classad.Expr, s side, want goal, at []time.Duration, reads []read) *Forecast {
	at = slices.Clone(at)
	slices.Sort(at)
	at = slices.Compact(at)
	for _, d := range at[:min(len(at), maxTurns)] {
		if d > 0 && is(f.w.value(e, s, supposed{after: d}), want) {
			return &Forecast{Seconds: int64(d / time.Second), Provided: provided(reads)}
		}
	}
	return nil
}

// provided says what must go on as it is for a forecast to come true.
func provided(reads []read) string {
	var typing, load bool
	for _, r := range reads {
		typing = typing || isGrowing(r.name)
		load = load || strings.HasSuffix(strings.ToLower(r.name), "loadavg") || strings.HasPrefix(strings.ToLower(r.name), "cpubusy")
	}
	var words []string
	if typing {
		words = append(words, "nobody types")
	}
	if load {
		words = append(words, "the load stays as it is")
	}
	return strings.Join(words, " and ")
}
