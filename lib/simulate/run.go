// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// loadWindow is the time constant of the load average, as the core has it.
const loadWindow = time.Minute

// measured is how often what a job occupies is told.
const measured = 10 * time.Second

// run is a scenario while it runs.
type run struct {
	sc      *Scenario
	w       *world
	res     *Result
	kinds   map[string]*kind
	descr   map[string]*JobKind
	attrs   *classad.Ad
	chance  *rand.Rand
	config  []Block
	cluster int

	typing    bool
	people    int           // typings that go on
	typings   int           // counts the times when everybody left
	lastInput time.Duration // boot time; 0: never
	owners    float64       // load that people make
	loads     []load        // what makes it, the last one counts
	jobsLoad  float64       // that jobs make, as the load average has it
	sampledAt time.Duration
	silences  int
	cyclic    bool // the next negotiation is on the agenda
}

// Run plays a scenario to its end. The configuration that node reads for the
// lines given to it must count them as lines of the scenario's file.
func Run(sc *Scenario, node Node) (*Result, error) {
	r := &run{
		sc: sc, kinds: map[string]*kind{}, descr: map[string]*JobKind{}, attrs: classad.NewAd(),
		chance: rand.New(rand.NewPCG(sc.Seed, 2)), config: slices.Clone(sc.Config),
	}
	r.res = &Result{Name: sc.Name, Start: sc.Start, End: sc.End, Down: -1}
	node.extras = true
	w, err := newWorld(node, layOut(r.config), sc.Start, sc.Seed, sc.Start.Location(), machine.NeverUsed(clock.Instant{Wall: sc.Start}), r.moved)
	if err != nil {
		return nil, err
	}
	r.w = w
	w.beforeTick = r.sample
	w.ap.requeued = r.negotiateLater
	w.warned = r.warned
	w.booted = r.booted
	for i := range sc.Jobs {
		k := &sc.Jobs[i]
		if r.kinds[k.Name], err = newKind(sc.Name, k.submitText(), w); err != nil {
			return nil, err
		}
		r.kinds[k.Name].name, r.descr[k.Name] = k.Name, k
	}
	for i := range sc.Events {
		r.plan(&sc.Events[i])
	}
	if alive, err := w.snap.Duration("ALIVE_INTERVAL"); err == nil && alive > 0 {
		r.repeat(alive, w.ap.renew)
	}
	if update, err := w.snap.Duration("UPDATE_INTERVAL"); err == nil && update > 0 {
		r.repeat(update, w.ap.hear)
	}
	if err := w.run(sc.End); err != nil {
		return nil, err
	}
	r.finish()
	return r.res, nil
}

// warned notes an expression that gave something it is not asked for.
func (r *run) warned(o ep.PolicyWarning) {
	r.res.Warnings = append(r.res.Warnings, Note{At: r.w.elapsed(), Text: o.Name + ": " + o.Trace.String()})
}

// layOut puts blocks at their lines of the scenario's file.
func layOut(blocks []Block) string {
	var b strings.Builder
	at := 1
	for _, block := range blocks {
		for ; at < block.Line; at++ {
			b.WriteByte('\n')
		}
		b.WriteString(block.Text)
		at += strings.Count(block.Text, "\n")
	}
	return b.String()
}

// submitText is the submit text of the jobs, at its lines of the scenario's
// file. A program and a queue statement are put in where there is none.
func (k *JobKind) submitText() string {
	text := k.Submit.Text
	first := ""
	if !k.says("executable") {
		first = "executable = /bin/" + k.Name
	}
	if !k.says("queue") {
		text += "queue\n"
	}
	return strings.Repeat("\n", k.Line-1) + first + "\n" + text
}

// says reports whether a line of the submit text begins with a word.
func (k *JobKind) says(name string) bool {
	for line := range strings.Lines(k.Submit.Text) {
		f := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '=' || r == '\n' })
		if len(f) > 0 && strings.EqualFold(f[0], name) {
			return true
		}
	}
	return false
}

