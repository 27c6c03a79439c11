// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Hooks of a job are programs of the machine's owner. Which ones a job has says its
// keyword (lib/hook, JobHooks). Each runs as the job's user, in the scratch directory, with
// the starter's environment and what the starter says to the job's programs, and has the
// job's ad without its secrets on its standard input; the machine's ad is a file that
// _CONDOR_MACHINE_AD names. What it writes to its standard error is in the starter's log.
//
// PREPARE_JOB_BEFORE_TRANSFER and PREPARE_JOB are waited for, without a limit: what they
// print is put into the job's ad, and they may refuse the job. UPDATE_JOB_INFO is started
// STARTER_INITIAL_UPDATE_INTERVAL after the job and every STARTER_UPDATE_INTERVAL from then
// on, and is not waited for. JOB_EXIT is waited for during JOB_EXIT_TIMEOUT, before anybody is told how the job has ended. It is
// run as well for a job that was prepared by a hook and then never started, so that what
// was set up can be taken down.
//
// A hook sees the machine as the starter does, not as the job does (MOUNT_UNDER_SCRATCH
// and its likes), and no limit of the slot is put on it: it is the owner's, who may have
// to do more than the job may. An order to leave ends it with all that it has started.

// hooks are what an activation knows of the hooks of its job.
type hooks struct {
	chosen   hook.Chosen
	prepared bool // a prepare hook was started
	exited   bool // JOB_EXIT was started
	update   *updateHook
	again    bool // there is news for UPDATE_JOB_INFO, which still runs
}

// updateHook is an UPDATE_JOB_INFO that runs.
type updateHook struct {
	run    *hook.Run
	cancel context.CancelFunc
}

// end ends it and waits until nothing of it is left.
func (u *updateHook) end() {
	if u != nil {
		u.cancel()
		<-u.run.Done()
	}
}

// chooseHooks finds the hooks of the job. The error is that one of them may not be used:
// then the job does not run here.
func (a *activation) chooseHooks() error {
	c := a.plan.Settings.Hooks.Choose(a.job.Text("HookKeyword"), func(path string) bool {
		return hook.CheckPath("", path, os.Stat) == nil
	})
	if a.log != nil {
		for _, line := range c.Said {
			a.log.Info(line)
		}
	}
	a.hooks.chosen = c
	return c.Unsound(os.Stat)
}

// startHook starts a hook as the job's user, with an ad on its standard input. It ends
// with ctx.
func (a *activation) startHook(ctx context.Context, h hook.JobHook, args []string, input *classad.Ad) (*hook.Run, error) {
	path := a.hooks.chosen.Path(h)
	machine, err := a.machineAd()
	if err != nil {
		return nil, err
	}
	var more []string
	if a.family != nil && a.life.phase == running {
		more = append(more, "_CONDOR_JOB_PIDS="+strconv.Itoa(a.family.Main().PID))
	}
	p := a.plan
	env, problems := sandbox.HookEnvironment(sandbox.EnvSpec{
		Job: a.job.Ad, Machine: machine, Settings: p.Settings.Environment, Slot: p.SlotName, Scratch: a.box.Scratch(),
		Iwd: a.job.StartDir(a.box.Scratch()), Cpus: p.Cpus, StarterPID: a.note.Starter.PID, Home: a.home(), Inherited: a.env,
		Chirp: a.input.Chirp, Creds: a.input.Creds, Marker: a.note.Marker, More: more,
	})
	a.record.Problems = append(a.record.Problems, problems...)
	spec := host.SpawnSpec{
		Path: path, Args: append([]string{path}, args...), Env: env, Dir: a.box.Scratch(), User: p.RunAs, Bond: host.Bound, TrackGID: a.note.TrackGID,
	}
	if h != hook.UpdateJobInfo { // the job is in its group
		spec.Group = a.note.Group
	}
	runner := hook.Runner{Spawner: a.host.Spawner, Census: a.host.Census}
	run, err := runner.Ask(ctx, string(h), spec, input.Text(classad.Old))
	if err == nil && a.log != nil {
		msg := fmt.Sprintf("%s (%s) invoked.", h, path)
		if h == hook.JobExit {
			msg = fmt.Sprintf("%s (%s) invoked with reason: %q", h, path, args[0])
		}
		a.log.Info(msg)
	}
	return run, err
}

