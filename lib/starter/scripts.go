// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// PreCmd of a job names a program that runs when the job's input is there and
// before the job, PostCmd one that runs when the job has ended and before its
// output is sent. HTCondor calls them obsolete: since 25.11 they run only where the
// owner's STARTER_ALLOW_JOB_PRE_AND_POST_CMD is true, and are ignored, with a line
// in StarterLog, everywhere else.
//
// Each is given Pre- or PostArguments (or Args) and Pre- or PostEnvironment (or
// Env), and of the job's own environment only what the starter says. It runs as the
// job's user where the job's files are, with nothing on its standard files, in the
// job's control group and with its core limit, ten steps nicer. Its end means
// something only to a job with SuccessPre- or SuccessPostExitCode: then another end
// holds the job. An order to leave ends it at once, with all that it has started.

// scripts is what an activation knows of these programs.
type scripts struct {
	asked   bool // whether they may run was asked
	allowed bool
	begun   bool          // that before the job was started, or there is none
	after   bool          // that after the job was started
	ads     []*classad.Ad // what the shadow is told of them
}

// scriptNice is the niceness of such a program, whatever JOB_RENICE_INCREMENT says.
const scriptNice = 10

// script is one such program.
type script struct {
	name string // Pre or Post, before its attributes
	path string
	args []string // with its own name first
	code reason.Code
}

// scriptOf returns the program that name ("Pre", "Post") stands for, nil if the job
// has none or it may not run.
func (a *activation) scriptOf(name string) (*script, error) {
	j, s := a.job, &a.scripts
	cmd := j.Text(name + "Cmd")
	if cmd == "" {
		return nil, nil
	}
	if !s.asked {
		const knob = "STARTER_ALLOW_JOB_PRE_AND_POST_CMD"
		s.asked, s.allowed = true, a.ownerWants(a.plan.Settings.Scripts)
		if !s.allowed && a.log != nil {
			a.log.Warn(knob + " evaluated to false, PreCmd and PostCmd will be ignored")
		}
	}
	if !s.allowed {
		return nil, nil
	}
	p := &script{name: name, path: job.Under(a.box.Scratch(), cmd), code: reason.PreScriptFailed}
	if name == "Post" {
		p.code = reason.PostScriptFailed
	}
	var err error
	if v2 := j.Text(name + "Arguments"); v2 != "" {
		p.args, err = jobenv.ArgsFromV2(v2)
	} else {
		p.args = jobenv.ArgsFromV1(j.Text(name + "Args"))
	}
	p.args = append([]string{"condor_" + name + "script"}, p.args...)
	return p, err
}

// runBefore starts the program before the job and returns true, or false if the job
// may begin: then there is none, or it has run.
func (a *activation) runBefore() bool {
	if a.scripts.begun {
		return false
	}
	a.scripts.begun = true
	p, err := a.scriptOf("Pre")
	if err != nil {
		a.perform(a.life.spawned(a.holds.Broken(err)))
		return true
	}
	if p == nil {
		return false
	}
	a.runScript(p, a.life.prepared)
	return true
}

// runAfter starts the program after the job and returns true, or false if there is
// none. A job that goes on after its state is saved has not ended, and one that
// was killed leaves no time.
func (a *activation) runAfter() bool {
	if e := a.life.evicted; e != nil && e.hard || a.life.held || a.saving() {
		return false
	}
	p, err := a.scriptOf("Post")
	if err != nil {
		a.perform(a.life.finished(a.holds.Broken(err)))
		return true
	}
	if p == nil {
		return false
	}
	a.disk = a.box.Usage()
	a.notify(job.Exited)
	a.scripts.after = true
	a.runScript(p, func(hold *protocol.Hold) []duty {
		if hold != nil {
			return a.life.finished(hold)
		}
		return a.sendOutput()
	})
	return true
}

