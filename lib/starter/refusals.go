// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/reason"
)

// A job may reach a starter that does not offer what the job asks for: its
// Requirements were written by hand, or an attribute was set that condor_submit
// knows nothing about. Such a job never runs as if it had not asked. It is not sent
// back to the queue either, where the negotiator would match it with the same slot
// again: it is held, and HoldReason names what it asked for. HTCondor's starter does
// so with a container that cannot be launched (code 35) and a virtual machine (6).

// refusal is one thing that a job may ask for in vain.
type refusal struct {
	truths []string    // attributes of the job that ask for it when true
	texts  []string    // those that ask for it by a text
	knobs  []ownerKnob // of the owner, who asks for it where one is true
	what   string      // a noun, for the reason
	code   reason.Code
	only   func(request) bool // whether it would be there otherwise; nil is yes
}

// refusals are tried in this order. docs/jobs.md lists them.
var refusals = [...]refusal{
	{truths: []string{"WantDocker"}, texts: []string{"DockerImage"}, what: "a Docker container", code: reason.InvalidDockerImage},
	{
		truths: []string{"WantContainer", "WantSIF", "WantSandboxImage", "WantDockerImage"}, texts: []string{"ContainerImage"},
		what: "a container", code: reason.InvalidDockerImage,
	},
	// Where the owner wrote no SINGULARITY_JOB HTCondor ignores the image. Nobody
	// names one and means to run without it.
	{texts: []string{"SingularityImage"}, what: "a container", code: reason.InvalidDockerImage},
	// To run bare what the owner wants contained would open the machine.
	{knobs: []ownerKnob{
		{"SINGULARITY_JOB", func(s *Settings) *config.Expr { return s.Singularity }}, {"USE_DEFAULT_CONTAINER", func(s *Settings) *config.Expr { return s.DefaultContainer }},
	}, what: "a container, as the owner of this machine wants", code: reason.InvalidDockerImage},
	{texts: []string{"x509userproxy"}, what: "an X.509 proxy beside it", code: reason.FailedToCreateProcess, only: func(r request) bool { return r.moves }},
	{truths: []string{"EncryptExecuteDirectory"}, what: "an encrypted scratch directory", code: reason.FailedToCreateProcess},
	{texts: []string{"ToolDaemonCmd"}, what: "a tool daemon", code: reason.FailedToCreateProcess},
	{truths: []string{"SuspendJobAtExec"}, what: "to be stopped when it begins", code: reason.FailedToCreateProcess},
}

// universes are HTCondor's names of those that no starter of ours runs.
var universes = map[int64]string{
	1: "standard", 4: "pvm", 7: "scheduler", 8: "mpi", 9: "grid", 10: "java", 12: "local", 13: "vm",
}

// The universes whose jobs are run.
const (
	universeVanilla  = 5
	universeParallel = 11
)

// request is what a job asks for, where it is to run.
type request struct {
	job    *classad.Ad
	moves  bool                 // its files are moved
	wanted func(ownerKnob) bool // the owner's expression is true for this job here
}

// ownerKnob is an expression of the owner by the name of its knob.
type ownerKnob struct {
	name string
	of   func(*Settings) *config.Expr
}

// asker is the attribute or knob by which r asks for f, "" if it does not.
func (f refusal) asker(r request) string {
	if f.only != nil && !f.only(r) {
		return ""
	}
	for _, attr := range f.texts {
		if text, _ := r.job.EvalString(attr, nil); text != "" {
			return attr
		}
	}
	for _, attr := range f.truths {
		if yes, _ := r.job.EvalBool(attr, nil); yes {
			return attr
		}
	}
	for _, knob := range f.knobs {
		if r.wanted(knob) {
			return knob.name
		}
	}
	return ""
}

// refused says what the job asks for in vain, and the code with which it is held
// for that.
func (r request) refused() (code reason.Code, why string, yes bool) {
	// A job that names no universe is of the vanilla one.
	if n, ok := r.job.EvalInt("JobUniverse", nil); ok && n != universeVanilla && n != universeParallel {
		name := universes[n]
		if name == "" {
			name = "unknown"
		}
		return reason.FailedToCreateProcess, unoffered("the "+name+" universe", fmt.Sprintf("JobUniverse %d", n)), true
	}
	for _, f := range refusals {
		if attr := f.asker(r); attr != "" {
			return f.code, unoffered(f.what, attr), true
		}
	}
	return 0, "", false
}

func unoffered(what, attr string) string {
	return fmt.Sprintf("The job asks for %s (%s), which this Execution Point does not offer", what, attr)
}

// refuseJob returns why the job is held before anything of it is run, nil if it
// asks for nothing that this starter does not offer.
func (a *activation) refuseJob() *Hold {
	r := request{job: a.job.ad, moves: a.job.transfer, wanted: func(k ownerKnob) bool { return a.ownerWants(k.of(a.plan.Settings)) }}
	code, why, yes := r.refused()
	if !yes {
		return nil
	}
	return a.holds.from(code, 0, why)
}

// ownerWants evaluates a knob that is an expression over the slot (MY) and the job
// (TARGET); nil is no.
func (a *activation) ownerWants(x *config.Expr) bool {
	if x == nil {
		return false
	}
	machine, err := classad.ParseAd(a.plan.MachineAd, classad.Old)
	if err != nil {
		a.problem(err)
		return false
	}
	yes, _ := x.IsTrue(&classad.Env{My: machine, Target: a.job.ad, Now: time.Now()})
	return yes
}
