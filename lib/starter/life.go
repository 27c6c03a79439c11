// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"time"

	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// phase is where an activation is. It only moves down this list.
type phase uint8

const (
	waiting   phase = iota // for the plan
	preparing              // sandbox and input
	running                // the job's main process lives
	finishing              // it has ended: what is left is killed, output goes back
	telling                // the shadow is told how it went; without one there is nobody to tell
	over                   // nothing more to be done
)

// duty is something the activation has to do because of what happened.
type duty uint8

const (
	dutyPrepare       duty = iota + 1 // make the sandbox, bring the input
	dutySpawn                         // start the job
	dutySuspend                       // stop the family
	dutyContinue                      // let it go on
	dutySignal                        // send the soft signal of the eviction's manner
	dutyDeadline                      // start the clock of the eviction's deadline
	dutyKill                          // kill the family
	dutyAbort                         // give up the transfer in progress
	dutyFinish                        // kill what is left, bring the output back if wanted
	dutyEnd                           // write the record, report it, clean up
	dutyOutput                        // bring the output back: once more, for the shadow was away
	dutyTell                          // tell the shadow how the job ended
	dutyHold                          // tell the shadow at once that the job is to be held
	dutyLease                         // the shadow is away: start the clock of the job's lease
	dutyRejoin                        // the shadow is back: it gets to know the starter again
	dutyBoundFarewell                 // the shadow has a moment left to hear how the job ended
	dutySpare                         // start the clock of output that may go on after an order to leave at once
)

// eviction is an order to leave.
type eviction struct {
	manner   protocol.Manner
	said     protocol.Manner // as the order had it
	asked    string
	reason   string
	code     int
	subcode  int
	deadline time.Duration
	hard     bool
	final    bool // the job will not come back, and its output is wanted
	// limit is how long the output of a job that has ended by itself may go on;
	// 0 leaves it to the starter.
	limit time.Duration
}

// life is the state of one activation: what was ordered and how far it is. It
// has no clock, process or file; it says what to do next.
type life struct {
	phase     phase
	suspended bool // the family is stopped, or is to be as soon as it runs
	evicted   *eviction
	hold      *protocol.Hold
	orphan    string // the plan's

	remote bool // a shadow is to be told
	ran    bool // the job's main process was started
	apart  bool // the conversation with the shadow is broken
	leased bool // while it is, the clock of the job's lease runs
	held   bool // the shadow knows that the job is to be held: it hears no more
	lost   bool // the shadow did not come back in time
	owed   duty // what could not be done while the shadow was away; 0 is nothing
	urgent bool // it has to leave at once, though the job had ended by itself
	// spared is an order to leave at once that came when the job had ended by
	// itself: its output goes on as long as it moves, until cut.
	spared *eviction
}

// planned takes the plan.
func (l *life) planned(p *protocol.Plan) []duty {
	if l.phase != waiting {
		return nil // a starter runs one activation
	}
	l.phase, l.orphan, l.remote = preparing, p.Orphan, p.Shadow != nil
	return []duty{dutyPrepare}
}

// prepared says that the input is there, or that it is not and why.
func (l *life) prepared(hold *protocol.Hold) []duty {
	if l.phase != preparing {
		return nil
	}
	if l.evicted == nil && hold == nil {
		return []duty{dutySpawn}
	}
	if l.evicted == nil {
		l.hold = hold
	}
	return l.conclude()
}

// conclude ends an activation of which nothing is left.
func (l *life) conclude() []duty {
	if l.remote && !l.held {
		l.phase = telling
		if l.spared != nil && l.evicted == nil {
			return append([]duty{dutyTell}, l.boundFarewell()...)
		}
		return []duty{dutyTell}
	}
	l.phase = over
	return []duty{dutyEnd}
}

