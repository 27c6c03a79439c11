// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"slices"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/reason"
)

// A job may reach a starter that does not offer what the job asks for: its
// Requirements were written by hand, or an attribute was set that condor_submit
// knows nothing about. Such a job never runs as if it had not asked. It is not sent
// back to the queue either, where the negotiator would match it with the same slot
// again: it is held, and HoldReason names what it asked for. HTCondor's starter does
// so with a container that cannot be launched (code 35) and a virtual machine (6).

// Universe is HTCondor's number of a universe.
type Universe int64

// HTCondor's universes. That one stands here says nothing about whether it is run:
// the Offers do.
const (
	Standard  Universe = 1
	PVM       Universe = 4
	Vanilla   Universe = 5
	Scheduler Universe = 7
	MPI       Universe = 8
	Grid      Universe = 9
	Java      Universe = 10
	Parallel  Universe = 11
	Local     Universe = 12
	VM        Universe = 13
)

// String is HTCondor's name of u, "unknown" where it has none.
func (u Universe) String() string {
	switch u {
	case Standard:
		return "standard"
	case PVM:
		return "pvm"
	case Vanilla:
		return "vanilla"
	case Scheduler:
		return "scheduler"
	case MPI:
		return "mpi"
	case Grid:
		return "grid"
	case Java:
		return "java"
	case Parallel:
		return "parallel"
	case Local:
		return "local"
	case VM:
		return "vm"
	}
	return "unknown"
}

// Demand is something that a job, or the owner of the machine for it, may ask for
// beyond a universe.
type Demand uint8

// The demands.
const (
	DockerContainer  Demand = iota + 1
	Container               // of whatever runtime
	SingularityImage        // an image that only Singularity and Apptainer know
	OwnersContainer         // what the owner of the machine has all jobs run in
	EncryptedScratch
	ToolDaemon
	NamedRoot     // a directory of the machine's owner as /
	StoppedAtExec // SIGSTOP before the first instruction
)

// asking is how a job asks for a demand.
type asking struct {
	demand Demand
	truths []string // attributes of the job that ask for it when true
	texts  []string // those that ask for it by a text
	knobs  []string // of the owner, who asks for it where one is true
	what   string   // a noun, for the reason
	code   reason.Code
}

// askings are tried in this order. docs/jobs.md lists them.
var askings = [...]asking{
	{demand: DockerContainer, truths: []string{"WantDocker"}, texts: []string{"DockerImage"}, what: "a Docker container", code: reason.InvalidDockerImage},
	{
		demand: Container, truths: []string{"WantContainer", "WantSIF", "WantSandboxImage", "WantDockerImage"}, texts: []string{"ContainerImage"},
		what: "a container", code: reason.InvalidDockerImage,
	},
	// Where the owner wrote no SINGULARITY_JOB HTCondor ignores the image. Nobody
	// names one and means to run without it.
	{demand: SingularityImage, texts: []string{"SingularityImage"}, what: "a container", code: reason.InvalidDockerImage},
	// To run bare what the owner wants contained would open the machine.
	{
		demand: OwnersContainer, knobs: []string{"SINGULARITY_JOB", "USE_DEFAULT_CONTAINER"},
		what: "a container, as the owner of this machine wants", code: reason.InvalidDockerImage,
	},
	{demand: EncryptedScratch, truths: []string{"EncryptExecuteDirectory"}, what: "an encrypted scratch directory", code: reason.FailedToCreateProcess},
	// No document of today says what condor_submit's requested_chroot means, and HTCondor's
	// daemons do not know NAMED_CHROOT any more.
	{demand: NamedRoot, texts: []string{"RequestedChroot"}, what: "another root directory", code: reason.FailedToCreateProcess},
	{demand: ToolDaemon, texts: []string{"ToolDaemonCmd"}, what: "a tool daemon", code: reason.FailedToCreateProcess},
	{demand: StoppedAtExec, truths: []string{"SuspendJobAtExec"}, what: "to be stopped when it begins", code: reason.FailedToCreateProcess},
}

// Files says where a job finds its files.
type Files uint8

// The ways to find them.
const (
	InPlace Files = iota // where they lie
	Moved                // in the scratch directory, to which they are moved
)

// Request is a job for which a runner is sought.
type Request struct {
	Job *classad.Ad
	// Wanted says whether the owner's expression of this name, one of those in
	// askings, is true for the job here.
	Wanted func(knob string) bool
}

// Choose returns the first runner that takes the job. The error is a *Refusal that
// names what the job asks for and none of them offers.
func Choose(runners []Runner, r Request) (Runner, error) {
	universe := Vanilla // of a job that names none
	if n, named := r.Job.EvalInt("JobUniverse", nil); named {
		universe = Universe(n)
	}
	able := keep(runners, func(o Offer) bool { return slices.Contains(o.Universes, universe) })
	if len(able) == 0 {
		return nil, unoffered(fmt.Sprintf("the %v universe", universe), fmt.Sprintf("JobUniverse %d", universe), reason.FailedToCreateProcess)
	}
	for _, f := range askings {
		attr := f.asker(r)
		if attr == "" {
			continue
		}
		if able = keep(able, func(o Offer) bool { return slices.Contains(o.Meets, f.demand) }); len(able) == 0 {
			return nil, unoffered(f.what, attr, f.code)
		}
	}
	return able[0], nil
}

// keep returns the runners whose offers are good.
func keep(runners []Runner, good func(Offer) bool) []Runner {
	var kept []Runner
	for _, r := range runners {
		if good(r.Offer()) {
			kept = append(kept, r)
		}
	}
	return kept
}

// asker is the attribute or knob by which r asks for f, "" if it does not.
func (f asking) asker(r Request) string {
	for _, attr := range f.texts {
		if text, _ := r.Job.EvalString(attr, nil); text != "" {
			return attr
		}
	}
	for _, attr := range f.truths {
		if yes, _ := r.Job.EvalBool(attr, nil); yes {
			return attr
		}
	}
	for _, knob := range f.knobs {
		if r.Wanted(knob) {
			return knob
		}
	}
	return ""
}

func unoffered(what, attr string, code reason.Code) *Refusal {
	return &Refusal{Code: code, Text: fmt.Sprintf("The job asks for %s (%s), which this Execution Point does not offer", what, attr)}
}
