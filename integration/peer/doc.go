// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peer lets HTCondor's own tests judge our Execution Point: it runs
// those of an HTCondor source tree's src/condor_tests that start an Execution
// Point, once with the installation of this machine as it is and once with our
// condor_startd and condor_starter in it, and prints a table of both.
//
// It owns the list of these tests with what is expected of each, the trees of
// links in which our programs stand in for the original's, and every process
// that a test starts; it ends them by process id and start time. It must never
// write into the source tree or the installation, and nothing of the source
// tree may be copied into this repository: dependencies of a test are read from
// the tree when it runs.
//
// What it needs: HTCondor in PATH with its Python bindings; python3 with pytest
// and pytest-httpserver, perl, openssl, ps, strace, curl; a user condor; a name
// of the host that resolves to an address of the host that is not loopback; an
// ordinary user; for cmd_ssh_to_job_van a server and client of openssh. Started by root, the tests run as the user that
// EXECPOINT_TEST_USER names, or as tester. Without any of them the test is
// skipped.
//
//	EXECPOINT_HTCONDOR_SOURCE=DIR  the source tree, of the release that is installed; without it nothing is run
//	EXECPOINT_PEER=quick|all|NAME,NAME...  which tests; quick, the default, are 36
//	EXECPOINT_PEER_KIND=both|original|ours  with which Execution Point; both is the default
//	EXECPOINT_PEER_JOBS=N  how many at a time; 3 is the default. They mostly wait, but their own time limits are tight
//	EXECPOINT_PEER_TABLE=FILE  where to write the table besides, as tab-separated values
//	EXECPOINT_TEST_KEEP=1  keeps what every test leaves, not only what failed against expectation
//
// The quick ones take some minutes, all of them about an hour, so go test wants
// -timeout and, to see how it goes on, -v:
//
//	EXECPOINT_HTCONDOR_SOURCE=/somewhere EXECPOINT_PEER=all go test -v -timeout 3h -run TestPeer ./integration/peer
//
// A test that fails against expectation is run again, alone, before that is
// believed. The Go test fails for a test that the list records as passing with
// ours, passes with the original where that was run too, and fails with ours.
//
// The list is testdata/tests.tsv. Its columns are the name of the test; a group
// (slots, job, files, net and life are the 142 that were measured as suitable,
// more are others); whether it is quick; the seconds it takes
// with the original on an idle machine; the cases that pass with the original,
// where a test counts them; the starts of a startd and a starter in it; what it
// needs besides (log: lines in our logs as HTCondor words them; host: the name
// of the host; file: a file of the tree that the tree does not name itself);
// what is expected of ours (pass, fail, or either where it is unsteady) and why
// it is not pass; and what it stands for.
package peer
