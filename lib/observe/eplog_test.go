// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

// The events of the recorded run policy-history-02, as the original wrote them.
func TestEPEventText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 15, 5, 39, 373e6, time.UTC)
	for _, tt := range []struct {
		kind      EPEventKind
		slot, sub int
		attrs     string
		want      string
	}{
		{EPStartup, 0, 0, "NumSlots = 1\n", "100 (000.000.000) 2026-11-20 15:05:39.373 EP_STARTUP\n  NumSlots = 1\n...\n"},
		{EPRequestClaim, 1, 0, "Success = true\nNewSlots = \"slot1_1\"\nJobId = \"1.0\"\nRemoteUser = \"u@h\"\n",
			"104 (001.000.000) 2026-11-20 15:05:39.373 EP_REQUEST_CLAIM\n  JobId = \"1.0\"\n  NewSlots = \"slot1_1\"\n  RemoteUser = \"u@h\"\n  Success = true\n...\n"},
		{EPVacateClaim, 1, 1, "Code = 1011\nReason = \"PREEMPT expression evaluated to True\"\n",
			"108 (001.001.000) 2026-11-20 15:05:39.373 EP_VACATE_CLAIM\n  Code = 1011\n  Reason = \"PREEMPT expression evaluated to True\"\n...\n"},
		{EPResourceBreak, 1, 2, "Code = 4\nResources = [Cpus = 1]\n", "110 (001.002.000) 2026-11-20 15:05:39.373 EP_RESOURCE_BREAK\n  Code = 4\n  Resources = [ Cpus = 1 ]\n...\n"},
		{EPResourceMend, 1, 2, "Resources = [Cpus = 1]\n", "111 (001.002.000) 2026-11-20 15:05:39.373 EP_RESOURCE_MEND\n  Resources = [ Cpus = 1 ]\n...\n"},
		{EPDeactivateClaim, 12, 3, "ClaimId = \"secret\"\n", "107 (012.003.000) 2026-11-20 15:05:39.373 EP_DEACTIVATE_CLAIM\n...\n"},
	} {
		ad, err := classad.ParseAd(tt.attrs, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		ev := EPEvent{Kind: tt.kind, Slot: tt.slot, Sub: tt.sub, At: at, Attrs: ad}
		if d := cmp.Diff(tt.want, ev.Text()); d != "" {
			t.Error(d)
		}
	}
	// A user's name cannot end an event.
	ad := classad.NewAd()
	ad.SetString("RemoteUser", "x\n...\n100 (000.000.000)")
	if text := (&EPEvent{Kind: EPReady, At: at, Attrs: ad}).Text(); strings.Count(text, "\n") != 3 {
		t.Errorf("%s", text)
	}
	if got := EPEventKind(177).String(); got != "EP_EVENT_177" {
		t.Error(got)
	}
}

func TestAppendEPEvent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "EpLog")
	ev := &EPEvent{Kind: EPReconfig, At: time.Unix(0, 0)}
	size := int64(len(ev.Text()))
	for range 5 {
		if err := AppendEPEvent(path, 2*size, ev); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int64{path: size, path + ".old": 2 * size} {
		if info, err := os.Stat(name); err != nil || info.Size() != want {
			t.Errorf("%s: %v %v, want %d bytes", name, info, err, want)
		}
	}
	if err := AppendEPEvent(filepath.Join(path, "x"), 0, ev); err == nil {
		t.Error("written below a file")
	}
}
