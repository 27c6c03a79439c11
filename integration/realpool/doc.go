// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realpool is a pool of real HTCondor daemons for tests that look at an
// Execution Point from outside: the original or ours is put into it, and what
// its processes use and leave behind can be read. It owns the daemons that it
// starts, on free ports of the loopback interface and as a user without rights,
// and ends them by their process ids. It must never touch a pool that is there
// already, and never be imported by anything but tests.
//
// HTCondor is the one whose condor_collector or condor_ping is in PATH: built and
// installed under one prefix, or a distribution's package. The environment says
// the rest:
//
//	EXECPOINT_TEST_USER=tester      the user that root runs the daemons and submits
//	                                the jobs as; without it the daemons are nobody's.
//	                                A user with a shell, for ssh to jobs
//	EXECPOINT_REALPOOL=required     a test that lacks HTCondor, ssh, a user or rights
//	                                fails; without it the test is skipped and says what
//	                                to install or to do. Tests for other versions of
//	                                HTCondor, and long ones, are skipped in any case
//	EXECPOINT_TEST_LONG=1           tests that take minutes run, too
//	EXECPOINT_TEST_KEEP=1           the directories of pools are kept, logs and all
//
// The name of the machine needs a line of its own in /etc/hosts, or a name server:
// HTCondor takes the first name of that line for the machine's.
package realpool
