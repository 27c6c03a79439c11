// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/policy"
)

// checkpoints runs a job for so long and says when it was told to take a
// checkpoint.
func checkpoints(t *testing.T, config, more string, d time.Duration) (*stage, []time.Duration) {
	t.Helper()
	s := newStage(t, 1, static1+"CLAIM_WORKLIFE = -1\nPOLLING_INTERVAL = 5\n"+config)
	ad := job(t, steady(d+time.Hour), "JobLeaseDuration = 1000000\n"+more)
	g := s.claim(slot1, ad)
	s.activate(g.Claim, ad)
	began := s.elapsed()
	var at []time.Duration
	for seen := 0; s.elapsed()-began < d; {
		s.run(5 * time.Second)
		for ; seen < len(s.orders); seen++ {
			if s.orders[seen].Op != Checkpoint {
				t.Fatalf("order %+v", s.orders[seen])
			}
			at = append(at, s.elapsed()-began)
		}
	}
	if got := s.pair(slot1); got != policy.ClaimedBusy {
		t.Errorf("a checkpoint moves no slot, but it is %v", got)
	}
	return s, at
}

const (
	vmJob  = "JobUniverse = 13\nJobVMCheckpoint = true\n"
	hourly = "PERIODIC_CHECKPOINT = (time() - LastPeriodicCheckpoint) >= 3600\n"
)

// row: S4-011, S1-047, S1-052
func TestPeriodicCheckpoint(t *testing.T) {
	t.Parallel()
	s, at := checkpoints(t, hourly, vmJob, 3*time.Hour)
	if d := cmp.Diff([]time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}, at); d != "" {
		t.Error(d)
	}
	if got, want := s.shown(slot1, "LastPeriodicCheckpoint"), strconv.FormatInt(s.now.Wall.Unix(), 10); got != want {
		t.Errorf("LastPeriodicCheckpoint = %s, want %s", got, want)
	}
	for _, tt := range []struct{ name, config, more string }{
		{"a virtual machine that does not allow it", hourly, "JobUniverse = 13\n"},
		{"one that forbids it", hourly, "JobUniverse = 13\nJobVMCheckpoint = false\n"},
		{"one that lies", hourly, "JobUniverse = 13\nJobVMCheckpoint = \"yes\"\n"},
		{"a vanilla job that says the same", "PERIODIC_CHECKPOINT = true\n", "JobUniverse = 5\nJobVMCheckpoint = true\n"},
		{"an expression that says nothing", "PERIODIC_CHECKPOINT = Nothing\n", vmJob},
	} {
		if _, at := checkpoints(t, tt.config, tt.more, 2*time.Hour); len(at) != 0 {
			t.Errorf("%s was checkpointed after %v", tt.name, at)
		}
	}
	// Other jobs have no such time at all.
	s, _ = checkpoints(t, hourly, "", time.Minute)
	if got := s.shown(slot1, "LastPeriodicCheckpoint"); got != "" {
		t.Errorf("LastPeriodicCheckpoint = %s for a vanilla job", got)
	}
}

// The block of the 6.8 manual: small jobs every 6 hours, large ones every 12.
//
// row: S1-059
func TestPeriodicCheckpointOfOld(t *testing.T) {
	t.Parallel()
	const old = "MINUTE = 60\nHOUR = (60 * $(MINUTE))\nLastCkpt = (CurrentTime - LastPeriodicCheckpoint)\nSmallJob = (TARGET.ImageSize < (60000))\n" +
		"PERIODIC_CHECKPOINT = (($(SmallJob)) && ($(LastCkpt) > (6 * $(HOUR)))) || ($(LastCkpt) > (12 * $(HOUR)))\n"
	for _, tt := range []struct {
		image string
		want  time.Duration
	}{{"59999", 6 * time.Hour}, {"60000", 12 * time.Hour}} {
		_, at := checkpoints(t, old, vmJob+"ImageSize = "+tt.image+"\n", 13*time.Hour)
		if len(at) == 0 || at[0] < tt.want || at[0] > tt.want+10*time.Second {
			t.Errorf("ImageSize %s: checkpoints after %v, want the first after %v", tt.image, at, tt.want)
		}
	}
}
