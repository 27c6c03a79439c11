// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden runs the jobs of testdata/starter.jsonl, which HTCondor ran as root
// and whose every fact was recorded, on our Execution Point of root in a pool of real
// daemons, and compares the facts: events, holds, final ads, and what the job saw. It
// owns tests only, which need root and HTCondor.
//
// testdata/expected.tsv lists each fact that differs, with its reason, and each case
// that is not run. A fact that differs and is not listed fails the test, and so does
// one that is listed and agrees. EXECPOINT_GOLDEN_DIFFER=FILE writes what differed to a file.
package golden
