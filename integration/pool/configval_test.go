// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Our condor_config_val finds daemons by the names that the real collector
// knows and asks them, ours and HTCondor's own, and answers word for word as
// HTCondor's tool does.
func TestConfigValByName(t *testing.T) {
	t.Parallel()
	c := newMaster(t, "STARTD.START = Owner == \"ana\"\nSCHEDD_NAME = ap@\nHALF = $(NUM_CPUS) / 2\n")
	tool := filepath.Join(c.Dir, "our_config_val")
	if out, err := exec.Command("go", "build", "-o", tool, "github.com/execpoint/execpoint/bin/condor_config_val").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.slot()
	machine := strings.TrimSpace(c.Tool("condor_status", "-af", "Machine", "-limit", "1"))
	schedd := ""
	eventually(t, "the schedd is known", func() error {
		if schedd = strings.TrimSpace(c.Tool("condor_status", "-schedd", "-af", "Name")); schedd == "" {
			return errors.New("it is not")
		}
		return nil
	})
	pool := strings.TrimSpace(c.Tool("condor_config_val", "COLLECTOR_HOST"))
	for _, args := range [][]string{
		{"-startd", "-name", machine, "HALF", "START"}, {"-startd", "-name", machine, "-pool", pool, "START"}, {"-startd", "-name", machine, "-raw", "HALF"},
		{"-startd", "-name", machine, "-default", "POLLING_INTERVAL"}, {"-startd", "-name", machine, "-verbose", "HALF"}, {"-startd", "START"},
		{"-schedd", "-name", schedd, "HALF"}, {"-schedd", "-name", schedd, "-raw", "HALF"},
		{"-schedd", "HALF"}, {"-master", "HALF"},
	} {
		want, err := c.run("condor_config_val", args...)
		if err != nil {
			t.Fatalf("HTCondor's %v: %v", args, err)
		}
		if got, err := c.run(tool, args...); err != nil || got != want {
			t.Errorf("%v: %q, %v; HTCondor's says %q", args, got, err, want)
		}
	}
	// Daemons of this machine are found by their files, also where no collector answers.
	const nobody = "_CONDOR_COLLECTOR_HOST=127.0.0.1:1"
	for _, args := range [][]string{{"-startd", "START"}, {"-startd", "-name", machine, "HALF"}, {"-schedd", "HALF"}, {"-master", "HALF"}} {
		if !c.Version.AtLeast(25, 0, 0) && slices.Contains(args, "-name") {
			continue // its startd is not called after the machine, see newMaster
		}
		want, err := c.run("env", append([]string{nobody, "condor_config_val"}, args...)...)
		if err != nil {
			t.Fatalf("HTCondor's %v: %v", args, err)
		}
		if got, err := c.run("env", append([]string{nobody, tool}, args...)...); err != nil || got != want {
			t.Errorf("%v without a collector: %q, %v; HTCondor's says %q", args, got, err, want)
		}
	}
	// Of a name that is not defined HTCondor's tool prints "Not defined" as if
	// that were the value, and exits with 0; ours exits with 1, as without -name.
	for args, want := range map[string]string{
		"-startd -name " + machine + " NO_SUCH_KNOB": "Not defined: NO_SUCH_KNOB",
		"-startd -name no.such.host START":           "Can't find address for startd 'no.such.host'",
	} {
		if out, err := c.run(tool, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", args, out, err)
		}
	}
}