// runUpdateHook starts UPDATE_JOB_INFO with how the job is now. One that still runs is
// followed by another when it has ended, for which it has the time between two updates.
func (a *activation) runUpdateHook() {
	path := a.hooks.chosen.Path(hook.UpdateJobInfo)
	if path == "" || a.life.phase != running || a.family == nil {
		return
	}
	if a.hooks.update != nil {
		a.hooks.again = true
		return
	}
	if u, err := a.family.Usage(); err == nil {
		a.record.Usage = u
	}
	moment := job.Runs
	if a.life.suspended {
		moment = job.Suspended
	}
	limit := a.plan.Settings.Update
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("it took longer than STARTER_UPDATE_INTERVAL, %v", limit))
	run, err := a.startHook(ctx, hook.UpdateJobInfo, nil, a.hookAd(moment))
	if err != nil {
		cancel()
		a.hookNotStarted(hook.UpdateJobInfo, path, err)
		return
	}
	a.hooks.update, a.hooks.again = &updateHook{run, cancel}, false
	go func() {
		report := run.Report()
		cancel()
		_ = a.Do(context.Background(), func() { // an activation that is over logs nothing more
			a.logHook(hook.UpdateJobInfo, path, report, report.Failed())
			if u := a.hooks.update; u == nil || u.run != run {
				return
			}
			if a.hooks.update = nil; a.hooks.again {
				a.runUpdateHook()
			}
		})
	}()
}

// takeUpdateHook returns the UPDATE_JOB_INFO that runs, nil for none. No other follows it.
func (a *activation) takeUpdateHook() *updateHook {
	u := a.hooks.update
	a.hooks.update, a.hooks.again = nil, false
	return u
}

// runExitHook starts JOB_EXIT and returns true, or false if there is none or it was
// started. next goes on when it has ended.
func (a *activation) runExitHook(next func()) bool {
	path := a.hooks.chosen.Path(hook.JobExit)
	if path == "" || a.hooks.exited || !a.life.ran && !a.hooks.prepared {
		return false
	}
	a.hooks.exited = true
	limit := a.hooks.chosen.ExitTimeout
	if e := a.life.evicted; e != nil && e.hard {
		limit = min(limit, a.outputPause()) // its startd waits twice as long
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("it took longer than %v, see %s_HOOK_JOB_EXIT_TIMEOUT", limit, a.hooks.chosen.Keyword))
	run, err := a.startHook(ctx, hook.JobExit, []string{a.exitWord()}, a.hookAd(job.Exited))
	if err != nil {
		cancel()
		a.hookNotStarted(hook.JobExit, path, err)
		return false
	}
	a.async(func(order context.Context) func() []duty {
		select {
		case <-run.Done():
		case <-order.Done():
		}
		cancel()
		report := run.Report()
		return func() []duty {
			a.logHook(hook.JobExit, path, report, report.Failed())
			next()
			return nil
		}
	})
	return true
}

// exitWord is the argument of JOB_EXIT: how the job has left. A shadow that takes its job
// back says only of one that it removes with its output (condor_rm -transfer) what for;
// else it is "evict", as with HTCondor: to take a job for removed that comes back could
// cost what it has done.
func (a *activation) exitWord() string {
	e := a.life.evicted
	switch {
	case e == nil && a.life.ran:
		return "exit"
	case e == nil:
	case e.said == protocol.MannerHold || e.code == int(reason.UserRequest):
		return "hold"
	case e.said == protocol.MannerRemove || e.code == int(reason.JobRemoved) || e.final:
		return "remove"
	}
	return "evict"
}

// hookAd is the job's ad with how the job is, or has ended.
func (a *activation) hookAd(m job.Moment) *classad.Ad {
	ad := a.job.ForSandbox(a.box.Scratch())
	if !a.life.ran {
		return ad
	}
	s := a.state(m)
	ad.Update(a.source.Measured(s))
	if !s.Ended.IsZero() && s.Status.Signal == 0 { // documented; HTCondor has it of signals alone
		ad.SetString("ExitReason", fmt.Sprintf("exited normally with status %d", s.Status.Code))
	}
	return ad
}

// hookNotStarted writes down why a hook for which nothing waits could not be started.
func (a *activation) hookNotStarted(h hook.JobHook, path string, err error) {
	if a.log != nil {
		a.log.Error(fmt.Sprintf("failed to spawn %s (%s)", h, path), "err", err)
	}
}

// logHook writes down what a hook wrote to its standard error, and what was wrong with it.
func (a *activation) logHook(h hook.JobHook, path string, r *hook.Report, failed bool) {
	if a.log == nil {
		return
	}
	level, name := slog.LevelDebug, string(h)
	if failed || r.Failed() {
		level, name = slog.LevelError, name+" Failure"
	}
	ctx := context.Background()
	a.log.Log(ctx, level, fmt.Sprintf("%s (%s) %s", h, path, r.Status))
	if r.Err != nil {
		a.log.Error(fmt.Sprintf("%s (%s) was ended", h, path), "err", r.Err)
	}
	if r.Leftovers > 0 {
		a.log.Warn(fmt.Sprintf("%s (%s) left processes behind, which were ended", h, path), "count", r.Leftovers)
	}
	if text := strings.TrimRight(string(r.Stderr), "\n"); text != "" {
		a.log.Log(ctx, level, "Stderr of "+name+":")
		for line := range strings.SplitSeq(text, "\n") {
			a.log.Log(ctx, level, fmt.Sprintf("(%s): %s", name, line))
		}
	}
}
