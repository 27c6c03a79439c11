// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/clock"
)

// jumpLeast is how far the wall clock must be off before it counts as set.
// Less is drift, which adds up until it counts.
const jumpLeast = 5 * time.Second

// jump notices that the wall clock was set, forwards or backwards. Leases,
// retirement and timeouts do not: they count since boot, with the time that
// the machine slept. But policies compare CurrentTime with published times,
// and a clock that is set would make every state, activity and job older or
// younger by as much, evict jobs that just began and keep others for ever; so
// those times are set along. HTCondor leaves them.
func (e *Engine) jump(now clock.Instant) {
	d := now.Jump(e.clock)
	if d > -jumpLeast && d < jumpLeast {
		return
	}
	e.clock = now
	e.ads.Jump(d)
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
	move(&e.drain.started)
	move(&e.drain.stopped)
	move(&e.drain.deadline)
	move(&e.bench.last)
	for _, sl := range e.slots.all {
		move(&sl.entered.Wall)
		move(&sl.began.Wall)
		move(&sl.last.at.Wall)
		if sl.cur != nil {
			move(&sl.cur.Since.Wall)
		}
		if sl.act != nil {
			move(&sl.act.Began.Wall)
			sl.ad.SetActivation(sl.cur, &sl.act.Activation, now)
			if move(&sl.act.checkpointed.Wall); sl.act.mayCheckpoint() {
				sl.ad.SetCheckpoint(sl.act.checkpointed.Wall)
			}
		}
		e.emit(AdChanged{Slot: sl.s.ID})
	}
	e.showDrain()
}
