// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

// Tracking is what a machine has to keep the processes of a job together.
type Tracking struct {
	Groups   int   // the version of the control groups that jobs get, 0 for none
	NoGroups error // why they get none
	NoSpaces error // why no job can have namespaces of its own; nil is that it can
}