// repeat lets do happen every so often, for as long as the simulation goes on.
func (r *run) repeat(every time.Duration, do func()) {
	r.w.after(every, func() {
		if !r.w.life.over {
			do()
		}
		r.repeat(every, do)
	})
}

// plan puts an event on the agenda, and each repetition when its time has come.
func (r *run) plan(e *Event) {
	var happen func(at time.Duration)
	happen = func(at time.Duration) {
		r.w.after(at-r.w.elapsed(), func() {
			if err := r.do(e); e.Verb == Submit {
				r.w.life.err = cmp.Or(r.w.life.err, err)
			} else if err != nil {
				r.res.Notes = append(r.res.Notes, Note{At: r.w.elapsed(), Line: e.Line, Text: err.Error()})
			}
			if e.Every > 0 && at+e.Every <= e.Until {
				happen(at + e.Every)
			}
		})
	}
	happen(e.At)
}

// do lets an event happen.
func (r *run) do(e *Event) error {
	w := r.w
	switch e.Verb {
	case Vacate, Drain, Shutdown:
		if w.life.over {
			return errs.E("simulate.Run", errs.NotFound, verbs[e.Verb], errors.New("the Execution Point is down at that time"))
		}
	}
	switch e.Verb {
	case Submit:
		return r.submit(e)
	case Type:
		r.people++
		r.typing = true
		if n := r.typings; e.For > 0 {
			w.after(e.For, func() {
				if r.typings == n {
					r.leave()
				}
			})
		}
	case Leave:
		r.people = min(r.people, 1)
		r.leave()
	case Load:
		r.loaded(e)
	case Set:
		if err := r.attrs.SetText(e.Name, e.Text); err != nil {
			return err
		}
		r.publish()
	case Unset:
		r.attrs.Delete(e.Name)
		r.publish()
	case Vacate:
		ev := ep.VacateRequested{Manner: e.Manner}
		if e.Name != "all" {
			id, err := slot.ParseID(e.Name)
			if err != nil {
				return err
			}
			if _, ok := w.eng.SlotView(id); !ok {
				return errs.E("simulate.Vacate", errs.NotFound, e.Name, fmt.Errorf("there is no such slot at that time"))
			}
			ev.Slot = id
		}
		w.step(ev)
	case Hold, Remove, Release, SuspendJob, ContinueJob:
		r.jobs(e)
	case Silence:
		w.ap.silent = true
		r.silences++
		n := r.silences
		if e.For > 0 {
			w.after(e.For, func() {
				if r.silences == n {
					r.endSilence()
				}
			})
		}
	case Drain:
		return w.drain(e.Text)
	case Shutdown:
		w.step(ep.ShutdownRequested{Manner: e.Manner})
	case Reconfigure:
		if !slices.Contains(r.config, e.Block) {
			r.config = append(r.config, e.Block)
		}
		slices.SortStableFunc(r.config, func(a, b Block) int { return cmp.Compare(a.Line, b.Line) })
		return w.reconfigure(layOut(r.config))
	}
	return nil
}

func (r *run) leave() {
	if !r.typing {
		return
	}
	if r.people--; r.people <= 0 {
		r.people, r.typing, r.lastInput = 0, false, r.w.now.Boot
		r.typings++
	}
}

// load is a load that people make from some time on.
type load struct {
	amount float64
	until  time.Duration // since the beginning, 0: for good
}

// loaded takes a load that people make. Behind one that ends the one before counts
// again, as far as it has not ended itself.
func (r *run) loaded(e *Event) {
	l := load{amount: e.Load}
	if e.For > 0 {
		l.until = r.w.elapsed() + e.For
		r.w.after(e.For, r.weigh)
	} else {
		r.loads = nil
	}
	r.loads = append(r.loads, l)
	r.weigh()
}

// weigh sets the load that people make now.
func (r *run) weigh() {
	r.loads = slices.DeleteFunc(r.loads, func(l load) bool { return l.until > 0 && l.until <= r.w.elapsed() })
	r.owners = 0
	if n := len(r.loads); n > 0 {
		r.owners = r.loads[n-1].amount
	}
}

// publish shows what was set of the machine, as a startd cron job does.
func (r *run) publish() {
	if !r.w.life.over {
		r.w.step(ep.Published{Source: "scenario", Attrs: r.attrs.Clone()})
	}
}

