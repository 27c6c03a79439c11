// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// holding is a rig that holds jobs which use more memory than they asked for,
// and looks at its policy seldom.
const holding = `
MAXJOBRETIREMENTTIME = 300
use policy : HOLD_IF_MEMORY_EXCEEDED
MachineMaxVacateTime = 5
POLLING_INTERVAL = 12
STARTER_INITIAL_UPDATE_INTERVAL = 2
STARTER_UPDATE_INTERVAL = 2
DISABLE_SWAP_FOR_JOB = True
`

// TestDrainLetsIn: a job that a drain let in is held like any other when it uses
// too much memory, while the drain goes on. And when the last of the jobs that
// the drain waited for has ended, the others leave in that moment, and not at
// the next look at the policy.
func TestDrainLetsIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, holding)
	var said [2]string
	var both sync.WaitGroup
	for i, s := range r.sides {
		both.Go(func() { said[i] = s.letsIn(t) })
	}
	both.Wait()
	if said[0] != said[1] {
		t.Errorf("the original: %s\nours: %s", said[0], said[1])
	}
}

// letsIn drains a side and tells how its jobs fared.
func (s *side) letsIn(t *testing.T) string {
	const sub = "executable = job.sh\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\nrequest_memory = 64\nrequest_cpus = 8\n" +
		"requirements = TARGET.Rig == MY.Rig\n"
	running := func(name, more, script string) *job {
		j := s.submit(t, name, sub+more, "", func(dir string) {
			s.rig.files(dir, map[string]string{"job.sh": "#!/bin/sh\n" + strings.ReplaceAll(script, "@DIR@", dir) + "\n"})
		})
		j.wait(eventlog.CodeExecute, 1)
		return j
	}
	const filler = "+Filler = True\n"
	first := running("first", "", "while [ ! -e @DIR@/end ]; do sleep 0.1; done")
	s.rig.Tool("condor_drain", "-graceful", "-start", "TARGET.Filler =?= True", s.firstSlot())
	// tail keeps what has no end of line.
	big := running("big", filler, "(head -c 300000000 /dev/zero; sleep 600) | tail -n 1 > /dev/null")
	big.wait(eventlog.CodeHeld, 1)
	text := fmt.Sprintf("held %s, the first job's status is %s", strings.Join(strings.Fields(big.tool("condor_q", big.id(), "-af", "HoldReasonCode", "HoldReasonSubCode")), "/"), first.queued("JobStatus"))
	big.remove()

	small := running("small", filler, "exec sleep 600")
	s.rig.files(first.dir, map[string]string{"end": ""})
	first.wait(eventlog.CodeTerminated, 1)
	began := time.Now()
	small.wait(eventlog.CodeEvicted, 1)
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("%s: the job that the drain let in left %v after the last of the others", s.name, took)
	}
	small.remove()
	s.rig.Tool("condor_drain", "-cancel", s.firstSlot())
	s.idle()
	return text
}
