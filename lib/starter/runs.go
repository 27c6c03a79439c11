// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
)

// jobRunner is what runs the job of an activation.
type jobRunner struct {
	runner.Runner                 // nil before one is chosen
	ready         runner.Prepared // nil before the job is prepared
}

// all lists the runners of this machine.
func (h *Host) all() []runner.Runner {
	if h.runners != nil {
		return h.runners
	}
	return runner.All(runner.Machine{Spawner: h.Spawner, Errno: h.Errno, Enter: h.enter, Read: h.read})
}

// enter says why u, nil being the user of this process, cannot work in dir; nil if
// that can be.
func (h *Host) enter(u *host.Identity, dir string) error {
	if u != nil {
		return h.Access.Enter(u, dir)
	}
	_, err := os.Stat(dir + "/.") // what chdir would say
	return err
}

// read opens the file at path to be read, with the rights of u, nil being the user of
// this process.
func (h *Host) read(u *host.Identity, path string) (*os.File, error) {
	if u != nil {
		return h.Access.Read(u, path)
	}
	return os.Open(path)
}

// ownerKnobs are the owner's expressions of runner.OwnerKnobs.
var ownerKnobs = map[string]func(*protocol.Settings) *config.Expr{
	"SINGULARITY_JOB":       func(s *protocol.Settings) *config.Expr { return s.Singularity },
	"USE_DEFAULT_CONTAINER": func(s *protocol.Settings) *config.Expr { return s.DefaultContainer },
}

// chooseRunner finds what runs the job. It returns why the job is held before
// anything of it is run: it asks for what no runner offers.
func (a *activation) chooseRunner() *protocol.Hold {
	chosen, err := runner.Choose(a.host.all(), runner.Request{Job: a.job.Ad, Wanted: func(knob string) bool {
		return a.ownerWants(ownerKnobs[knob](a.plan.Settings))
	}})
	if err != nil {
		return a.holds.Refusal(err)
	}
	a.runner.Runner = chosen
	return nil
}

// ownerWants evaluates a knob that is an expression over the slot (MY) and the job
// (TARGET); nil is no.
func (a *activation) ownerWants(x *config.Expr) bool {
	if x == nil {
		return false
	}
	if _, constant := x.LiteralValue(); constant { // as by default: no ad has a say
		yes, _ := x.IsTrue(&classad.Env{Now: time.Now()})
		return yes
	}
	machine, err := a.machineAd()
	if err != nil {
		a.problem(err)
		return false
	}
	yes, _ := x.IsTrue(&classad.Env{My: machine, Target: a.job.Ad, Now: time.Now()})
	return yes
}

// prepareRun has the runner prepare the job, whose input is there and before which
// its program has run, and returns true; or false if the job may start.
func (a *activation) prepareRun() bool {
	if a.runner.ready != nil {
		return false
	}
	limits, err := a.limits()
	if err != nil {
		a.perform(a.unable(err))
		return true
	}
	if hold, err := a.makeRoom(); err != nil {
		a.perform(a.unable(err))
		return true
	} else if hold != nil {
		a.perform(a.life.prepared(hold))
		return true
	}
	task := runner.Task{
		Job: a.job.Ad, Scratch: a.box.Scratch(), User: a.plan.RunAs, Group: a.note.Group, Marker: a.note.Marker, TrackGID: a.note.TrackGID,
		Limits: limits, Space: a.room.space,
	}
	preparing := func(ctx context.Context) func() []duty {
		ready, err := a.runner.Prepare(ctx, task)
		return func() []duty {
			a.runner.ready = ready
			if a.life.evicted != nil {
				return a.life.prepared(nil) // the life knows why
			}
			return a.readied(err)
		}
	}
	if a.runner.Offer().Waits {
		a.async(preparing)
	} else {
		a.perform(preparing(context.Background())())
	}
	return true
}

// readied goes on with a job that its runner has prepared, or could not prepare.
func (a *activation) readied(err error) []duty {
	if fault := a.runnerFault(err); fault != nil {
		return a.unable(fault)
	}
	return a.life.prepared(a.holds.Refusal(err))
}

// runnerFault is what of an error of a runner is the machine's fault; nil if the job
// is to blame, or nothing is wrong.
func (a *activation) runnerFault(err error) error {
	var refusal *runner.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return a.short(refusal.Err)
	}
	if short := a.short(err); short != nil {
		return short
	}
	return errs.E("starter.spawn", errs.Broken, a.plan.Activation, fmt.Errorf("%w: %w", errMachine, err))
}

// unprepare undoes what the runner has prepared.
func (a *activation) unprepare() error {
	if a.runner.ready == nil {
		return nil
	}
	return a.runner.ready.Close()
}
