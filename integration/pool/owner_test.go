// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
)

// ownersSlots are four partitionable slots whose owner looks at the job: START of
// the first is FALSE without one and that of the second UNDEFINED, the third has
// one user, and the fourth is for all but one.
const ownersSlots = `
SLOT_TYPE_1 = cpus=1,mem=25%,disk=25%
SLOT_TYPE_1_START = TARGET.Kind =?= "false without a job"
SLOT_TYPE_2 = cpus=1,mem=25%,disk=25%
SLOT_TYPE_2_PARTITIONABLE = true
SLOT_TYPE_2_START = TARGET.Kind == "undefined without a job"
NUM_SLOTS_TYPE_2 = 1
SLOT_TYPE_3 = cpus=1,mem=25%,disk=25%
SLOT_TYPE_3_PARTITIONABLE = true
SLOT_TYPE_3_START = TARGET.Kind =!= "neither"
NUM_SLOTS_TYPE_3 = 1
SLOT_TYPE_4 = cpus=1,mem=25%,disk=25%
SLOT_TYPE_4_PARTITIONABLE = true
NUM_SLOTS_TYPE_4 = 1
IS_OWNER = (START =?= False) || (SlotTypeID == 3 && TARGET.Kind =!= "mine") || (SlotTypeID == 4 && TARGET.Kind =?= "not yours")
STARTD_EVENTLOG = $(LOG)/EpEvents
`

// ownersJobs are those that the slots are asked for, three of each kind. None of
// another kind runs in the fourth slot: its claim would take the kept ones too,
// since IS_OWNER is not asked about a job under a claim.
var ownersJobs = []struct {
	slot int
	kind string
	runs bool
}{
	{1, "false without a job", true}, {2, "undefined without a job", true}, {3, "mine", true}, {3, "others", false},
	{4, "not yours", false},
}

// TestOwnerLooksAtTheJob has both sides run jobs under an IS_OWNER that looks at
// the job: the same ones run, the slots are in the same states, and claims
// serve as many jobs.
func TestOwnerLooksAtTheJob(t *testing.T) {
	t.Parallel()
	c := newCondor(t, roomy)
	c.NeedVersion(t, cedar.Version{Major: 25}, "a claim ends for IS_OWNER, and begins for its job only")
	c.begin("condor_negotiator", "condor_schedd")
	sides := []string{realpool.Original, realpool.Ours}
	eps := make(map[string]*realpool.EP)
	for _, kind := range sides {
		eps[kind] = c.NewEP(kind, 4, ownersSlots)
		eps[kind].Begin()
	}
	c.ScheddAnswers()
	for _, kind := range sides {
		dir := filepath.Join(c.Dir, "jobs-"+kind)
		c.Mkdir(dir)
		for i, j := range ownersJobs {
			name := fmt.Sprintf("job%d.sub", i)
			text := fmt.Sprintf("executable = /bin/true\nlog = job%d.log\nshould_transfer_files = no\ntransfer_executable = false\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 1024\n"+
				"requirements = TARGET.Rig == %q && TARGET.SlotTypeID == %d\n+Kind = %q\n+Asked = \"%s %d\"\nqueue 3\n", i, kind, j.slot, j.kind, kind, i)
			c.files(dir, map[string]string{name: text})
			c.Submit(dir, filepath.Join(dir, name))
		}
	}
	saw := make(map[string]string)
	for _, kind := range sides {
		var b strings.Builder
		for i, j := range ownersJobs {
			asked := fmt.Sprintf("Asked == \"%s %d\"", kind, i)
			if !j.runs {
				cluster, _, _ := strings.Cut(c.Tool("condor_q", "-allusers", "-constraint", asked, "-af", "ClusterId"), "\n")
				c.Eventually(asked+" was matched twice", patience, func(context.Context) error {
					if n := strings.Count(c.Log("NegotiatorLog"), "Matched "+strings.TrimSpace(cluster)+"."); n < 2 {
						return fmt.Errorf("%d times", n)
					}
					return nil
				})
				fmt.Fprintf(&b, "%s: %q\n", j.kind, strings.Fields(c.Tool("condor_q", "-allusers", "-constraint", asked, "-af", "NumJobStarts", "JobStatus")))
				continue
			}
			var out string
			c.Eventually(asked+" are done", patience, func(ctx context.Context) (err error) {
				out, err = c.Run(ctx, "condor_history", "-constraint", asked+" && JobStatus == 4", "-af", "LastPublicClaimId")
				if err == nil && len(strings.Fields(out)) != 3 {
					err = fmt.Errorf("so far %q", out)
				}
				return err
			})
			claims := strings.Fields(out)
			slices.Sort(claims)
			fmt.Fprintf(&b, "%s: 3 jobs ran, %d claims\n", j.kind, len(slices.Compact(claims)))
		}
		// Another match may come meanwhile, which is refused: one answer shows both.
		var states string
		c.Eventually(kind+" is at rest", patience, func(ctx context.Context) (err error) {
			states, err = c.Run(ctx, "condor_status", "-direct", eps[kind].Host(), "-sort", "Name", "-af", "SlotID", "State", "Activity", "DynamicSlot")
			if err == nil && strings.Contains(states, "true") {
				err = fmt.Errorf("it has dynamic slots:\n%s", states)
			}
			return err
		})
		b.WriteString(states)
		saw[kind] = b.String()
	}
	if d := gocmp.Diff(saw[realpool.Original], saw[realpool.Ours]); d != "" {
		t.Errorf("original (-) and ours (+):\n%s\n%s", d, realpool.Last(eps[realpool.Ours].Log("StartLog"), 30))
	}
	want := "false without a job: 3 jobs ran, 3 claims\nundefined without a job: 3 jobs ran, 1 claims\nmine: 3 jobs ran, 3 claims\n"
	if !strings.HasPrefix(saw[realpool.Original], want) {
		t.Errorf("what the original does is\n%s", saw[realpool.Original])
	}
	if d := gocmp.Diff(granted(eps[realpool.Original].Log("EpEvents")), granted(eps[realpool.Ours].Log("EpEvents"))); d != "" {
		t.Errorf("claims and activations of each slot in STARTD_EVENTLOG, original (-) and ours (+):\n%s", d)
	}
}

// granted counts the claims that were granted and the jobs that began, by number
// of the event and of the slot.
func granted(events string) map[string]int {
	n := make(map[string]int)
	for event := range strings.SplitSeq(events, "...\n") {
		head, rest, _ := strings.Cut(event, "\n")
		words := strings.Fields(head)
		if len(words) > 1 && (words[0] == "104" || words[0] == "106") && strings.Contains(rest, "Success = true") {
			n[words[0]+" "+words[1][1:4]]++
		}
	}
	return n
}
