// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of a starter this tool says what HTCondor's says, which is what the settings of our
// starters are held to (lib/starter TestSettings).
func TestStarterKnobs(t *testing.T) {
	t.Parallel()
	const dir = "../../lib/starter/protocol/testdata"
	conf, err := os.ReadFile(filepath.Join(dir, "settings.conf"))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(filepath.Join(dir, "settings.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(recorded)) {
		name, want, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		n++
		if got := asked(t, string(conf), nil, "-subsystem", "STARTER", "-local-name", "slot_type_1", name); got != (answer{out: want}) {
			t.Errorf("%s: %+v, HTCondor says %q", name, got, want)
		}
	}
	if n < 70 {
		t.Errorf("%d knobs are recorded", n)
	}
}
