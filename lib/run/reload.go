// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/history"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// reload reads the configuration again, beside the owner since it may run
// programs. One more request meanwhile reads it once more afterwards.
func (n *node) reload() {
	if n.o.Load == nil {
		return
	}
	if n.reloads.under {
		n.reloads.again = true
		return
	}
	n.reloads.under = true
	n.mail.around.Go(func() {
		ctx, cancel := n.mail.lasting()
		defer cancel()
		next, err := n.o.Load(ctx)
		var settings *starterSettings
		var path string
		var args []string
		if err == nil && n.o.Starter != nil {
			path, args, err = n.o.Starter(next)
		}
		if err == nil {
			settings, err = n.startersOf(next)
		}
		n.mail.post(func(now clock.Instant) {
			n.reloads.under = false
			if n.loaded(now, next, settings, err) {
				if n.o.Starter != nil {
					n.starter.own.Use(path, args)
				}
				n.starter.own.UseOwnUsers(settings.contain.users)
				n.seekAbilities()
			}
			if n.reloads.again {
				n.reloads.again = false
				n.reload()
			}
		})
	})
}

// loaded takes a configuration over as a whole, or tells why the old one stays.
// Load has refused for what is around the run and usable refuses for what is
// decided here. The engine is asked last: it takes over what it does not refuse,
// and nothing can be refused any more after that.
func (n *node) loaded(now clock.Instant, next *config.Snapshot, settings *starterSettings, err error) (taken bool) {
	var inv *machine.Inventory
	if err == nil {
		inv = n.known(n.o.Inventory, settings)
		err = n.usable(next, inv)
	}
	var effects []ep.Effect
	if err == nil {
		effects, err = n.reconfigureEngine(now, next, inv)
	}
	if err != nil {
		n.problem(fmt.Errorf("the configuration was not taken over, the old one stays: %w", err))
		n.performAll(now, effects)
		return false
	}
	changes := n.o.Config.Changes(next)
	var later []string
	for _, c := range changes {
		if set, _ := next.Lookup(c.Name); c.Reconfig == config.ReconfigRestarts && set.Origin.Kind != config.Detected {
			later = append(later, c.Name)
		}
	}
	n.o.Config, n.o.Inventory = next, inv
	_ = n.setIntervals(next) // it is usable
	interval, _ := next.Duration("PERIODIC_EXPR_INTERVAL")
	n.ap.Configure(now, interval, jobpolicy.SystemFrom(next))
	n.tellUncontained(n.starter.settings.Load(), settings)
	n.starter.settings.Store(settings)
	n.setRecords(next)
	n.performAll(now, effects)
	n.tellTracking()
	n.tellDoubts(next)
	n.reconfigureHooks(now, next)
	n.reconfigureBackfill(now, next)
	n.moved = true
	if n.o.Reconfigured != nil {
		n.o.Reconfigured(next)
	}
	n.tell(now, observe.EPReconfig, slot.ID{}, func(*classad.Ad) {})
	n.o.Log.Info("configuration taken over", "changes", len(changes))
	if len(later) > 0 {
		n.problem(fmt.Errorf("these take effect only when the Execution Point is started again: %s", strings.Join(later, ", ")))
	}
	return true
}

// reconfigureEngine has the engine take a configuration over. The error says why
// it does not. The effects are to be performed in either case, once the run has
// taken over what belongs to them.
func (n *node) reconfigureEngine(now clock.Instant, next *config.Snapshot, inv *machine.Inventory) (effects []ep.Effect, err error) {
	ref := ep.Ref{By: ep.Reload}
	effects = n.eng.Step(now, ep.Reconfigured{Ref: ref, Snapshot: next, Inventory: inv})
	for _, eff := range effects {
		if r, ok := eff.(ep.Reply); ok && r.Ref == ref {
			return effects, r.Err
		}
	}
	return effects, errs.E("run.reload", errs.Internal, "", errors.New("the engine does not answer"))
}

// tellDoubts says which of the owner's expressions do not parse, and so do not
// count, and which settings nothing here acts by. They keep no machine down, as
// they do not with HTCondor, but the owner meant something by each.
func (n *node) tellDoubts(s *config.Snapshot) {
	told := map[string]bool{}
	var p *config.Problem
	for _, err := range n.eng.Unparsed() {
		if errors.As(err, &p) {
			told[p.Knob] = true
		}
		n.problem(fmt.Errorf("the policy is not what its owner wrote: %w", err))
	}
	if unread := s.Unread(); len(unread) > 0 {
		var names []string
		for _, u := range unread {
			names = append(names, fmt.Sprintf("%s (%v)", u.Name, u.Origin))
		}
		const most = 40 // more do not help
		if len(names) > most {
			names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
		}
		n.problem(fmt.Errorf("settings without effect, because nothing here reads them yet: %s: condor_ep check says what to do", strings.Join(names, ", ")))
	}
	if set := n.starterOf(slot.ID{}).settings; set != nil && set.Limits.Memory == protocol.MemoryCustom && set.Limits.Hard == nil {
		n.problem(errors.New("CGROUP_MEMORY_LIMIT_POLICY is custom and CGROUP_HARD_MEMORY_LIMIT_EXPR is not set: no job's memory is limited"))
	}
	_, doubtful := s.Sort()
	for _, p := range doubtful {
		if !told[p.Knob] {
			n.problem(fmt.Errorf("a setting does not count: %w", p))
		}
	}
}

// usable says what the engine does not refuse, and with which the Execution Point
// would not begin again as its owner wants it.
func (n *node) usable(s *config.Snapshot, inv *machine.Inventory) error {
	_, err := s.Duration("POLLING_INTERVAL")
	bad := []error{err}
	_, err = s.Duration("PERIODIC_EXPR_INTERVAL")
	bad = append(bad, err)
	_, err = slot.LayoutFrom(s, inv, n.slots.found...)
	bad = append(bad, err)
	_, err = history.OptionsFrom(s)
	bad = append(bad, err)
	// A mistake that is new keeps the old policy in force, which is what its owner
	// wants more than none. HTCondor takes it over.
	return errors.Join(append(bad, n.eng.NewlyUnparsed(s)...)...)
}

// reconfigureHooks takes the periodic programs and the benchmarks over.
func (n *node) reconfigureHooks(now clock.Instant, s *config.Snapshot) {
	c := n.cron
	jobs, problems := hook.CronFrom(s)
	for _, p := range problems {
		n.problem(p)
	}
	c.jobs, c.runner = jobs, hooks(n.o)
	hups, stops := c.schedule.Reconfigure(jobs, now)
	c.board.Reconfigure(jobs)
	c.moved, c.dirty = true, true
	for _, name := range hups {
		n.hangup(name)
	}
	for _, name := range stops {
		n.stopHook(name)
	}
	benchmarks, problems := hook.BenchmarksFrom(s)
	for _, p := range problems {
		n.problem(p)
	}
	n.bench.cron = benchmarks // of the next round
	n.bench.board.Reconfigure(benchmarks)
}
