// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// TestClaimLease has a schedd keep two claims at each side with a short
// interval of keep-alives, one with a job and one that is idle, for ten
// minutes. Then the schedd is stopped: nobody answers for the idle claim any
// more, and it ends with its lease.
func TestClaimLease(t *testing.T) {
	t.Parallel()
	realpool.NeedLong(t)
	const (
		kept  = 10 * time.Minute
		lease = 60 * time.Second // that of the claim's last job
	)
	r := newRig(t, "ALIVE_INTERVAL = 10\nMAX_CLAIM_ALIVES_MISSED = 6\nPOLLING_INTERVAL = 1\n")
	var busy, idle [2]*job
	for i, s := range r.sides {
		busy[i] = s.submit(t, "busy", "executable = job.sh\noutput = out\nerror = err\nshould_transfer_files = YES\nrequest_cpus = 2\n", "", func(dir string) {
			r.files(dir, map[string]string{"job.sh": strings.ReplaceAll(waits, "@DIR@", dir)})
		})
		idle[i] = s.submit(t, "idle", "executable = /bin/true\noutput = out\nerror = err\nshould_transfer_files = YES\nkeep_claim_idle = 3600\njob_lease_duration = 60\n", "", nil)
	}
	// What the startd says of its dynamic slot with so many processors: the
	// time of its state says which claim it is.
	claim := func(s *side, cpus string) string {
		out, err := r.run("condor_status", "-direct", s.host(), "-constraint", `Rig == "`+s.name+`" && DynamicSlot && Cpus == `+cpus, "-af", "State", "Activity", "Name", "EnteredCurrentState")
		if err != nil {
			return err.Error()
		}
		return strings.Join(strings.Fields(out), " ")
	}
	var first [2][2]string
	for i, s := range r.sides {
		busy[i].made("ready")
		idle[i].wait(eventlog.CodeTerminated, 1)
		r.within("an idle claim at "+s.name, patience, func() bool { return strings.HasPrefix(claim(s, "1"), "Claimed Idle ") })
		first[i] = [2]string{claim(s, "1"), claim(s, "2")}
		t.Logf("%s: %q", s.name, first[i])
	}
	began := time.Now()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	asked := 0
	for time.Since(began) < kept {
		<-tick.C
		asked++
		for i, s := range r.sides {
			if now := [2]string{claim(s, "1"), claim(s, "2")}; now != first[i] {
				t.Fatalf("%s: after %v its claims are %q, they were %q\n%s", s.name, time.Since(began), now, first[i], s.blame())
			}
		}
	}
	t.Logf("both kept both claims for %v, asked %d times", time.Since(began).Round(time.Second), asked)

	schedd := r.running["condor_schedd"]
	stopped := time.Now()
	r.Must(syscall.Kill(schedd.PID(), syscall.SIGSTOP))
	defer schedd.Signal(syscall.SIGCONT)
	for _, s := range r.sides {
		r.within("the idle claim of "+s.name+" is gone", 2*lease, func() bool { return claim(s, "1") == "" })
		// The other claim is kept by the shadow, which lives.
		took := time.Since(stopped)
		t.Logf("%s: the idle claim was gone %v after the schedd was stopped", s.name, took.Round(time.Second))
		if least := lease - 20*time.Second; took < least {
			t.Errorf("%s: the idle claim ended after %v; its lease was renewed at most %v before the schedd was stopped", s.name, took, lease-least)
		}
	}
	for i, s := range r.sides {
		if now := claim(s, "2"); now != first[i][1] {
			t.Errorf("%s: the claim with a job is %q, it was %q", s.name, now, first[i][1])
		}
	}
	r.Must(syscall.Kill(schedd.PID(), syscall.SIGCONT))
	for _, j := range busy {
		j.told("go")
		j.wait(eventlog.CodeTerminated, 1)
		j.side.idle()
	}
}
