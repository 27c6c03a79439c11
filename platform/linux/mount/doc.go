// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mount puts a job's file system in the place of its scratch directory, looks
// how full it is and takes it away. It owns the options of such a mount, who sees it,
// and how the kernel's list of mounts is read. It must never mount anywhere but on a
// directory that it is given.
package mount
