// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// A job whose program has ended by itself has done its work: to throw its output
// away would make it run again. So an order to leave at once, a fast shutdown for
// one, lets the output go on as long as it moves. It is cut off when nothing moved
// for half of KILLING_TIMEOUT, and when the limit of the order is over. The startd
// kills a starter that did not move any output for all of KILLING_TIMEOUT; the
// other half of it is there to tell the shadow that the rest does not come.

// lookEvery is the longest time between two looks at the output.
const lookEvery = 5 * time.Second

// outputFlow is what is seen of output on its way.
type outputFlow struct {
	sent  atomic.Int64 // bytes of files, counted by whoever sends them
	seen  int64        // of them, at the last look
	looks *time.Ticker // nil as long as the job runs
	moved time.Time    // when more of them were seen last
	until time.Time    // when the output is cut off though it moves, zero for never
}

// add counts output.
func (f *outputFlow) add(bytes int64) { f.sent.Add(bytes) }

func (f *outputFlow) stop() {
	if f.looks != nil {
		f.looks.Stop()
		f.looks = nil
	}
}

// outputPause is how long output that may go on may stand still.
func (a *activation) outputPause() time.Duration {
	return a.plan.Settings.Killing / 2
}

// outputLimit is how long output may go on when the starter has to leave because
// its startd is gone, or because it was itself told to end: as long as condor_master
// would let a startd live.
func (a *activation) outputLimit() time.Duration {
	limit := a.plan.Settings.FastShutdown - a.plan.Settings.Killing
	return max(limit, a.outputPause())
}

// watchOutput begins to look whether output moves: the job's program has ended.
func (a *activation) watchOutput() {
	a.flow.stop()
	a.flow.looks = time.NewTicker(min(a.outputPause()/3, lookEvery))
	a.flow.moved = time.Now()
}

// lookAtOutput tells the startd that output moves, and cuts off what may go on
// only as long as it does.
func (a *activation) lookAtOutput() []duty {
	f := &a.flow
	if a.life.phase != finishing {
		f.stop()
		return nil
	}
	now := time.Now()
	if n := f.sent.Load(); n != f.seen {
		f.seen, f.moved = n, now
		if a.life.evicted == nil {
			a.say(protocol.OutputMoved{Bytes: n})
		}
	}
	if a.life.spared == nil || now.Before(f.until) && now.Sub(f.moved) < a.outputPause() {
		return nil
	}
	return a.life.cut()
}

// spareOutput bounds how long output may go on. Of several orders the one counts
// whose limit ends first.
func (a *activation) spareOutput() {
	f := &a.flow
	limit := a.life.spared.limit
	if limit <= 0 {
		limit = a.outputLimit()
	}
	until := time.Now().Add(limit)
	if f.until.IsZero() {
		f.moved = time.Now() // it has a whole pause to begin
	}
	if f.until.IsZero() || until.Before(f.until) {
		f.until = until
	}
	if a.log != nil {
		a.log.Info("the job has ended by itself: its output goes on as long as it moves", "pause", a.outputPause(), "until", f.until)
	}
}
