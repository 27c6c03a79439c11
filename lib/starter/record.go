// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// inForce are the limits that the job had at last.
func (a *activation) inForce() *protocol.LimitsInForce {
	if a.family == nil {
		return nil
	}
	in := &protocol.LimitsInForce{Grouped: a.family.Grouped(), Lacks: a.family.Lacks()}
	if !in.Grouped {
		return in
	}
	g := a.limited.group
	kib := func(bytes *int64) *int64 {
		if bytes == nil {
			return nil
		}
		n := *bytes / 1024
		return &n
	}
	in.MemoryKiB, in.SoftKiB, in.SwapKiB = kib(g.Memory.Hard), kib(g.Memory.Soft), kib(g.Memory.Swap)
	in.CPUWeight, in.CPUs, in.Processes, in.Closed = g.CPUWeight, g.CPUs, g.Processes, len(g.Closed)
	return in
}

// noteUndying keeps which processes of the job an error says could not be ended: its
// startd looks whether they are gone once the starter is.
func (a *activation) noteUndying(err error) {
	var undying *host.Undying
	if errors.As(err, &undying) {
		a.record.Left.Undying = append(a.record.Left.Undying, undying.Procs...)
	}
}