// booted begins to publish and to match again, when the Execution Point was
// started anew.
func (r *run) booted() {
	r.publish()
	r.negotiateLater()
}

// endSilence ends a silence of the access point, which gives back what it does not
// use.
func (r *run) endSilence() {
	r.w.ap.speak()
	for _, h := range r.w.ap.claims() {
		if h.job == nil {
			r.w.ap.release(h)
		}
	}
	r.negotiateLater()
}

// submit puts jobs of a kind into the queue.
func (r *run) submit(e *Event) error {
	k, d := r.kinds[e.Name], r.descr[e.Name]
	if len(r.w.ap.all)+e.Count*len(k.jobs) > maxHappening {
		return fmt.Errorf("%s:%d:%d: far too much is submitted (value %q, expected at most %d jobs in all)", r.sc.Name, e.Line, e.Column, e.Name, maxHappening)
	}
	for range e.Count {
		r.cluster++
		for n := range k.jobs {
			q := k.job(r.w, n, r.cluster)
			q.behaviour, q.saves = d.Behaviour, d.Saves
			if d.RunsMost > d.Runs {
				q.behaviour.Runs += time.Duration(r.chance.Int64N(int64(d.RunsMost-d.Runs) + 1)).Round(time.Second)
			}
			if len(q.behaviour.Memory) > 0 {
				q.behaviour.Measured, q.behaviour.FirstAt = measured, time.Second
			}
			r.w.ap.submit(q)
		}
	}
	r.negotiateLater()
	return nil
}

// negotiateLater sees to it that the matchmaker comes at the next full cycle,
// for as long as jobs wait.
func (r *run) negotiateLater() {
	if r.cyclic {
		return
	}
	r.cyclic = true
	next := (r.w.elapsed()/r.sc.Cycle + 1) * r.sc.Cycle
	r.w.after(next-r.w.elapsed(), func() {
		r.cyclic = false
		if len(r.w.ap.idle) == 0 || r.w.life.over {
			return
		}
		r.sample()
		r.w.ap.negotiate()
		r.negotiateLater()
	})
}

// jobs does something with the jobs that an event names: a kind, a job or all.
func (r *run) jobs(e *Event) {
	ap := r.w.ap
	for _, q := range slices.Clone(ap.all) {
		if q.state == done || q.state == removed || e.Name != "all" && e.Name != q.name && e.Name != q.label() {
			continue
		}
		switch e.Verb {
		case Hold:
			ap.byOwner(q, "held by its owner")
		case Remove:
			ap.remove(q, ep.Gracefully, removed, "removed by its owner")
		case Release:
			ap.letGo(q)
		case SuspendJob:
			if q.holding != nil && q.state == active {
				r.w.step(ep.SuspendRequested{Claim: q.holding.id})
			}
		case ContinueJob:
			if q.holding != nil && q.state == active {
				r.w.step(ep.ContinueRequested{Claim: q.holding.id})
			}
		}
	}
}

// sample reads the simulated machine, as a sampler would.
func (r *run) sample() {
	w := r.w
	keep := math.Exp(-(w.now.Boot - r.sampledAt).Seconds() / loadWindow.Seconds())
	r.sampledAt = w.now.Boot
	r.jobsLoad = r.jobsLoad*keep + w.busyCpus*(1-keep)
	s := machine.Sample{
		At: w.now, Fresh: machine.AllReadings, HasConsole: true, LoadAvg: r.owners + r.jobsLoad, KeyboardIdle: machine.NeverUsed(w.now),
		FreeSwapKiB: w.inv.SwapKiB, FreeDiskKiB: w.inv.Execute.AvailableKiB, TotalDiskKiB: w.inv.Execute.TotalKiB,
	}
	switch {
	case r.typing:
		s.KeyboardIdle = 0
	case r.lastInput > 0:
		s.KeyboardIdle = w.now.Boot - r.lastInput
	}
	s.ConsoleIdle = s.KeyboardIdle
	w.step(ep.Sampled{Sample: s})
}
