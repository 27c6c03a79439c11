// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// runPrepareHook starts a prepare hook and returns true, or false if the job has none or
// is not to be run. next goes on with what the hook has made of the job.
func (a *activation) runPrepareHook(h hook.JobHook, next func() []duty) bool {
	path := a.hooks.chosen.Path(h)
	if path == "" {
		return false
	}
	args, _ := a.hooks.chosen.Args(h) // Unsound has looked
	refused := func(duties []duty) bool {
		a.perform(duties)
		return true
	}
	if err := a.place.WriteAds(); err != nil {
		return refused(a.unable(err))
	}
	if h == hook.PrepareJob { // what it makes is output, as with HTCondor
		if err := a.listInput(); err != nil {
			return refused(a.unable(err))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	given := a.job.ForSandbox(a.box.Scratch())
	run, err := a.startHook(ctx, h, args, given)
	if err != nil {
		cancel()
		if short := a.short(err); short != nil {
			return refused(a.unable(short))
		}
		_, text := a.holds.Number(err)
		return refused(a.life.prepared(a.holds.From(reason.HookPrepareJobFailure, 0, fmt.Sprintf("failed to execute %s (%s): %s", h, path, text))))
	}
	a.hooks.prepared = true
	a.async(func(order context.Context) func() []duty {
		select {
		case <-run.Done():
		case <-order.Done():
		}
		cancel()
		report := run.Report()
		return func() []duty {
			if a.life.evicted != nil {
				a.logHook(h, path, report, report.Failed())
				return a.life.prepared(nil) // the life knows why
			}
			return a.hooked(h, path, report, given, next)
		}
	})
	return true
}

// hooked goes on with what a prepare hook said.
func (a *activation) hooked(h hook.JobHook, path string, r *hook.Report, given *classad.Ad, next func() []duty) []duty {
	v := hook.VerdictOf(h, path, r.Status, r.Output)
	a.logHook(h, path, r, !v.OK)
	if a.log != nil && v.Unread != nil {
		a.log.Warn(string(h)+" printed a line that is no attribute; it and what follows do not count", "hook", path, "err", *v.Unread)
	}
	if a.log != nil && (v.Tell || !v.OK) {
		a.log.Info(v.Text)
	}
	switch {
	case v.Hold:
		return a.life.prepared(a.holds.From(reason.HookPrepareJobFailure, v.Code, v.Text))
	case !v.OK:
		why := job.Eviction{Reason: v.Text}
		if a.local() {
			why.Code = int(reason.StarterError) // which a shadow makes of none, as HTCondor's starter sends it
		}
		return a.unfitFor(&job.Unfit{Err: errors.New(v.Text), Eviction: why})
	case v.Tell:
		a.source.Warned(v.Text)
	}
	if hold := a.edit(v.Edits, given); hold != nil {
		return a.life.prepared(hold)
	}
	return next()
}

// edit puts what a hook printed into the job's ad, from which all that follows is read
// again: the program and its arguments, its environment, its files. Whether files are
// moved is decided by then. What it printed as it was given edits nothing: some hooks
// print the whole ad with their changes, and its paths are those of the scratch directory.
//
// A hook that names another program by its full path means that file, and not one of that
// name in the scratch directory, for which HTCondor's starter looks where it has
// transferred an executable: its documents have a hook choose between programs of the
// machine.
func (a *activation) edit(edits, given *classad.Ad) *protocol.Hold {
	edits.Delete("ShouldTransferFiles")
	for name, e := range edits.Clone().All() {
		if was, ok := given.Lookup(name); ok && was.String() == e.String() {
			edits.Delete(name)
		}
	}
	if edits.Len() == 0 {
		return nil
	}
	ad := a.job.Ad.Clone() // others may be reading it
	ad.Update(edits)
	cmd, _ := ad.EvalString("Cmd", nil)
	if _, said := edits.Lookup("TransferExecutable"); !said && cmd != a.job.Text("Cmd") && filepath.IsAbs(cmd) {
		ad.SetBool("TransferExecutable", false)
	}
	edited, err := a.source.Read(ad, a.box.Scratch(), a.home())
	if err != nil {
		return a.holds.Broken(fmt.Errorf("the job as its hook left it: %w", err))
	}
	a.job, a.place.Job = edited, edited
	return a.chooseRunner()
}
