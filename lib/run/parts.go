// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/history"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/slot"
)

// The parts of a node. But for mail, and for the settings of starters, they belong to
// its goroutine.

// member is the pool's side of a run.
type member struct {
	pool    *pool.Pool // nil without one
	address string     // ours in the pool
}

// starterSide is the starters, and how they are started.
type starterSide struct {
	live      map[claim.ActivationID]*activation
	launcher  Launcher
	own       processes                       // for the launcher
	settings  atomic.Pointer[starterSettings] // of the starters that begin now
	launching chan struct{}                   // one for each starter that is started and given its plan
	abilities abilities
	users     triedUsers
	gids      *gids
	tracking  tracking // as the log was told last
}

// division is how the machine was divided. The ledger is the engine's; here it is only
// read.
type division struct {
	ledger    *slot.Ledger
	found     []slot.Inventory
	resources []slot.Resource
	problems  []slot.Problem
	types     map[int]int // of slots, see slotTypes
}

// faults is what keeps the machine from running jobs.
type faults struct {
	room     room                      // descriptors
	tests    map[string]*executeTest   // of EXECUTE directories, by path
	failedAs map[string]*host.Identity // whose job last failed in one
}

// mail is how the goroutines around a node reach it.
type mail struct {
	inbox  chan func(now clock.Instant) // run by the owner
	done   chan struct{}                // closed when the owner is gone
	around sync.WaitGroup               // goroutines around it
}

// post hands f to the owner; it is dropped when the owner is gone.
func (m *mail) post(f func(now clock.Instant)) {
	select {
	case m.inbox <- f:
	case <-m.done:
	}
}

// lasting is a context that ends with the owner.
func (m *mail) lasting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-m.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// wakes is when the owner wakes, and how busy it is.
type wakes struct {
	poll     time.Duration // POLLING_INTERVAL
	wakeAt   clock.Instant // of the engine
	looked   clock.Instant // when the machine was last read
	lookAt   clock.Instant // when it is to be read next
	waitsAt  clock.Instant // when it is looked next whether jobs wait long
	timer    *time.Timer
	sampling bool          // the machine is being read
	late     clock.Instant // when the engine waits no longer for what is being read
	duty     *dutyCycle
}

// at sets the timer for d from now, when the machine is read at the latest at sample.
func (w *wakes) at(now clock.Instant, sample, d time.Duration) {
	w.lookAt = now.Add(sample)
	w.timer.Reset(max(d, 0))
}

// departure is how a run ends.
type departure struct {
	interrupts int
	leaves     bool   // the end was ordered, which was not told yet
	complete   bool   // the engine has shut down
	end        string // why the engine ends the EP, "" if it does not
	restart    bool   // the EP is to be started again when it has ended
}

// begun reports whether the end was ordered.
func (d *departure) begun() bool { return d.interrupts > 0 || d.end != "" }

// reloads is a configuration that is read again.
type reloads struct {
	under, again bool // one is being read, and another is to be
}

// keeping is what is kept of jobs and claims in files.
type keeping struct {
	records chan record   // to the goroutine that keeps files of what was
	written chan struct{} // closed when that is through
	to      history.Options

	claimFileFailed bool // the last claim id file could not be written, which was told
}

// control is what the control socket asks.
type control struct {
	started time.Time
	reply   *ep.Reply // to the request under way
}

// tally is what a person was told last of how many jobs do what.
type tally struct {
	last local.Counts
	told time.Time
}

// due takes counts that are to be told now, which they are when they have changed, and
// not too often; the last ones in any case.
func (t *tally) due(now time.Time, c local.Counts, last bool) bool {
	if !last && (now.Sub(t.told) < countsEvery || c == t.last) {
		return false
	}
	t.last, t.told = c, now
	return true
}
