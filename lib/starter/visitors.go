// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// What those reach of an activation who come to its command socket: it is the
// Activation of lib/starter/shadowjob.

// Do has the activation's goroutine do something.
func (a *activation) Do(ctx context.Context, what func()) error {
	select {
	case a.calls <- what:
		return nil
	case <-a.over:
		return errs.E("starter.Visit", errs.NotFound, a.plan.Activation, errors.New("the job is over"))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Busy reports whether the job is at no point where it could be taken up: it does not
// run yet, it is over, it is to be held, or it was given up when its lease ended.
func (a *activation) Busy() bool {
	p := a.life.phase
	return a.life.held || a.life.lost || p <= preparing || p == over
}

// Order has the life take an order.
func (a *activation) Order(o protocol.Order) { a.perform(a.life.ordered(o)) }

// TakeUp notes that another shadow has the job.
func (a *activation) TakeUp(resume func() (lost <-chan struct{})) {
	a.perform(a.life.parted()) // if nobody has noticed yet
	a.gone = resume()
	a.perform(a.life.rejoined())
}

// Update tells how the job is.
func (a *activation) Update() { a.changed() }

// Target is the job for those who look at it.
func (a *activation) Target() (t reach.Target, is bool) {
	t = reach.Target{Finished: a.life.phase > running, Suspended: a.life.suspended, User: a.plan.RunAs}
	if a.job != nil {
		t.Job, t.Env = a.job.Ad, a.jobEnv
		t.Root, t.Scratch = a.box.Root(), a.box.Scratch()
		t.Stdout, t.Stderr = within(t.Scratch, a.job.Stdout.Path), within(t.Scratch, a.job.Stderr.Path)
		t.Spawn, t.As = a.spawner(), a.asUser
	}
	if is = a.life.phase == running && a.family != nil; is {
		t.PIDs = []int{a.family.Main().PID}
		if a.room.space != nil && a.room.space.PIDs {
			t.PIDs[0] = host.MainPID // as visitors see it
		}
	}
	return t, is
}

// within is path relative to dir, "" if it is not below it.
func within(dir, path string) string {
	name, err := filepath.Rel(dir, path)
	if path == "" || err != nil || !filepath.IsLocal(name) {
		return ""
	}
	return name
}

// visitorMark names the variable by which a visitor's processes are told from
// the job's.
const visitorMark = "_CONDOR_VISITOR"

// spawner starts processes for visitors: as the job is run and under its limits,
// but as families of their own, for the job goes on when a visitor leaves. It is nil
// while there is no job to be beside.
func (a *activation) spawner() func(host.SpawnSpec) (host.Family, error) {
	job := a.family
	if job == nil {
		return nil
	}
	return func(spec host.SpawnSpec) (host.Family, error) {
		spec.Marker = visitorMark + "=" + strconv.FormatUint(rand.Uint64(), 36)
		spec.Env = append(slices.Clone(spec.Env), spec.Marker)
		return job.Beside(spec)
	}
}
