// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lvm gives each job a file system of its own, on a logical volume of Linux.
// It owns the names and marks of these volumes, the commands of lvm2 that make and
// remove them, and what their reports mean. Only the startd of root calls it. It must
// never touch a volume without our mark, and knows nothing of slots and jobs.
//
// Volumes are called and marked as HTCondor's, so that its administrators find them:
//
//	lvs -o +lv_tags @htcondor_lv
package lvm
