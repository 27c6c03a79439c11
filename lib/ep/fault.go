// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Fault is a kind of failure that is the machine's own: whatever job comes
// next would meet it too.
type Fault uint8

// The faults.
const (
	// FaultExecute: no sandbox can be made in an EXECUTE directory. A test of
	// the directory tells when that is over.
	FaultExecute Fault = iota + 1
	// FaultStarter: a starter, or the program of a job, cannot be started for
	// want of processes, memory or descriptors. Only another try tells.
	FaultStarter
	// FaultDescriptors: this program has too few file descriptors left for
	// another starter.
	FaultDescriptors
)

var faultNames = [...]string{FaultExecute: "EXECUTE", FaultStarter: "starter", FaultDescriptors: "descriptors"}

// String returns a word for logs.
func (f Fault) String() string {
	if f > 0 && int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// MachineFault is one failure of the machine, in the words of who met it.
type MachineFault struct {
	Kind   Fault
	Reason string
	// Doubtful says that the job may have caused the failure itself, as one
	// whose input is larger than the disk. The first such failure refuses no
	// job unless a test confirms it; the next one in a row does.
	Doubtful bool
}

// TestExecute asks whether sandboxes can be made in an EXECUTE directory.
// ExecuteTested answers.
type TestExecute struct{ Place string }

// ExecuteTested answers TestExecute: Err is nil if the directory can be used.
type ExecuteTested struct {
	Place string
	Err   error
}

// FaultChanged says that the machine refuses jobs because of a fault, that it
// goes on to do so for another reason or for longer, or that it takes jobs
// again.
type FaultChanged struct {
	Kind     Fault
	Place    string // the EXECUTE directory of a FaultExecute
	Reason   string
	Refusing bool
	Since    clock.Instant
	Row      int           // failures in a row
	Pause    time.Duration // until the next test, or the next try; 0 if not Refusing
}

func (ExecuteTested) event() {}
func (TestExecute) effect()  {}
func (FaultChanged) effect() {}

// The pause after a failure of the machine doubles from the one to the next in
// a row. A failure that comes long after the last one begins a new row.
const (
	faultFirst  = 5 * time.Second
	faultMost   = 5 * time.Minute
	faultForget = 2 * faultMost
)

// condition is what is known of one fault. It is kept while the machine refuses
// jobs, and after that until a program ran: a fault that comes back before
// goes on with the row.
type condition struct {
	kind     Fault
	place    string
	reason   string
	row      int
	refusing bool
	testing  bool          // TestExecute is not answered yet
	since    clock.Instant // refusing
	pause    time.Duration
	until    time.Duration // boot time of the next test or try, while refusing
	last     time.Duration // boot time of the last failure, or of the end of refusing
}

// concerns reports whether the condition keeps jobs from a slot whose sandboxes
// are made in place.
func (c *condition) concerns(place string) bool { return c.kind != FaultExecute || c.place == place }

// placeOf is the EXECUTE directory of a slot.
func (e *Engine) placeOf(sl *slotState) string {
	if e.cfg.Place == nil {
		return ""
	}
	return e.cfg.Place(sl.s.ID)
}

// refusing returns the condition that keeps a slot from taking jobs, nil if there
// is none.
func (e *Engine) refusing(sl *slotState) *condition {
	if len(e.faults) == 0 {
		return nil
	}
	place := e.placeOf(sl)
	for _, c := range e.faults {
		if c.refusing && c.concerns(place) {
			return c
		}
	}
	return nil
}

// refusedFor is the refusal of a request because of a condition.
func (e *Engine) refusedFor(op string, sl *slotState, c *condition) error {
	return errs.E(op, errs.Transient, sl.name, fmt.Errorf("the machine takes no jobs: %s", c.reason))
}

// failed takes a failure of the machine that was met in a slot.
func (e *Engine) failed(sl *slotState, f MachineFault) {
	place := ""
	if f.Kind == FaultExecute {
		place = e.placeOf(sl)
	}
	c := e.condition(f.Kind, place)
	if c.refusing {
		return // a starter that was on its way: its failure says nothing new
	}
	if e.now.Boot-c.last >= faultForget {
		c.row = 0
	}
	c.row++
	c.last, c.reason = e.now.Boot, f.Reason
	if f.Doubtful && c.row == 1 {
		if c.kind == FaultExecute {
			e.testExecute(c)
		}
		return
	}
	e.refuseJobs(c)
}

// condition finds what is known of a fault, or begins to know of it.
func (e *Engine) condition(kind Fault, place string) *condition {
	for _, c := range e.faults {
		if c.kind == kind && c.place == place {
			return c
		}
	}
	c := &condition{kind: kind, place: place, last: e.now.Boot}
	e.faults = append(e.faults, c)
	return c
}

// refuseJobs begins a pause, or a longer one.
func (e *Engine) refuseJobs(c *condition) {
	if !c.refusing {
		c.since = e.now
	}
	c.refusing, c.last = true, e.now.Boot
	c.pause = e.faultPause(c.row)
	c.until = e.now.Boot + c.pause
	e.schedule.setTimer(c.until)
	e.tellFault(c)
}

// faultPause is the pause after so many failures in a row. Machines that share
// a broken file server do not all come back at once: each takes up to a quarter
// off.
func (e *Engine) faultPause(row int) time.Duration {
	d := min(faultFirst<<min(row-1, 16), faultMost)
	if e.cfg.Rand != nil {
		d -= time.Duration(e.cfg.Rand() * float64(d/4))
	}
	return d
}

func (e *Engine) testExecute(c *condition) {
	if !c.testing {
		c.testing = true
		e.emit(TestExecute{Place: c.place})
	}
}

// executeTested takes what a test of a directory found.
func (e *Engine) executeTested(ev ExecuteTested) {
	i := slices.IndexFunc(e.faults, func(c *condition) bool { return c.kind == FaultExecute && c.place == ev.Place && c.testing })
	if i < 0 {
		return
	}
	c := e.faults[i]
	c.testing = false
	switch {
	case ev.Err == nil && c.refusing:
		e.takeJobs(c)
	case ev.Err != nil:
		if c.refusing {
			c.row++
		}
		c.reason = ev.Err.Error()
		e.refuseJobs(c)
	}
}

// takeJobs ends the refusal.
func (e *Engine) takeJobs(c *condition) {
	c.refusing, c.pause, c.until, c.last = false, 0, 0, e.now.Boot
	e.tellFault(c)
}

// tellFault shows in all ads whether jobs are refused, and says so.
func (e *Engine) tellFault(c *condition) {
	e.emit(FaultChanged{
		Kind: c.kind, Place: c.place, Reason: c.reason, Refusing: c.refusing, Since: c.since, Row: c.row, Pause: c.pause,
	})
	for _, sl := range e.slots.all {
		if !c.concerns(e.placeOf(sl)) {
			continue
		}
		e.showFault(sl)
		e.emit(AdChanged{Slot: sl.s.ID})
		e.emit(UpdateDue{Slot: sl.s.ID})
		if c.refusing && sl.pair == policy.MatchedIdle {
			e.moveOn(sl, policy.OwnerIdle, policy.Commanded, policy.ByClaim, "the machine takes no jobs: "+c.reason)
		}
	}
}

// showFault shows in the ad of a slot whether and why it takes no job.
func (e *Engine) showFault(sl *slotState) {
	if c := e.refusing(sl); c != nil {
		sl.ad.RefuseStart(c.reason, c.since.Wall, e.at(c.until).Wall)
	} else {
		sl.ad.RefuseStart("", time.Time{}, time.Time{})
	}
}

// dueFaults tests what may have been mended, or lets the next job try it.
func (e *Engine) dueFaults() {
	for _, c := range e.faults {
		switch {
		case !c.refusing || c.testing:
		case e.now.Boot < c.until:
			e.schedule.setTimer(c.until)
		case c.kind == FaultExecute:
			e.testExecute(c)
		default:
			e.takeJobs(c)
		}
	}
}

// programRan forgets the faults that a slot would have met: its sandbox was
// made and its program started after the last failure.
func (e *Engine) programRan(sl *slotState) {
	if len(e.faults) == 0 {
		return
	}
	place := e.placeOf(sl)
	e.faults = slices.DeleteFunc(e.faults, func(c *condition) bool {
		return c.concerns(place) && !c.refusing && !c.testing && sl.act.Began.Boot >= c.last
	})
}

// granted forgets that descriptors were short: they were counted for the
// activation that begins, and there were enough.
func (e *Engine) granted() {
	e.faults = slices.DeleteFunc(e.faults, func(c *condition) bool { return c.kind == FaultDescriptors && !c.refusing })
}

// Refusal says that a slot takes no job because the machine is not sound.
type Refusal struct {
	Kind   Fault
	Reason string
	Since  clock.Instant
	Until  clock.Instant // the next test, or the next try
}

// Refusal returns why a slot takes no job although its policy might let it in;
// false if nothing is wrong with the machine.
func (e *Engine) Refusal(id slot.ID) (Refusal, bool) {
	sl, ok := e.slots.byID[id]
	if !ok {
		return Refusal{}, false
	}
	c := e.refusing(sl)
	if c == nil {
		return Refusal{}, false
	}
	return Refusal{Kind: c.kind, Reason: c.reason, Since: c.since, Until: e.at(c.until)}, true
}
