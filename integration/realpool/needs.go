// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"cmp"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
)

// What the environment says of the tests.
const (
	requiredKnob = "EXECPOINT_REALPOOL"
	userKnob     = "EXECPOINT_TEST_USER"
	longKnob     = "EXECPOINT_TEST_LONG"
)

// Missing ends a test that needs something which this machine lacks: the test is
// skipped, or fails where EXECPOINT_REALPOOL is "required". what is the missing
// thing, and remedy says what to install or to do.
func Missing(tb testing.TB, what, remedy string) {
	tb.Helper()
	if os.Getenv(requiredKnob) == "required" {
		tb.Fatalf("%s, and %s=required does not allow to skip this test; %s", what, requiredKnob, remedy)
	}
	tb.Skipf("%s; %s", what, remedy)
}

// Patient skips a test against real daemons where -short is given.
func Patient(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: real daemons take their time")
	}
}

// Long says whether tests that take minutes are wanted.
func Long() bool { return os.Getenv(longKnob) != "" }

// NeedLong skips a test that takes minutes, unless it is wanted.
func NeedLong(tb testing.TB) {
	tb.Helper()
	if !Long() {
		tb.Skipf("long: it takes minutes, and %s is not set", longKnob)
	}
}

// NeedVersion skips a test of what HTCondor has done only since a version.
func (in Installation) NeedVersion(tb testing.TB, since cedar.Version, what string) {
	tb.Helper()
	if !in.Version.AtLeast(since.Major, since.Minor, since.Patch) {
		tb.Skipf("version: HTCondor %v is older than %v, since which %s", in.Version, since, what)
	}
}

// NeedRoot ends a test that root has to run.
func NeedRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Missing(tb, "only root can run jobs as other users", "run the test as root")
	}
}

// JobUser is the user with a shell whose jobs root runs: the one that
// EXECPOINT_TEST_USER names, or tester.
func JobUser(tb testing.TB) *user.User {
	tb.Helper()
	name := cmp.Or(os.Getenv(userKnob), "tester")
	u, err := user.Lookup(name)
	if err != nil {
		Missing(tb, "nobody can submit jobs: "+err.Error(), "useradd -m -s /bin/bash "+name+", or name another user in "+userKnob)
	}
	return u
}

// NeedSSH ends a test in which a tool of the pool's user comes to a job by ssh.
func (p *Pool) NeedSSH(tb testing.TB) {
	tb.Helper()
	SSH(tb)
	// A library of HTCondor's lets in those who have no shell.
	if _, err := os.Stat(filepath.Join(p.Lib, "libgetpwnam.so")); p.user == "nobody" && err != nil {
		Missing(tb, "ssh lets nobody in to the jobs of the user nobody", "name a user with a shell in "+userKnob)
	}
}

// SSH finds the programs of ssh.
func SSH(tb testing.TB) (server, client string) {
	tb.Helper()
	const remedy = "install the packages openssh-server and openssh-client of Debian"
	server = "/usr/sbin/sshd" // which is in the PATH of root only
	if _, err := os.Stat(server); err != nil {
		Missing(tb, "no ssh server is here: "+err.Error(), remedy)
	}
	client, err := exec.LookPath("ssh")
	if err == nil {
		_, err = exec.LookPath("ssh-keygen")
	}
	if err != nil {
		Missing(tb, "no ssh client is here: "+err.Error(), remedy)
	}
	return server, client
}
