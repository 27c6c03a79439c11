// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRecordedVerbs plays records of what the notes on the reference daemons
// tell without a recording of their own.
func TestRecordedVerbs(t *testing.T) {
	t.Parallel()
	const static = "NUM_CPUS = 1\nMEMORY = 4096\nNUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = false\n"
	const sleep = "executable = /bin/sleep\narguments = 60\nrequest_memory = 64\nrequest_disk = 1024\n"
	submit := Action{T: -0.1, Do: "submit a"}
	for _, c := range []struct {
		name string
		r    Record
		want string
	}{
		{"a killed shadow under a live schedd", Record{Config: static, Job: sleep + "queue 1\n", Actions: []Action{submit, {4, "sigshadow KILL"}}, End: 8},
			"slot1 -8 Unclaimed/Idle, slot1 0 Claimed/Idle, slot1 0 Claimed/Busy, slot1 4 Preempting/Killing, slot1 4 Owner/Idle, slot1 4 Unclaimed/Idle, slot1 6 Claimed/Idle, slot1 6 Claimed/Busy"},
		{"a killed shadow under a silent schedd", Record{Config: static, Job: sleep + "job_lease_duration = 20\nqueue 1\n",
			Actions: []Action{submit, {3, "signal schedd STOP"}, {4, "sigshadow KILL"}}, End: 30},
			"slot1 -8 Unclaimed/Idle, slot1 0 Claimed/Idle, slot1 0 Claimed/Busy, slot1 24 Claimed/Cleaning, slot1 24 Claimed/Idle, slot1 24 Preempting/Killing, slot1 24 Owner/Idle, slot1 24 Unclaimed/Idle"},
		{"larger jobs take the place of smaller ones", Record{
			Config: "NUM_CPUS = 2\nMEMORY = 4096\nRANK = TARGET.Prio\nALLOW_PSLOT_PREEMPTION = true\nNEGOTIATOR_CONSIDER_EARLY_PREEMPTION = true\n",
			Job:    "a:\n" + sleep + "+Prio = 1\nqueue 2\n\n--- b:\n" + sleep + "request_cpus = 2\n+Prio = 10\nqueue 1\n", Actions: []Action{submit, {5, "submit b"}}, End: 10},
			"slot1 -8 Unclaimed/Idle, slot1_1 0 Claimed/Idle, slot1_1 0 Claimed/Busy, slot1_2 2 Claimed/Idle, slot1_2 2 Claimed/Busy, " +
				"slot1_1 7 Preempting/Killing, slot1_2 7 Preempting/Killing, slot1_3 7 Claimed/Idle, slot1_3 7 Claimed/Busy, slot1_1 7 Owner/Idle, slot1_1 7 Unclaimed/Idle, slot1_2 7 Owner/Idle, slot1_2 7 Unclaimed/Idle"},
		{"a shell that cleans up", Record{Config: static, Scripts: map[string]string{"c.sh": "#!/bin/bash\ntrap \"sleep $2; exit 0\" TERM\nN=0\nwhile [ $N -lt $1 ]; do sleep 1; done\n"},
			Job: "executable = /bin/sh\narguments = ${DIR}/scripts/c.sh 60 3\nrequest_memory = 64\nqueue 1\n", Actions: []Action{submit, {4, "run condor_vacate slot1@${HOST}"}, {4, "run condor_rm -all"}}, End: 9},
			"slot1 -8 Unclaimed/Idle, slot1 0 Claimed/Idle, slot1 0 Claimed/Busy, slot1 4 Claimed/Retiring, slot1 4 Preempting/Vacating, slot1 7 Owner/Idle, slot1 7 Unclaimed/Idle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			moves, err := Replay(&c.r, parseText)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range moves {
				got = append(got, fmt.Sprintf("%s %.0f %s", m.Slot, m.T, m.To))
			}
			if diff := cmp.Diff(strings.Split(c.want, ", "), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
