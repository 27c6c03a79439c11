// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// condor_config_val asks a running daemon what it is set to, and says why it
// finds none. integration/pool has it ask a real collector where one is.
func TestConfigValOverTheWire(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "condor_config_val")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../condor_config_val").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l := newSite(t, "START = Owner == \"ana\"\nHALF = $(NUM_CPUS) / 2\nKEPT_PASSWORD = hidden\n").live()
	// The tool has a configuration of its own, which differs.
	conf := filepath.Join(t.TempDir(), "condor_config")
	l.must(os.WriteFile(conf, []byte(strings.ReplaceAll(common, "STARTD_NAME = here", "START = FALSE")), 0o644))
	// So has this one, which is of the same machine: no collector is there to be asked.
	local := filepath.Join(t.TempDir(), "condor_config")
	l.must(os.WriteFile(local, []byte(strings.ReplaceAll(common, "STARTD_NAME = here", "STARTD_NAME = here\nSTART = FALSE\nSTARTD_ADDRESS_FILE = "+l.path("log/.startd_address"))), 0o644))
	for _, tt := range []struct {
		args   []string
		status int
		out    string
		errOut string
	}{
		{[]string{"START"}, 0, "FALSE\n", ""},
		{[]string{"-address", l.at.String(), "START", "half"}, 0, "Owner == \"ana\"\n4 / 2\n", ""},
		{[]string{"-startd", "-address", strings.Trim(l.at.String(), "<>"), "-raw", "HALF"}, 0, "$(NUM_CPUS) / 2\n", ""},
		{[]string{"-startd", "-name", l.at.String(), "-default", "START"}, 0, "True\n", ""},
		{[]string{"-address", l.at.String(), "-verbose", "HALF"}, 0, "HALF = 4 / 2\n # at: " + l.path("condor_config") + ", line ", ""},
		{[]string{"-address", l.at.String(), "NO_SUCH_KNOB", "START"}, 1, "Owner == \"ana\"\n", "Not defined: NO_SUCH_KNOB\n"},
		{[]string{"-startd", "-name", "elsewhere", "START"}, 1, "", "Can't find address for startd 'elsewhere' in local pool\n"},
		{[]string{"-address", "nonsense", "START"}, 1, "", "the address has neither host nor port"},
		{[]string{"-address", "127.0.0.1:1", "START"}, 1, "", "127.0.0.1:1"},
		{[]string{"-address", l.at.String(), "-dump"}, 1, "", "of a daemon only names can be asked"},
		{[]string{"-root-config", local, "START"}, 0, "FALSE\n", ""},
		{[]string{"-root-config", local, "-startd", "START"}, 0, "Owner == \"ana\"\n", ""},
		{[]string{"-root-config", local, "-startd", "-name", "here", "START"}, 0, "Owner == \"ana\"\n", ""},
		{[]string{"-root-config", local, "-startd", "-name", "here", "-pool", "127.0.0.1:1", "START"}, 1, "", "Can't find address for startd 'here' in 127.0.0.1:1\n"},
		{[]string{"-root-config", local, "-master", "START"}, 1, "", "Can't find address for master 'default' in local pool\n"},
		{[]string{"-negotiator", "START"}, 1, "", "-negotiator is found by -address alone"},
		{[]string{"-address", l.at.String(), "-rset", "START = TRUE"}, 1, "", "-rset changes what a daemon is set to, which is not supported"},
	} {
		var out, errOut bytes.Buffer
		c := exec.Command(program, tt.args...)
		c.Env, c.Stdout, c.Stderr = append(os.Environ(), "CONDOR_CONFIG="+conf), &out, &errOut
		var ended *exec.ExitError
		if err := c.Run(); err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		if got := c.ProcessState.ExitCode(); got != tt.status || !strings.HasPrefix(out.String(), tt.out) || !strings.Contains(errOut.String(), tt.errOut) || tt.errOut == "" && errOut.Len() > 0 {
			t.Errorf("%v: status %d\n%s%s", tt.args, got, out.String(), errOut.String())
		}
	}
}
