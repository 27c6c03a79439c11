// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// What our starters' settings are held to (lib/starter/protocol TestSettings) is what
// HTCondor's own condor_config_val says.
func TestStarterKnobs(t *testing.T) {
	t.Parallel()
	h := realpool.Find(t)
	tool := h.Program("condor_config_val")
	const dir = "../../lib/starter/protocol/testdata"
	conf, err := filepath.Abs(filepath.Join(dir, "settings.conf"))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(filepath.Join(dir, "settings.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(recorded)) {
		name, want, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		cmd := exec.Command(tool, "-subsystem", "STARTER", "-local-name", "slot_type_1", name)
		cmd.Env = append(append(os.Environ(), h.Env()...), "CONDOR_CONFIG="+conf)
		if out, err := cmd.Output(); err != nil || string(out) != want {
			t.Errorf("%s: HTCondor says %q, %v; %q is recorded", name, out, err, want)
		}
	}
}
