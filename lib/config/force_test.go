// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
)

// Settings that nothing reads are told where somebody made them and they would
// make a difference: not what a template sets, what is as by default, what other
// settings refer to, or what is another daemon's.
func TestUnread(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("ep.conf", `USER_JOB_WRAPPER = /usr/bin/env
STARTD.USE_PID_NAMESPACE_INIT = false
DISABLE_EXECUTE_DIRECTORY_ENCRYPTION = $(NO:false)
TMP_DIR = /scratch
EXECUTE = $(TMP_DIR)/execute
SCHEDD_INTERVAL = 5
MINUTE = 61
START = True
classad_user_mapfile_groups = /etc/groups
VM_TYPE =
`, config.Options{Subsystem: "STARTD", Env: []string{"_CONDOR_SINGULARITY_VERBOSITY=-q"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range s.Unread() {
		if u.Instead == "" {
			t.Errorf("%s: nothing says what to do", u.Name)
		}
		got = append(got, u.Name)
	}
	slices.Sort(got)
	if want := []string{"SINGULARITY_VERBOSITY", "STARTD.USE_PID_NAMESPACE_INIT", "USER_JOB_WRAPPER", "classad_user_mapfile_groups"}; !slices.Equal(got, want) {
		t.Errorf("unread are %q, want %q", got, want)
	}
}

// A daemon begins with what is no expression, and with a wrong value of what it
// does not read; a wrong value of what it reads keeps it down. A word that means
// nothing is doubtful, in whatever case those are written that do.
func TestSort(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("ep.conf", "START = (\nNEGOTIATOR_CONSIDER_PREEMPTION = perhaps\nUSE_PSS = perhaps\nPOLLING_INTERVAL = often\nUPDATE_INTERVAL = -5\nCGROUP_MEMORY_LIMIT_POLICY = hart\nSTARTER.CGROUP_MEMORY_LIMIT_POLICY = Soft\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	names := func(ps config.Problems) (out []string) {
		for _, p := range ps {
			out = append(out, p.Knob)
		}
		slices.Sort(out)
		return out
	}
	fatal, doubtful := s.Sort()
	if got, want := names(fatal), []string{"POLLING_INTERVAL", "UPDATE_INTERVAL"}; !slices.Equal(got, want) {
		t.Errorf("fatal %q, want %q", got, want)
	}
	if got, want := names(doubtful), []string{"CGROUP_MEMORY_LIMIT_POLICY", "NEGOTIATOR_CONSIDER_PREEMPTION", "START", "USE_PSS"}; !slices.Equal(got, want) {
		t.Errorf("doubtful %q, want %q", got, want)
	}
}
