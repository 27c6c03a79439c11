// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/reason"
)

// What a job asks for in vain names the attribute; what is not asked for, or is
// asked for where HTCondor ignores it, refuses nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		job   string
		moves bool
		knobs string // that are true
		code  reason.Code
		want  string // a part of the reason, "" if the job runs
	}{
		{job: ""},
		{job: "JobUniverse = 5"},
		{job: "JobUniverse = 11"},
		{job: "JobUniverse = 10", code: 6, want: "the java universe (JobUniverse 10)"},
		{job: "JobUniverse = 12", code: 6, want: "the local universe (JobUniverse 12)"},
		{job: "JobUniverse = 13", code: 6, want: "the vm universe (JobUniverse 13)"},
		{job: "JobUniverse = 77", code: 6, want: "the unknown universe (JobUniverse 77)"},
		{job: "JobUniverse = 5\nWantDocker = true\nDockerImage = \"centos\"", code: 35, want: "a Docker container (DockerImage)"},
		{job: "WantDocker = true", code: 35, want: "a Docker container (WantDocker)"},
		{job: "WantDocker = false\nDockerImage = \"\""},
		{job: "WantDocker = undefined\nDockerImage = undefined\nContainerImage = error"},
		{job: "WantContainer = true\nWantSIF = true\nContainerImage = \"a.sif\"", code: 35, want: "a container (ContainerImage)"},
		{job: "WantSIF = 1 == 1", code: 35, want: "a container (WantSIF)"},
		{job: "WantSandboxImage = true", code: 35, want: "a container (WantSandboxImage)"},
		{job: "WantDockerImage = true", code: 35, want: "a container (WantDockerImage)"},
		{job: "SingularityImage = \"/cvmfs/a.sif\"", code: 35, want: "a container (SingularityImage)"},
		{job: "Pick = 2\nSingularityImage = ifThenElse(Pick > 1, \"b\", undefined)", code: 35, want: "(SingularityImage)"},
		{job: "Pick = 1\nSingularityImage = ifThenElse(Pick > 1, \"b\", undefined)"},
		{job: "", knobs: "SINGULARITY_JOB", code: 35, want: "as the owner of this machine wants (SINGULARITY_JOB)"},
		{job: "", knobs: "USE_DEFAULT_CONTAINER", code: 35, want: "as the owner of this machine wants (USE_DEFAULT_CONTAINER)"},
		{job: "x509userproxy = \"/tmp/x509up_u5\"", moves: true, code: 6, want: "an X.509 proxy beside it (x509userproxy)"},
		{job: "x509userproxy = \"/tmp/x509up_u5\""},
		{job: "EncryptExecuteDirectory = true", code: 6, want: "an encrypted scratch directory"},
		{job: "EncryptExecuteDirectory = false"},
		{job: "MountUnderScratch = \"/data\""},
		{job: "ToolDaemonCmd = \"gdb\"", code: 6, want: "a tool daemon"},
		{job: "SuspendJobAtExec = true", code: 6, want: "to be stopped when it begins"},
	} {
		ad, err := classad.ParseAd(tt.job, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		r := request{job: ad, moves: tt.moves, wanted: func(k ownerKnob) bool { return k.name == tt.knobs }}
		code, why, yes := r.refused()
		if yes != (tt.want != "") || code != tt.code || !strings.Contains(why, tt.want) {
			t.Errorf("%q: %d %q %v; want %d %q", tt.job, code, why, yes, tt.code, tt.want)
		}
	}
}

// Every knob by which an owner asks for something reaches the starter.
func TestRefusingKnobs(t *testing.T) {
	t.Parallel()
	for _, f := range refusals {
		for _, knob := range f.knobs {
			if got := knob.of(configured(t, knob.name+" = TARGET.Wanted\n")); got.String() != "TARGET.Wanted" {
				t.Errorf("%s does not come with the plan", knob.name)
			}
		}
	}
}

// The shadow of a job that is refused holds it, with the code and the reason. No
// process was started, and the job did not begin.
func TestShadowHoldsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		job, knob string
		code      int64
		reason    string
	}{
		{job: "WantDocker = true\nDockerImage = \"centos\"\n", code: 35, reason: "The job asks for a Docker container (DockerImage), which this Execution Point does not offer"},
		{job: "JobUniverse = 10\n", code: 6, reason: "The job asks for the java universe (JobUniverse 10), which this Execution Point does not offer"},
		{knob: "TARGET.ProcId == 0 && MY.Memory > 5", code: 35, reason: "The job asks for a container, as the owner of this machine wants (SINGULARITY_JOB), which this Execution Point does not offer"},
	} {
		p := newPoolPlan(t, tt.job, sleeper(0, 0), func(_ *pool, plan *Plan) {
			if tt.knob != "" {
				plan.Settings = configured(t, "SINGULARITY_JOB = "+tt.knob+"\n")
			}
		})
		rec := p.last()
		end := <-p.ended
		if end.Held == nil || rec.Held == nil || len(p.machine.Families()) != 0 || slices.Contains(p.calls(), "begin_execution") {
			t.Fatalf("%q: %+v, %+v, calls %v", tt.job, end, rec, p.calls())
		}
		code, _ := end.Held.Ad.EvalInt("HoldReasonCode", nil)
		if text, _ := end.Held.Ad.EvalString("ErrorMsg", nil); code != tt.code || text != tt.reason {
			t.Errorf("%q: held with %d %s", tt.job, code, text)
		}
		if rec.Fault != nil {
			t.Errorf("%q: the machine is blamed: %+v", tt.job, rec.Fault)
		}
	}
}
