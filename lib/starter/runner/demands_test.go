// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/reason"
)

// What a job asks for in vain names the attribute; what is not asked for, or is
// asked for where HTCondor ignores it, refuses nothing.
func TestChoose(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		job   string
		knobs string // that are true
		code  reason.Code
		want  string // a part of the reason, "" if the job runs
	}{
		{job: ""},
		{job: "JobUniverse = 5"},
		{job: "JobUniverse = 11"},
		{job: "JobUniverse = 10", code: 6, want: "the java universe (JobUniverse 10)"},
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
		{job: "x509userproxy = \"/tmp/x509up_u5\""},
		{job: "EncryptExecuteDirectory = true", code: 6, want: "an encrypted scratch directory"},
		{job: "EncryptExecuteDirectory = false"},
		{job: "MountUnderScratch = \"/data\""},
		{job: `RequestedChroot = "sl6"`, code: 6, want: "another root directory (RequestedChroot)"},
		{job: "ToolDaemonCmd = \"gdb\"", code: 6, want: "a tool daemon"},
		{job: "SuspendJobAtExec = true", code: 6, want: "to be stopped when it begins"},
	} {
		ad, err := classad.ParseAd(tt.job, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Job: ad, Wanted: func(knob string) bool { return knob == tt.knobs }}
		got, err := Choose(All(Machine{}), r)
		if tt.want == "" {
			if _, plain := got.(*Process); err != nil || !plain {
				t.Errorf("%q: %v, %v; want a plain process", tt.job, got, err)
			}
			continue
		}
		var refusal *Refusal
		if !errors.As(err, &refusal) || got != nil || refusal.Code != tt.code || refusal.Subcode != 0 || !strings.Contains(refusal.Text, tt.want) {
			t.Errorf("%q: %v, %v; want %d %q", tt.job, got, err, tt.code, tt.want)
		}
	}
}

// offering is a runner that does nothing but offer.
type offering struct {
	Runner
	offer Offer
}

func (o *offering) Offer() Offer { return o.offer }

// A job gets the first runner that offers its universe and meets all its demands; a
// reason names the first demand that no runner meets together with those before.
func TestChooseAmongSeveral(t *testing.T) {
	t.Parallel()
	docker := &offering{offer: Offer{Universes: []Universe{Vanilla}, Meets: []Demand{DockerContainer, EncryptedScratch}}}
	other := &offering{offer: Offer{Universes: []Universe{Vanilla, Java}, Meets: []Demand{Container, DockerContainer}}}
	runners := append(All(Machine{}), docker, other)
	for _, tt := range []struct {
		job  string
		want Runner // nil if it is refused
		why  string
	}{
		{job: "", want: runners[0]},
		{job: "JobUniverse = 10", want: other},
		{job: `DockerImage = "a"`, want: docker},
		{job: `ContainerImage = "a"`, want: other},
		{job: "WantDocker = true\nWantContainer = true", want: other},
		{job: "WantDocker = true\nEncryptExecuteDirectory = true", want: docker},
		{job: "WantDocker = true\nWantContainer = true\nEncryptExecuteDirectory = true", why: "an encrypted scratch directory (EncryptExecuteDirectory)"},
		{job: "JobUniverse = 11\nWantDocker = true", why: "a Docker container (WantDocker)"},
		{job: "JobUniverse = 13", why: "the vm universe (JobUniverse 13)"},
		{job: "ToolDaemonCmd = \"gdb\"", why: "a tool daemon"},
	} {
		ad, err := classad.ParseAd(tt.job, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Choose(runners, Request{Job: ad, Wanted: func(string) bool { return false }})
		if got != tt.want || (err == nil) != (tt.want != nil) || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%q: %+v, %v", tt.job, got, err)
		}
	}
}

// What the runners offer is what the machine's ad says and what is not refused.
func TestOffers(t *testing.T) {
	t.Parallel()
	var abilities []string
	for _, o := range Offers() {
		abilities = append(abilities, o.Abilities...)
		for _, u := range o.Universes {
			if u.String() == "unknown" {
				t.Errorf("universe %d is run and has no name", u)
			}
		}
	}
	if !slices.Equal(abilities, []string{"HasJobNetworking"}) {
		t.Errorf("%q", abilities)
	}
}

// docs/jobs.md lists every attribute by which a job demands something, with the code
// of its hold. lib/starter holds what the document lists to what is refused.
func TestDemandsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(text), "\n## Refused\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	for _, f := range askings {
		for _, attr := range slices.Concat(f.texts, f.truths) {
			row := regexp.MustCompile(fmt.Sprintf("(?m)^\\|[^|\n]*`%s`[^|\n]*\\| *%d *\\|", attr, f.code))
			if !row.MatchString(chapter) {
				t.Errorf("no row says that %s is refused with %d", attr, f.code)
			}
		}
	}
}
