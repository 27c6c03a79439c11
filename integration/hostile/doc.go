// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile runs programs that misbehave as jobs of condor_ep run, all at the
// same time and beside one that behaves, and looks at what the others, the machine
// and the record of each have of it. It owns tests only: of root's Execution Point
// with the control groups of the machine, and of an ordinary user's. integration/guest
// runs them with those of version 2.
//
// Whatever a program does, it is bounded by the test: all run in a control group of
// the test's own that limits the number of processes, and each ends by itself after
// some seconds. Without such a group those that multiply are left out.
package hostile