// runScript starts p. What keeps it from starting, or its end, is told to next.
func (a *activation) runScript(p *script, next func(*protocol.Hold) []duty) {
	family, hold, err := a.spawnScript(p)
	switch {
	case err != nil && p.name == "Pre":
		a.perform(a.unable(err))
		return
	case err != nil: // the job has run, and to run it again is no remedy
		hold = a.holds.Script(p.path, p.args[1:], err)
	}
	if hold != nil {
		a.perform(next(hold))
		return
	}
	began := time.Now()
	a.async(func(ctx context.Context) func() []duty {
		cut := false
		select {
		case <-family.Done():
		case <-ctx.Done():
			cut = true
			_, _ = family.Kill() // Close finds what this has not
			<-family.Done()
		}
		status := family.Status()
		ended := time.Now()
		left, err := family.Close()
		return func() []duty {
			a.problem(err)
			if a.log != nil {
				a.log.Info(strings.ToLower(p.name)+" script has ended", "pid", family.Main().PID, "how", status.String(), "processes_left", left)
			}
			if cut {
				return next(nil) // the life knows why
			}
			ad := scriptAd(p.name, family.Main(), began, ended, status)
			want, said := job.Promised(a.job.Ad, "Success"+p.name)
			if !said || job.SameEnd(status, want) {
				if p.name == "Post" { // HTCondor forgets the other when the job begins
					a.scripts.ads = []*classad.Ad{ad}
				}
				return next(nil)
			}
			a.scripts.ads = []*classad.Ad{ad}
			a.notify(job.ScriptFailed)
			return next(a.holds.From(p.code, 0, p.name+" script failed."))
		}
	})
}

// spawnScript starts p as the job's user.
func (a *activation) spawnScript(p *script) (host.Family, *protocol.Hold, error) {
	dir := a.job.RunDir(a.box.Scratch())
	var more []string
	if p.name == "Post" {
		more = append(more, mainEnd(a.record.Status))
	}
	if hold, err := a.makeRoom(); hold != nil || err != nil {
		return nil, hold, err
	}
	// _CONDOR_JOB_IWD is where the job itself begins.
	env, err := a.environment(a.job.StartDir(a.box.Scratch()), p.name, more...)
	if err != nil {
		return nil, a.holds.Broken(err), nil
	}
	if err := a.furnish(); err != nil {
		return nil, nil, err
	}
	core, _ := a.job.Limits()
	limits, err := a.limitsOf(&core, nil)
	if err != nil {
		return nil, nil, err
	}
	if a.log != nil {
		a.log.Info("about to exec "+p.name+" script", "path", p.path, "args", jobenv.ArgsToV2(p.args[1:]))
	}
	family, err := a.host.Spawner.Spawn(host.SpawnSpec{
		Path: p.path, Args: p.args, Env: env, Dir: dir, User: a.plan.RunAs, Bond: host.Bound, Nice: scriptNice, Limits: limits,
		Space: a.room.space, Group: a.note.Group, Marker: a.note.Marker, TrackGID: a.note.TrackGID,
	})
	if short := a.short(err); short != nil {
		return nil, nil, short
	}
	if err != nil {
		return nil, a.holds.Script(p.path, p.args[1:], err), nil
	}
	a.note.Job = family.Main()
	a.problem(a.box.Record(a.note))
	return family, nil, nil
}

// mainEnd tells a program after the job how that has ended.
func mainEnd(s host.ExitStatus) string {
	if s.Signal != 0 {
		return fmt.Sprintf("_CONDOR_MAINJOB_EXIT_SIGNAL=%d", s.Signal)
	}
	return fmt.Sprintf("_CONDOR_MAINJOB_EXIT_CODE=%d", s.Code)
}

// scriptAd is what a shadow is told of a program before or after the job.
func scriptAd(name string, main host.ProcID, began, ended time.Time, s host.ExitStatus) *classad.Ad {
	ad := classad.NewAd()
	ad.SetInt(name+"JobPid", int64(main.PID))
	ad.SetInt(name+"JobStartDate", began.Unix())
	ad.SetReal(name+"JobDuration", ended.Sub(began).Seconds())
	ad.SetBool(name+"ExitBySignal", s.Signal != 0)
	if s.Signal != 0 {
		ad.SetInt(name+"ExitSignal", int64(s.Signal))
		ad.SetString(name+"ExitReason", "died on "+job.SignalText(s.Signal))
	} else {
		ad.SetInt(name+"ExitCode", int64(s.Code))
	}
	return ad
}
