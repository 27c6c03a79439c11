// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package findings checks a configuration for a machine, this one or one that is
// described, and prints what is wrong with it. It owns the way from files to what
// lib/check is asked: which of the machine's resources are known, and what slots may have
// of it. What is a mistake, and its words, are lib/check's. It must never find out the
// machine by itself, nor change anything: scanners and files are handed in.
package findings
