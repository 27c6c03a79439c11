// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/integration/realpool"
)

// tokenPolicy charges a job a token and some memory, and no cores.
const tokenPolicy = `
CONSUMPTION_POLICY = True
NUM_CLAIMS = 5
MACHINE_RESOURCE_tokens = 6
CONSUMPTION_TOKENS = 1
CONSUMPTION_CPUS = 0
CONSUMPTION_MEMORY = quantize(TARGET.RequestMemory, {64})
SLOT_WEIGHT = Tokens
`

// TestOneCycleMatchesManyTimes has a negotiator give the slot of each side as
// many jobs in one cycle as its consumption policy allows: by NUM_CLAIMS five
// first, and the sixth token in another.
func TestOneCycleMatchesManyTimes(t *testing.T) {
	t.Parallel()
	c := newCondor(t, roomy+"CLAIM_PARTITIONABLE_LEFTOVERS = False\nNEGOTIATOR_MATCHLIST_CACHING = False\nMUST_MODIFY_REQUEST_EXPRS = False\n")
	c.begin("condor_negotiator", "condor_schedd")
	sides := []string{realpool.Original, realpool.Ours}
	eps := make(map[string]*realpool.EP)
	for _, kind := range sides {
		eps[kind] = c.NewEP(kind, 8, tokenPolicy)
		eps[kind].Begin()
	}
	c.ScheddAnswers()
	for _, kind := range sides {
		dir := filepath.Join(c.Dir, "jobs-"+kind)
		c.Mkdir(dir)
		c.files(dir, map[string]string{"job.sub": fmt.Sprintf("executable = /bin/sleep\narguments = 600\nlog = job.log\nshould_transfer_files = no\ntransfer_executable = false\n"+
			"request_cpus = 1\nrequest_memory = 100\nrequest_disk = 1024\nrequirements = TARGET.Rig == %q\n+Asked = %q\nqueue 8\n", kind, kind)})
		c.Submit(dir, filepath.Join(dir, "job.sub"))
	}
	saw := make(map[string]string)
	for _, kind := range sides {
		c.Eventually("six jobs run at "+kind, patience, func(ctx context.Context) error {
			out, err := c.Run(ctx, "condor_q", "-allusers", "-constraint", fmt.Sprintf("Asked == %q && JobStatus == 2", kind), "-af", "ProcId")
			if err == nil && len(strings.Fields(out)) != 6 {
				err = fmt.Errorf("so far %q", out)
			}
			return err
		})
		most := 0
		for cycle := range strings.SplitSeq(c.Log("NegotiatorLog"), "Started Negotiation Cycle") {
			most = max(most, strings.Count(cycle, "Successfully matched with slot1@"+kind+"@"))
		}
		saw[kind] = fmt.Sprintf("%d matches in one cycle\n", most) +
			c.Tool("condor_status", "-direct", eps[kind].Host(), "-sort", "DSlotID", "-af", "SlotType", "State", "Activity", "Cpus", "Memory", "tokens", "SlotWeight", "NumClaims", "NumDynamicSlots")
	}
	if d := gocmp.Diff(saw[realpool.Original], saw[realpool.Ours]); d != "" {
		t.Errorf("original (-) and ours (+):\n%s\n%s", d, realpool.Last(eps[realpool.Ours].Log("StartLog"), 30))
	}
	if !strings.HasPrefix(saw[realpool.Original], "5 matches in one cycle\n") {
		t.Errorf("what the original does is\n%s", saw[realpool.Original])
	}
}
