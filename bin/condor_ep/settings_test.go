// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"
)

// Jobs of "condor_ep run" have the settings that a starter of a pool would: those of
// the subsystem STARTER and of the slot type, whatever expressions they are.
func TestStarterSettings(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "ep.conf", `NUM_CPUS = 2
MEMORY = 512
SLOT_TYPE_1 = cpus=1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = cpus=1
NUM_SLOTS_TYPE_2 = 1
STARTER_JOB_ENVIRONMENT = "FROM=all"
STARTER.STARTER_JOB_ENVIRONMENT = "FROM=starters"
slot_type_2.STARTER_JOB_ENVIRONMENT = "FROM=type2"
STARTER_SETS_HOME_ENV = (1 > 2)
STARTER.JOB_EXECDIR_PERMISSIONS = world
slot_type_1.STARTER_NUM_THREADS_ENV_VARS = ONE_THREADS
if $(IsStarter)
  CHIRP_DELAYED_UPDATE_PREFIX = Own*
endif
`)
	p.write(t, "job.sh", "#!/bin/sh\nenv\nstat -c MODE=%a .\nsleep 0.3\n")
	p.write(t, "job.sub", small+"executable = job.sh\noutput = out.$(Process)\nqueue 6\n")
	if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	slots := map[string]bool{}
	for _, n := range []string{"0", "1", "2", "3", "4", "5"} {
		env := map[string]string{}
		for line := range strings.Lines(p.read(t, "out."+n)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[name] = value
		}
		slots[env["_CONDOR_SLOT"]] = true
		want := map[string]string{"FROM": "starters", "ONE_THREADS": "1"}
		if env["_CONDOR_SLOT"] == "slot2" {
			want = map[string]string{"FROM": "type2", "ONE_THREADS": ""}
		}
		want["MODE"], want["HOME"], want["_CHIRP_DELAYED_UPDATE_PREFIX"] = "755", "", "Own*"
		for name, value := range want {
			if env[name] != value {
				t.Errorf("in %s %s is %q, want %q", env["_CONDOR_SLOT"], name, env[name], value)
			}
		}
	}
	if len(slots) != 2 {
		t.Errorf("jobs ran in %v", slots)
	}

	// A mistake that only a starter meets keeps the run from beginning, with its line.
	p.write(t, "bad.conf", "if $(IsStarter)\n  STARTER_UPDATE_INTERVAL = soon\nendif\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "bad.conf", "job.sub")
	if status == exitOK || !strings.Contains(stderr, "bad.conf:2") || !strings.Contains(stderr, "STARTER_UPDATE_INTERVAL") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}
