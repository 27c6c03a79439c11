// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
)

// A fault of the machine is the answer about a slot that is free, and about a
// job that asks for it; a slot with a job has its job.
func TestFault(t *testing.T) {
	t.Parallel()
	src := Source{Now: time.Unix(1, 0)}
	s := Slot{Name: "slot1", Ad: classad.NewAd(), Pair: policy.UnclaimedIdle, Refused: "read-only file system (since noon)"}
	v := Judge(src, classad.NewAd(), []Slot{s})
	if len(v) != 1 || v[0].Takes || v[0].Busy != "refusing jobs because of a fault of the machine: read-only file system (since noon)" {
		t.Errorf("%+v", v)
	}
	if got := OfSlot(src, s).Answer; got != "slot1 takes no job because the machine has a fault: read-only file system (since noon)" {
		t.Errorf("%q", got)
	}
	s.Pair, s.JobID = policy.ClaimedBusy, "7.0"
	if got := OfSlot(src, s).Answer; !strings.Contains(got, "while it runs 7.0") {
		t.Errorf("%q", got)
	}
}
