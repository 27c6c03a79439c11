// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// allowed says whether an ordinary user may make namespaces here, by the system's own
// program.
func (s *stage) allowed() bool {
	path, err := exec.LookPath("unshare")
	if err != nil {
		s.t.Skip(err)
	}
	args := []string{path, "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"}
	if os.Geteuid() == 0 {
		args = append([]string{"setpriv", "--reuid=" + s.owner.Uid, "--regid=" + s.owner.Gid, "--clear-groups"}, args...)
	}
	return exec.CommandContext(s.t.Context(), args[0], args[1:]...).Run() == nil
}

// TestOfAUserInSpace has an ordinary user run them in a user namespace. What one job
// kills, sees and leaves is its own: they are all of one user, and each has company.
func TestOfAUserInSpace(t *testing.T) {
	s := newStage(t, false, shape{job: "want_job_networking = False\n", conf: "USE_PID_NAMESPACES = True\nNO_JOB_NETWORKING = True\nSTARTER_JOB_ENVIRONMENT = \"HOSTILE_SPACE=1\"\n"})
	if !s.allowed() {
		t.Skip("an ordinary user may make no namespaces here")
	}
	s.all(patience(), s.chosen(false))
	if roomy() == os.TempDir() {
		return // then the jobs' files are there, and they cannot have a /tmp of their own
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if all, _ := filepath.Glob(filepath.Join(dir, s.word+"-*")); len(all) > 0 {
			t.Errorf("left in what is not the jobs': %q", all)
		}
	}
}
