// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prepare decides what a run of jobs without a pool has to know before it begins:
// as whom the jobs of a submit file run and with whose rights their files are moved, who
// else gives all of the machine to jobs, and whether programs have to be asked what they
// can. It owns these decisions and the sentences that tell them. It must never start a
// job, nor use root's rights for what a submit file names: files are touched as the user
// whose jobs they are.
package prepare
