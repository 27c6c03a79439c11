// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/host"
)

// Never is a time after which a job or a starter does what it is told: not at
// all.
const Never = time.Duration(-1)

// Behaviour is how a job and its starter behave.
type Behaviour struct {
	Begins time.Duration // from the activation until the job's program runs
	Runs   time.Duration // run time the job needs until it ends by itself
	OnSoft time.Duration // from a soft kill to the job's end; Never: it takes no notice
	OnHard time.Duration // from a hard kill to the job's end; Never: the starter is stuck
	OnKill time.Duration // from the end of the starter by force to its exit
	Reap   time.Duration // from the job's end to the starter's
	Fails  bool          // it cannot be started: the starter exits at once
	Again  bool          // what cannot be started waits for another try; otherwise it goes on hold
	Silent bool          // the starter exits without telling of the job's end before
	Stuck  time.Duration // with a program that cannot be executed: how long its access point waits; 0: it can
	Wall   bool          // Runs counts on the wall, suspended or not, as with sleep(1)
	Code   int           // exit status

	// Memory is what the job occupies, by time since it began. A measurement
	// is reported every Measured, if that is not 0.
	Memory            []Step
	Measured, FirstAt time.Duration
}

// Step is how much memory a job has from some time on.
type Step struct {
	At  time.Duration
	KiB int64
}

// phase is where a starter is.
type phase uint8

const (
	starting phase = iota
	running
	suspended
	leaving
	ended
	exited
)

// actor is a starter with its job.
type actor struct {
	w     *world
	id    claim.ActivationID
	start ep.StartStarter
	Behaviour
	phase phase
	first clock.Instant // when the job's program began
	since clock.Instant // when it began to run or ran on
	ran   time.Duration // the job, without the time it was suspended
	// stopped is the time for which it was suspended until now, since froze.
	stopped time.Duration
	froze   clock.Instant
	gen     int // what was planned for an earlier gen does not happen
	cpus    float64
	done    bool // the job ended by itself
	soft    bool // it left when it was asked to
	hard    bool // it was ended by a hard kill
	ordered bool // it was ordered to leave
	dying   bool // its starter was ended by force
	failed  bool // it could not be started
	early   bool // it was suspended before its program ran
}

// launch begins to play a starter.
func (w *world) launch(e ep.StartStarter) {
	a := &actor{w: w, id: e.Activation, start: e, Behaviour: w.ap.behaviour(e.Activation, e.Claim), since: w.now, cpus: e.Given.Cpus}
	w.starters[e.Activation] = a
	w.started++
	w.busyCpus += a.cpus
	pid := 1000 + w.started
	a.plan(0, func() {
		w.step(ep.StarterStarted{Activation: a.id, Proc: host.ProcID{PID: pid, Start: 1}})
		if a.phase != starting {
			return
		}
		if a.Fails {
			a.plan(a.Begins, func() {
				a.failed = true
				a.exit(host.ExitStatus{Exited: true}, false)
			})
			return
		}
		if a.Stuck > 0 {
			return
		}
		a.plan(a.Begins, func() {
			a.phase, a.first, a.since = running, w.now, w.now
			w.ap.executing(a)
			w.step(ep.JobRunning{Activation: a.id})
			if a.phase == running {
				a.endLater()
				a.measureLater(a.FirstAt)
				if a.early {
					a.suspend()
				}
			}
		})
	})
}

// plan lets do happen unless something else becomes of the actor first.
func (a *actor) plan(d time.Duration, do func()) {
	gen := a.gen
	a.w.after(d, func() {
		if a.gen == gen {
			do()
		}
	})
}

// endLater plans the job's own end.
func (a *actor) endLater() {
	if a.Wall {
		a.ran = min(a.w.now.Sub(a.first), a.Runs)
	}
	a.plan(a.Runs-a.ran, a.end)
}

// measureLater reports what the job occupies, again and again.
func (a *actor) measureLater(d time.Duration) {
	if a.Measured <= 0 {
		return
	}
	a.w.after(d, func() {
		if a.phase >= leaving {
			return
		}
		a.w.step(ep.JobUsage{Activation: a.id, Usage: a.usage()})
		a.measureLater(a.Measured)
	})
}

func (a *actor) usage() host.Usage {
	ran := a.runTime()
	u := host.Usage{UserCPU: time.Duration(float64(ran) * a.cpus)}
	age := a.w.now.Sub(a.first)
	for _, s := range a.Memory {
		if s.At <= age {
			u.RSSKiB, u.ImageSizeKiB = s.KiB, s.KiB
		}
	}
	return u
}

// runTime is how long the job has run.
func (a *actor) runTime() time.Duration {
	if a.phase == running {
		return a.ran + a.w.now.Sub(a.since)
	}
	return a.ran
}

