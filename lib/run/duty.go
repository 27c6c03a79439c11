// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/pool/ads"
)

// dutyCycle measures which share of the time the goroutine that owns the engine
// works, as DaemonCore measures its loop: a cycle lasts from one awakening to the
// next, and what of it is not spent in waiting for the next thing to do is work.
// Everything that changes a slot goes through that goroutine, so a share near 1
// says that the daemon does not keep up. Handshakes and transfers are done beside
// it and do not count.
//
// The cycle under way does not count before it is over. Only the owner says when
// it rests and wakes; anybody may look.
type dutyCycle struct {
	mu      sync.Mutex
	quanta  int           // in the window
	quantum time.Duration // by which the window moves on

	cycle time.Duration // boot time when the present cycle began
	rests time.Duration // boot time when the present rest began
	tick  time.Duration // boot time when the newest quantum began

	all    effort
	recent []effort // of each quantum, the newest last
}

// effort is how long cycles lasted, and how much of it was rest.
type effort struct{ rested, lasted time.Duration }

// duty is the share that was no rest. Sums of a window may come out a little
// less than nothing.
func (e effort) duty() float64 {
	if e.lasted <= 0 {
		return 0
	}
	return max(0, 1-e.rested.Seconds()/e.lasted.Seconds())
}

// dutyWindow reads how far back Recent goes and by which steps: of each the
// first knob that is set counts.
func dutyWindow(s *config.Snapshot) (window, quantum time.Duration) {
	first := func(otherwise time.Duration, knobs ...string) time.Duration {
		for _, knob := range knobs {
			if d, err := s.Duration(knob); err == nil && d > 0 {
				return d
			}
		}
		return otherwise
	}
	return first(20*time.Minute, "DCSTATISTICS_WINDOW_SECONDS", "STATISTICS_WINDOW_SECONDS"),
		first(4*time.Minute, "STATISTICS_WINDOW_QUANTUM_DAEMONCORE", "STATISTICS_WINDOW_QUANTUM_DC", "STATISTICS_WINDOW_QUANTUM")
}

// mostQuanta bounds what a configuration can have remembered.
const mostQuanta = 10_000

// configure sets the window. What of the past is in the new one stays.
func (d *dutyCycle) configure(window, quantum time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.quantum = max(quantum, time.Second)
	d.quanta = int(min(max((window+d.quantum-1)/d.quantum, 1), mostQuanta))
	d.trim()
}

func (d *dutyCycle) trim() {
	if over := len(d.recent) - d.quanta; over > 0 {
		d.recent = append(d.recent[:0], d.recent[over:]...)
	}
}

// begin begins the first cycle.
func (d *dutyCycle) begin(at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cycle, d.rests, d.tick = at, at, at
}

// rest notes that the owner waits from now on.
func (d *dutyCycle) rest(at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rests = at
}

// woke ends a cycle.
func (d *dutyCycle) woke(at time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	over := effort{rested: at - d.rests, lasted: at - d.cycle}
	d.cycle, d.rests = at, at
	d.move(at)
	d.all.add(over)
	d.recent[len(d.recent)-1].add(over)
}

func (e *effort) add(o effort) {
	e.rested += o.rested
	e.lasted += o.lasted
}

// move moves the window on to an instant.
func (d *dutyCycle) move(at time.Duration) {
	if passed := (at - d.tick) / d.quantum; passed > 0 {
		d.tick += passed * d.quantum
		for range min(int64(passed), int64(d.quanta)) {
			d.recent = append(d.recent, effort{})
		}
	}
	if len(d.recent) == 0 {
		d.recent = append(d.recent, effort{})
	}
	d.trim()
}

// shares are the shares since the beginning and during the window.
func (d *dutyCycle) shares() ads.DutyCycle {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.move(d.cycle)
	var recent effort
	for _, e := range d.recent {
		recent.add(e)
	}
	return ads.DutyCycle{Whole: d.all.duty(), Recent: recent.duty()}
}
