// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"cmp"
	"os"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/transfer"
)

// settling is how long a job runs before its starter cares for more than it.
const settling = time.Second

// groupName is the control group of the slot: EXECUTE with slashes turned to
// underscores, and the slot with its host.
func groupName(p *protocol.Plan) string {
	name := []byte(p.Execute + "_" + p.SlotFullName)
	for i, c := range name {
		if c == '/' {
			name[i] = '_'
		}
	}
	return string(name)
}

// environment is that of the job or, with a script, of a program before or after
// it that starts in dir.
func (a *activation) environment(dir, script string, more ...string) ([]string, error) {
	p, j := a.plan, a.job
	machine, err := a.machineAd()
	if err != nil {
		return nil, err
	}
	env, problems, err := sandbox.Environment(sandbox.EnvSpec{
		Job: j.Ad, Machine: machine, Settings: p.Settings.Environment, Slot: p.SlotName, Scratch: a.box.Scratch(), Temp: a.room.temp, Iwd: dir, Cpus: p.Cpus,
		StarterPID: a.note.Starter.PID, Home: a.home(), Inherited: a.env, Chirp: a.input.Chirp, Creds: a.input.Creds, Marker: a.note.Marker,
		Script: script, More: more,
	})
	a.record.Problems = append(a.record.Problems, problems...)
	return env, err
}

// machineAd is the ad of the machine, for who only reads it.
func (a *activation) machineAd() (ad *classad.Ad, err error) {
	if a.machine == nil {
		a.machine, err = classad.ParseAd(a.plan.MachineAd, classad.Old)
	}
	return a.machine, err
}

// furnish writes the ads that the job may read and lists what is there before the
// first program of the job runs: all that is new or changed later is its output.
func (a *activation) furnish() error {
	if a.furnished {
		return nil
	}
	if err := a.place.WriteAds(); err != nil {
		return err
	}
	if err := a.listInput(); err != nil {
		return err
	}
	a.furnished = true
	return nil
}

// listInput lists what is in the scratch directory, once.
func (a *activation) listInput() error {
	if !a.job.Moves || a.before != nil {
		return nil
	}
	return a.asUser(func() (err error) {
		a.before, err = transfer.List(a.box.Root())
		return err
	})
}

// spawn has the runner start the job. What keeps it from starting is why it is held; an error
// is the machine's fault.
func (a *activation) spawn() (*protocol.Hold, error) {
	p, j, dir := a.plan, a.job, a.job.StartDir(a.box.Scratch())
	if !a.record.Started.IsZero() { // the run before may have put something in the way
		if hold, err := a.makeRoom(); hold != nil || err != nil {
			return hold, err
		}
	}
	if !j.Moves {
		if h := a.checkIwd(j.RunDir(a.box.Scratch())); h != nil {
			return h, nil
		}
	}
	env, err := a.environment(dir, "")
	if err != nil {
		return a.holds.Broken(err), nil
	}
	a.jobEnv = env
	if err := a.furnish(); err != nil {
		return nil, err
	}
	files, hold := a.openStd()
	defer func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}()
	if hold != nil {
		return hold, nil
	}
	for i, f := range a.input.Piped {
		if f != nil {
			files[i] = f
		}
	}
	a.source.Starting(a.jobEnv)
	a.logExec()
	run, err := a.runner.ready.Start(runner.Program{
		Path: j.Cmd, Args: j.Args, Env: env, Dir: dir, Home: j.RunDir(a.box.Scratch()), Files: files, Nice: p.Settings.Niceness(j.Ad, time.Now()),
	})
	if fault := a.runnerFault(err); fault != nil {
		return nil, fault
	}
	a.source.Executed()
	a.input.Piped = [3]*os.File{} // the job has its own now
	if err != nil {
		return a.holds.Refusal(err), nil
	}
	a.family, a.done = run, run.Done()
	a.sayLacks()
	a.relimit()
	a.record.Started = time.Now()
	main := run.Main()
	a.say(protocol.Running{Proc: main})
	a.note.Job = main
	a.problem(a.box.Record(a.note))
	a.stopWatching() // of an earlier run
	a.updates = time.NewTimer(p.Settings.First())
	a.settled = time.NewTimer(settling)
	a.polls.begin(p.Settings.Poll)
	if p.Volume != nil {
		a.diskLooks.begin()
	}
	return nil, nil
}

// noteStrays writes down which processes of the job carry no mark, for who clears
// away what is left when startd and starter are killed together.
func (a *activation) noteStrays() {
	strays, err := a.family.Unmarked()
	slices.SortFunc(strays, func(a, b host.ProcID) int { return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Start, b.Start)) })
	if err != nil || slices.Equal(strays, a.note.Strays) {
		return // at the next look
	}
	a.note.Strays = strays
	a.problem(a.box.Record(a.note))
}

// checkIwd looks whether the job can start in dir.
func (a *activation) checkIwd(dir string) *protocol.Hold {
	if err := a.host.enter(a.plan.RunAs, dir); err != nil {
		return a.holds.Iwd(dir, err)
	}
	return nil
}

// keepsStd reports whether the job adds to the standard files that are there: it
// ran before in this activation, or in an earlier one which left them in its
// checkpoint.
func (a *activation) keepsStd() bool {
	return !a.record.Started.IsZero() || a.job.KeepsStd()
}

// openStd opens the standard files: input, output, error. A nil one is the
// null device. They are the caller's to close, with an error too.
func (a *activation) openStd() (files [3]*os.File, hold *protocol.Hold) {
	j := a.job
	if a.plan.RunAs != nil {
		return a.openStdAs(a.plan.RunAs)
	}
	write := os.O_WRONLY | os.O_CREATE | os.O_TRUNC | os.O_APPEND
	if a.keepsStd() {
		write &^= os.O_TRUNC
	}
	var err error
	if j.Stdin != "" {
		if files[0], err = os.Open(j.Stdin); err != nil {
			return files, a.holds.Std(j.Stdin, "standard input", err)
		}
	}
	if j.Stdout.Path != "" {
		if files[1], err = os.OpenFile(j.Stdout.Path, write, 0o644); err != nil {
			hold = a.holds.Std(j.Stdout.Path, "standard output", err)
		}
	}
	switch {
	case j.Stderr.Path == "":
	case j.Stderr.Path == j.Stdout.Path && hold != nil:
	case j.Stderr.Path == j.Stdout.Path:
		// one open file for both, so that neither overwrites the other
		if files[2], err = os.OpenFile(j.Stderr.Path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			return files, a.holds.Std(j.Stderr.Path, "standard error", err)
		}
	default:
		if files[2], err = os.OpenFile(j.Stderr.Path, write, 0o644); err != nil && hold == nil {
			return files, a.holds.Std(j.Stderr.Path, "standard error", err)
		}
	}
	return files, hold // the standard error is there even if the output cannot be
}
