// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"time"

	"github.com/execpoint/execpoint/lib/reason"
)

// phase is where an activation is. It only moves down this list.
type phase uint8

const (
	waiting   phase = iota // for the plan
	preparing              // sandbox and input
	running                // the job's main process lives
	finishing              // it has ended: what is left is killed, output goes back
	over                   // nothing more to be done
)

// duty is something the activation has to do because of what happened.
type duty uint8

const (
	dutyPrepare  duty = iota + 1 // make the sandbox, bring the input
	dutySpawn                    // start the job
	dutySuspend                  // stop the family
	dutyContinue                 // let it go on
	dutySignal                   // send the soft signal of the eviction's manner
	dutyDeadline                 // start the clock of the eviction's deadline
	dutyKill                     // kill the family
	dutyAbort                    // give up the transfer in progress
	dutyFinish                   // kill what is left, bring the output back if wanted
	dutyEnd                      // write the record, report it, clean up
)

// eviction is an order to leave.
type eviction struct {
	manner   string
	asked    string
	reason   string
	code     int
	subcode  int
	deadline time.Duration
	hard     bool
}

// life is the state of one activation: what was ordered and how far it is. It
// has no clock, process or file; it says what to do next.
type life struct {
	phase     phase
	suspended bool // the family is stopped, or is to be as soon as it runs
	evicted   *eviction
	hold      *Hold
	orphan    string // the plan's
}

// planned takes the plan.
func (l *life) planned(p *Plan) []duty {
	if l.phase != waiting {
		return nil // a starter runs one activation
	}
	l.phase, l.orphan = preparing, p.Orphan
	return []duty{dutyPrepare}
}

// prepared says that the input is there, or that it is not and why.
func (l *life) prepared(hold *Hold) []duty {
	if l.phase != preparing {
		return nil
	}
	if l.evicted == nil && hold == nil {
		return []duty{dutySpawn}
	}
	if l.evicted == nil {
		l.hold = hold
	}
	l.phase = over
	return []duty{dutyEnd}
}

// spawned says that the job runs, or that it could not be started and why.
func (l *life) spawned(hold *Hold) []duty {
	if l.phase != preparing {
		return nil
	}
	if hold != nil {
		l.phase, l.hold = over, hold
		return []duty{dutyEnd}
	}
	l.phase = running
	if l.suspended {
		return []duty{dutySuspend}
	}
	return nil
}

// exited says that the job's main process has ended.
func (l *life) exited() []duty {
	if l.phase != running {
		return nil
	}
	l.phase = finishing
	return []duty{dutyFinish}
}

// finished says that nothing of the job is left and its output has gone back,
// or has not and why.
func (l *life) finished(hold *Hold) []duty {
	if l.phase != finishing {
		return nil
	}
	if l.evicted == nil || !l.evicted.hard {
		l.hold = hold
	}
	l.phase = over
	return []duty{dutyEnd}
}

// ordered takes what the startd wants.
func (l *life) ordered(o Order) []duty {
	switch o.Op {
	case OpSuspend:
		return l.suspend()
	case OpContinue:
		return l.proceed()
	case OpSoftKill:
		return l.evict(eviction{manner: o.Manner, asked: o.Asked, reason: o.Reason, code: o.Code, subcode: o.Subcode, deadline: o.Deadline})
	case OpHardKill:
		return l.evict(eviction{manner: o.Manner, asked: o.Asked, reason: o.Reason, code: o.Code, subcode: o.Subcode, hard: true})
	}
	return nil
}

func (l *life) suspend() []duty {
	if l.suspended || l.phase > running || l.evicted != nil {
		return nil
	}
	l.suspended = true
	if l.phase != running {
		return nil
	}
	return []duty{dutySuspend}
}

func (l *life) proceed() []duty {
	if !l.suspended || l.phase > running {
		return nil
	}
	l.suspended = false
	if l.phase != running {
		return nil
	}
	return []duty{dutyContinue}
}

// evict takes an order to leave. The first one tells the reason; a later one
// can only be harder. A job that has ended by itself is not evicted any more,
// but a hard order still cuts its output short.
func (l *life) evict(e eviction) []duty {
	if l.phase == over || l.evicted != nil && (l.evicted.hard || !e.hard) {
		return nil
	}
	if l.evicted == nil {
		if l.phase == finishing && !e.hard {
			return nil
		}
		l.evicted = &e
	}
	l.evicted.hard = e.hard
	switch {
	case l.phase == waiting:
		l.phase = over
		return []duty{dutyEnd}
	case l.phase == preparing, l.phase == finishing:
		return []duty{dutyAbort}
	case e.hard:
		return []duty{dutyKill}
	}
	var duties []duty
	if l.suspended { // it could not obey
		l.suspended = false
		duties = append(duties, dutyContinue)
	}
	duties = append(duties, dutySignal)
	if e.deadline > 0 {
		duties = append(duties, dutyDeadline)
	}
	return duties
}

// overdue says that the deadline of a soft kill has passed.
func (l *life) overdue() []duty {
	if l.evicted == nil || l.phase != running {
		return nil
	}
	return l.evict(eviction{hard: true})
}

// orphaned says that the startd is gone.
func (l *life) orphaned() []duty {
	if l.orphan == OrphanStay && l.phase != waiting {
		return nil
	}
	return l.evict(eviction{
		manner: MannerVacate, asked: "starter", hard: true,
		reason: "The startd is gone", code: int(reason.StartdException),
	})
}

// stopped says that the starter itself was told to end.
func (l *life) stopped() []duty {
	return l.evict(eviction{
		manner: MannerVacate, asked: "starter", hard: true,
		reason: "The starter was told to end", code: int(reason.StartdShutdown),
	})
}