// spawned says that the job runs, or that it could not be started and why.
func (l *life) spawned(hold *protocol.Hold) []duty {
	if l.phase != preparing {
		return nil
	}
	if hold != nil {
		l.hold = hold
		return l.conclude()
	}
	l.phase, l.ran = running, true
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
func (l *life) finished(hold *protocol.Hold) []duty {
	if l.phase != finishing {
		return nil
	}
	if (l.evicted == nil || !l.evicted.hard) && l.hold == nil {
		l.hold = hold
	}
	return l.conclude()
}

// ordered takes what the startd wants.
func (l *life) ordered(o protocol.Order) []duty {
	switch o := o.(type) {
	case protocol.Suspend:
		return l.suspend()
	case protocol.Continue:
		return l.proceed()
	case protocol.SoftKill:
		return l.evict(eviction{manner: o.Manner, said: o.Manner, asked: o.Asked, reason: o.Reason, code: o.Code, subcode: o.Subcode, deadline: o.Deadline, final: o.Final})
	case protocol.HardKill:
		return l.evict(eviction{manner: o.Manner, said: o.Manner, asked: o.Asked, reason: o.Reason, code: o.Code, subcode: o.Subcode, hard: true, limit: o.OutputLimit})
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
// can only be harder. A job that has ended by itself is not evicted any more:
// its output goes on, after a hard order only for as long as it moves.
func (l *life) evict(e eviction) []duty {
	if l.phase == over || l.evicted != nil && (l.evicted.hard || !e.hard) {
		return nil
	}
	if l.evicted == nil && l.phase >= finishing && l.owed == 0 && !l.lost {
		switch {
		case !e.hard:
			return nil
		case l.phase == telling:
			return l.boundFarewell()
		}
		e.manner = e.mannerOf()
		l.spared = &e
		return []duty{dutySpare}
	}
	return l.leave(e)
}

// cut ends the output of a job that was spared: it does not move, or its time is
// over.
func (l *life) cut() []duty {
	if l.spared == nil || l.evicted != nil || l.phase != finishing {
		return nil
	}
	return l.leave(*l.spared)
}

// leave carries out an order to leave.
func (l *life) leave(e eviction) []duty {
	if l.evicted == nil {
		if l.phase >= finishing && !e.hard {
			return nil
		}
		e.manner = e.mannerOf()
		l.evicted = &e
	}
	l.evicted.hard = e.hard
	var duties []duty
	// What the user asked for comes from the shadow itself.
	if l.remote && e.manner == protocol.MannerHold && e.holds() && e.code != int(reason.UserRequest) && !l.held && l.phase != telling {
		l.hold = &protocol.Hold{Code: e.code, Subcode: e.subcode, Reason: e.reason}
		if !l.apart { // else it hears of it when it is back
			l.held = true
			duties = append(duties, dutyHold)
		}
	}
	switch {
	case l.phase == waiting:
		l.phase = over
		return append(duties, dutyEnd)
	case l.owed != 0: // nobody is there who would take it
		l.phase, l.owed = over, 0
		return append(duties, dutyEnd)
	case l.phase == telling: // the last word is on its way
		return l.boundFarewell()
	case l.phase == preparing, l.phase == finishing:
		return append(duties, dutyAbort)
	case e.hard:
		return append(duties, dutyKill)
	}
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

// boundFarewell bounds how long the last word may take.
func (l *life) boundFarewell() []duty {
	if l.urgent {
		return nil
	}
	l.urgent = true
	return []duty{dutyBoundFarewell}
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
	if l.orphan == protocol.OrphanStay && l.phase != waiting {
		return nil
	}
	return l.evict(eviction{
		manner: protocol.MannerVacate, asked: "starter", hard: true,
		reason: "The startd is gone", code: int(reason.StartdException),
	})
}

// stopped says that the starter itself was told to end.
func (l *life) stopped() []duty {
	return l.evict(eviction{
		manner: protocol.MannerVacate, asked: "starter", hard: true,
		reason: "The starter was told to end", code: int(reason.StartdShutdown),
	})
}

// starved says that the kernel killed the job, or a process of it, for memory, and why
// the job is held for that; with nil it leaves as e says. A job that has to leave
// anyway, or that has ended by itself and is to be held, does that.
func (l *life) starved(hold *protocol.Hold, e eviction) []duty {
	if l.phase != finishing || l.evicted != nil || l.hold != nil {
		return nil
	}
	if hold == nil {
		l.evicted = &e
		return l.conclude()
	}
	l.hold = hold
	if l.remote && !l.apart { // else it hears of it when it is back
		l.held = true
		return append([]duty{dutyHold}, l.conclude()...)
	}
	return l.conclude()
}

// again says that what was left of the job is gone, its state is saved and it
// is to be started once more.
func (l *life) again() []duty {
	if l.phase != finishing {
		return nil
	}
	if l.evicted == nil {
		l.evicted = l.spared // its state is saved, and it has to leave
	}
	if l.evicted != nil || l.hold != nil {
		return l.conclude()
	}
	l.phase = preparing
	return []duty{dutySpawn}
}

// toldShadow says that the shadow knows how it went.
func (l *life) toldShadow() []duty {
	if l.phase != telling {
		return nil
	}
	l.phase = over
	return []duty{dutyEnd}
}

// connection says whether the shadow can be told anything.
type connection bool

const (
	away connection = false
	back connection = true
)

// unheard says that d could not be done because the shadow was away. It is done
// when the shadow is back, if it is worth that; now says that it is already.
func (l *life) unheard(d duty, now connection) []duty {
	if l.phase != finishing && l.phase != telling {
		return nil
	}
	if l.phase == finishing && l.evicted == nil {
		l.evicted = l.spared // its output did not arrive, and nobody waits for the shadow
	}
	if !l.ran || l.lost || l.held || l.urgent || l.evicted != nil && l.evicted.hard {
		l.phase = over
		return []duty{dutyEnd}
	}
	if now == back && !l.apart {
		return []duty{d}
	}
	if d == dutyTell && l.evicted != nil && l.hold == nil {
		// It runs again, whether or not the shadow hears that it left here: there is
		// nothing to wait for.
		l.phase = over
		return []duty{dutyEnd}
	}
	if l.phase == finishing {
		d = dutyOutput
	}
	l.owed = d
	return l.awaitShadow()
}

// awaitShadow has the shadow awaited for as long as the job's lease lasts.
func (l *life) awaitShadow() []duty {
	l.apart = true
	if l.leased {
		return nil
	}
	l.leased = true
	return []duty{dutyLease}
}

// parted says that the conversation with the shadow broke. One that is being told
// how the job ended goes as soon as it has heard that: whether it did, and so whether
// it is awaited, says the answer. To call it lost would cost its schedd the claim,
// under which the next job starts already.
func (l *life) parted() []duty {
	if !l.remote || l.apart || l.held || l.phase == waiting || l.phase == over {
		return nil
	}
	switch {
	case l.phase == preparing: // nothing is there yet that would be worth to wait
		l.apart, l.lost = true, true
		return l.evict(l.away())
	case l.phase == telling && l.owed == 0:
		l.apart = true
		return nil
	}
	return l.awaitShadow()
}

// rejoined says that the shadow, or its successor, is back.
func (l *life) rejoined() []duty {
	if !l.apart || l.phase == over {
		return nil
	}
	l.apart, l.leased = false, false
	duties := []duty{dutyRejoin}
	if l.owed != 0 {
		duties = append(duties, l.owed)
		l.owed = 0
	}
	return duties
}

// leaseOver says that the job's lease ended while the shadow was away.
func (l *life) leaseOver() []duty {
	if !l.apart || !l.leased || l.phase == over {
		return nil
	}
	l.lost = true
	return l.evict(l.away())
}

func (l *life) away() eviction {
	return eviction{
		manner: protocol.MannerVacate, asked: "starter", hard: true,
		reason: "The shadow did not come back", code: int(reason.ReconnectFailed),
	}
}

// holds reports whether e puts the job on hold, rather than back into the
// queue.
func (e *eviction) holds() bool { return reason.Holds(reason.Code(e.code), e.subcode) }

// mannerOf tells a removal and a hold by the code of the reason, which is all
// that comes from a shadow.
func (e *eviction) mannerOf() protocol.Manner {
	switch {
	case e.manner != "" && e.manner != protocol.MannerVacate:
		return e.manner
	case e.code == int(reason.JobRemoved), e.code == int(reason.ClaimDeactivated):
		// A shadow that deactivates its claim does not say why; as with the
		// original, all that it can mean is treated as a removal.
		return protocol.MannerRemove
	case e.code == int(reason.UserRequest):
		return protocol.MannerHold
	}
	return e.manner
}
