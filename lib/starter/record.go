// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// inForce are the limits that the job had at last.
func (a *activation) inForce() *protocol.LimitsInForce {
	if a.family == nil {
		return nil
	}
	in := &protocol.LimitsInForce{Grouped: a.family.Grouped(), Lacks: a.family.Lacks()}
	if !in.Grouped {
		return in
	}
	g := a.limited.group
	kib := func(bytes *int64) *int64 {
		if bytes == nil {
			return nil
		}
		n := *bytes / 1024
		return &n
	}
	in.MemoryKiB, in.SoftKiB, in.SwapKiB = kib(g.Memory.Hard), kib(g.Memory.Soft), kib(g.Memory.Swap)
	in.CPUWeight, in.CPUs, in.Processes, in.Closed = g.CPUWeight, g.CPUs, g.Processes, len(g.Closed)
	return in
}

// audit looks for what the job left outside of its scratch directory, under root. Of an
// account that is for jobs alone what is found is removed. Of the submitter's own account,
// and of one that others use, only what is in memory is looked for, and named: the kernel
// does not say whether a process of the job made it. Where a job works in a directory that
// is shared with its owner, its results may lie anywhere, and files are not looked for.
// HTCondor looks for nothing of all this.
func (a *activation) audit() {
	u := a.plan.RunAs
	if a.host.Audit == nil || u == nil || a.family == nil || a.job == nil {
		return
	}
	found, err := a.host.Audit(host.AuditSpec{
		User: u, Since: a.record.Ran.Stages.Began, Scratch: a.box.Scratch(), Remove: a.plan.Dedicated, Files: a.job.Moves,
		Shared: a.submitterIs(u),
	})
	a.problem(err)
	left := &a.record.Left
	left.Looked, left.Audit = protocol.LookedReport, found
	if a.plan.Dedicated && !found.Shared {
		left.Looked = protocol.LookedRemove
	}
	if a.log == nil {
		return
	}
	for _, l := range found.Found {
		if found.Shared && !l.Removed {
			a.log.Info("something came outside of the scratch directory while the job ran, by it or by others of its account", "kind", l.Kind, "name", l.Name, "bytes", l.Bytes)
			continue
		}
		a.log.Warn("the job left something outside of its scratch directory", "kind", l.Kind, "name", l.Name, "bytes", l.Bytes, "removed", l.Removed)
	}
}

// submitterIs reports whether u is the account of who submitted the job, in which
// other things are than those of jobs.
func (a *activation) submitterIs(u *host.Identity) bool {
	for _, attr := range [...]string{"OsUser", "Owner"} {
		if name, ok := a.job.Ad.EvalString(attr, nil); ok && name == u.Name {
			return true
		}
	}
	return false
}

// noteUndying keeps which processes of the job an error says could not be ended: its
// startd looks whether they are gone once the starter is.
func (a *activation) noteUndying(err error) {
	var undying *host.Undying
	if errors.As(err, &undying) {
		a.record.Left.Undying = append(a.record.Left.Undying, undying.Procs...)
	}
}