// rest notes that the job does not run any more.
func (a *actor) rest() {
	if a.phase == running {
		a.ran += a.w.now.Sub(a.since)
	}
	if a.phase == running || a.phase == starting {
		a.w.busyCpus -= a.cpus
	}
	a.thaw()
}

// thaw notes that the job is not suspended any more.
func (a *actor) thaw() {
	if a.phase == suspended {
		a.stopped += a.w.now.Sub(a.froze)
	}
}

// end is the end of the job; its starter follows.
func (a *actor) end() {
	a.done, a.soft = !a.ordered, a.ordered && !a.hard
	if a.phase != leaving {
		a.rest()
	}
	a.phase = ended
	a.gen++
	if a.Silent && a.done {
		a.exit(host.ExitStatus{Exited: true}, false)
		return
	}
	a.w.step(ep.JobEnded{Activation: a.id, Exit: ep.Exit{Status: host.ExitStatus{Exited: true, Code: a.Code}, Evicted: a.ordered, Usage: a.usage()}})
	a.plan(a.Reap, func() { a.exit(host.ExitStatus{Exited: true}, false) })
}

// forsake ends the job because its lease has expired.
func (a *actor) forsake() {
	if a.phase != leaving {
		a.rest()
	}
	a.ordered, a.hard, a.phase = true, true, ended
	a.gen++
	a.w.step(ep.JobEnded{Activation: a.id, Exit: ep.Exit{Status: host.ExitStatus{Signal: 9}, Evicted: true, Usage: a.usage()}})
	a.plan(a.Reap, func() { a.exit(host.ExitStatus{Exited: true}, true) })
}

// exit is the end of the starter.
func (a *actor) exit(st host.ExitStatus, clientLost bool) {
	if a.phase < leaving {
		a.rest()
	}
	a.gen++
	a.phase = exited
	delete(a.w.starters, a.id)
	a.w.step(ep.StarterExited{Activation: a.id, Status: st, ClientLost: clientLost})
	a.w.ap.starterLeft(a)
}

// killed ends the starter by force.
func (a *actor) killed() {
	if a.dying || a.phase == exited {
		return
	}
	a.dying = true
	if a.phase < leaving {
		a.rest()
	}
	if a.phase < ended {
		a.phase = leaving
	}
	a.gen++
	a.plan(a.OnKill, func() { a.exit(host.ExitStatus{Signal: 9}, false) })
}

// obey does what the core orders.
func (a *actor) obey(o ep.OrderStarter) {
	if a.phase >= ended || a.dying {
		return
	}
	switch o.Op {
	case ep.Suspend:
		if a.phase == starting {
			a.early = true // its input still comes meanwhile
			return
		}
		a.suspend()
	case ep.Continue:
		if a.phase == starting {
			a.early = false
			return
		}
		a.proceed()
		a.plan(0, func() {
			a.w.ap.paused(a, false)
			a.w.step(ep.JobContinued{Activation: a.id})
		})
	case ep.SoftKill:
		a.ordered = true
		a.w.ap.noteOrder(a, o)
		switch {
		case a.Stuck > 0:
		case a.phase == starting:
			a.leave(0) // no program is there that would have to be asked
		case a.OnSoft >= 0:
			a.leave(a.OnSoft)
		case a.phase == suspended:
			a.proceed() // so that it could obey
		default: // it goes on, and may even end by itself
		}
	case ep.HardKill:
		a.ordered, a.hard = true, true
		a.w.ap.noteOrder(a, o)
		if a.Stuck > 0 {
			return
		}
		a.leave(a.OnHard)
	}
}

// suspend stops a job that runs.
func (a *actor) suspend() {
	a.gen++
	a.rest()
	a.phase, a.froze = suspended, a.w.now
	a.plan(0, func() {
		a.w.ap.paused(a, true)
		a.w.step(ep.JobSuspended{Activation: a.id})
	})
}

// proceed lets a job that was suspended go on.
func (a *actor) proceed() {
	a.gen++
	if a.phase != running {
		a.w.busyCpus += a.cpus
	}
	a.thaw()
	a.phase, a.since = running, a.w.now
	a.endLater()
}

// leave ends the job in d, Never for a starter that is stuck.
func (a *actor) leave(d time.Duration) {
	a.gen++
	if a.phase < leaving {
		// What it does from now on is no work.
		a.rest()
	}
	a.phase = leaving
	if d >= 0 {
		a.plan(d, a.end)
	}
}

// crash ends the starter in d, without a word about its job.
func (a *actor) crash(d time.Duration) {
	if a.phase == exited {
		return
	}
	if a.phase < leaving {
		a.rest()
	}
	a.phase, a.dying = leaving, true
	a.gen++
	a.plan(d, func() { a.exit(host.ExitStatus{Signal: 9}, false) })
}
