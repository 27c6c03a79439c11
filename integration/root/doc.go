// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package root runs our condor_startd with the rights of root in a pool of real
// HTCondor daemons, and looks that its jobs have none of them: as whom they run,
// whose their files are, and what they cannot reach. It owns tests only, which
// need root, a second user to submit jobs (EXECPOINT_TEST_USER, else tester) and
// HTCondor; it must never leave anything running as another user.
package root
