// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/slot"
)

// TestClaimIDFiles writes the ids by which slots can be claimed.
//
// row: S4-053, S4-054
func TestClaimIDFiles(t *testing.T) {
	t.Parallel()
	log, elsewhere := t.TempDir(), t.TempDir()
	at := func(text string) *node {
		snap, err := config.Parse("ep.conf", "LOG = "+log+"\n"+text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		return &node{o: Options{Config: snap, Log: slog.New(slog.DiscardHandler), Listeners: Listeners{Problem: func(err error) { t.Error(err) }}}}
	}
	id := func(n int64) claim.ID { return claim.NewID("<127.0.0.1:9618>", 1_800_000_000, n, "hush") }
	plain := at("")
	plain.claimIDChanged(ep.ClaimIDChanged{Slot: slot.ID{N: 1}, ID: id(1)})
	plain.claimIDChanged(ep.ClaimIDChanged{Slot: slot.ID{N: 2}, ID: id(2)})
	plain.claimIDChanged(ep.ClaimIDChanged{Slot: slot.ID{N: 1, Sub: 1}, ID: id(3)})
	plain.claimIDChanged(ep.ClaimIDChanged{Slot: slot.ID{N: 1}, ID: id(4)})
	at("STARTD_CLAIM_ID_FILE = " + elsewhere + "/ids\n").claimIDChanged(ep.ClaimIDChanged{Slot: slot.ID{N: 3}, ID: id(5)})
	at("STARTD_SHOULD_WRITE_CLAIM_ID_FILE = false\n").claimIDChanged(ep.ClaimIDChanged{Slot: slot.ID{N: 9}, ID: id(6)})

	for path, want := range map[string]string{
		filepath.Join(log, ".startd_claim_id.slot1"): "<127.0.0.1:9618>#1800000000#4#hush\n",
		filepath.Join(log, ".startd_claim_id.slot2"): "<127.0.0.1:9618>#1800000000#2#hush\n",
		filepath.Join(elsewhere, "ids.slot3"):        "<127.0.0.1:9618>#1800000000#5#hush\n",
	} {
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", path, got, err, want)
		}
		if st, err := os.Stat(path); err == nil && st.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", path, st.Mode())
		}
	}
	for dir, want := range map[string]int{log: 2, elsewhere: 1} {
		if files, err := os.ReadDir(dir); err != nil || len(files) != want {
			t.Errorf("%s has %v, %v", dir, files, err)
		}
	}

	var told []string
	gone := at("STARTD_CLAIM_ID_FILE = " + filepath.Join(elsewhere, "missing", "ids") + "\n")
	gone.o.Problem = func(err error) { told = append(told, err.Error()) }
	for n := range 3 {
		gone.claimIDChanged(ep.ClaimIDChanged{Slot: slot.ID{N: 1}, ID: id(int64(n))})
	}
	if len(told) != 1 || !strings.Contains(told[0], "ids.slot1") || strings.Contains(told[0], "hush") {
		t.Errorf("told %q", told)
	}
}
