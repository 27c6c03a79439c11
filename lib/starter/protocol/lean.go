// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
)

// Lean makes the runtime of a starter small: it lives for one job, allocates
// little and mostly waits. Collecting garbage and looking for processors would
// only cost that job's time.
var Lean = []string{"GOGC=off", "GOMEMLIMIT=64MiB", "GOMAXPROCS=1"}

// NoLimits has the runtime of a starter not look through the control groups for how
// many processors it may use: it is told. An administrator's GODEBUG goes before.
const NoLimits = "GODEBUG=containermaxprocs=0"

// IsLean reports whether entry sets what Lean sets, or is NoLimits. A job does not
// inherit it.
func IsLean(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return entry == NoLimits || slices.ContainsFunc(Lean, func(l string) bool { return strings.HasPrefix(l, name+"=") })
}
