// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/prometheus/procfs"

	"github.com/execpoint/execpoint/lib/machine"
)

// memory finds out how much RAM and swap space there is, and how much of the
// RAM the control group leaves to us.
type memory struct{ System }

func (memory) Name() string { return "memory" }

var errNoTotal = errors.New("no line MemTotal")

func (m memory) Scan(_ context.Context, inv *machine.Inventory) error {
	path := filepath.Join(m.Root.Proc, "meminfo")
	procFS, err := procfs.NewFS(m.Root.Proc)
	if err != nil {
		return err
	}
	info, err := procFS.Meminfo()
	if err != nil {
		return err
	}
	if info.MemTotal == nil {
		return broken(path, errNoTotal)
	}
	totalKiB := clampKiB(*info.MemTotal)
	inv.PhysicalMemoryMiB = totalKiB / 1024
	inv.DetectedMemoryMiB = inv.PhysicalMemoryMiB
	inv.Learn(path, "PhysicalMemoryMiB", "DetectedMemoryMiB", "UsableMemoryMiB")
	// A kernel built without swap has no such lines; it has no swap then.
	var free uint64
	if info.SwapFree != nil {
		free = *info.SwapFree
	}
	if info.SwapTotal != nil {
		inv.SwapTotalKiB = clampKiB(*info.SwapTotal)
	}
	inv.SwapKiB = clampKiB(free) + totalKiB
	inv.Learn(path, "SwapTotalKiB", "SwapKiB")

	groups, err := groupsOf(m.Root)
	limit, errLimit := groups.memory()
	if mib := limit.bytes >> 20; limit.path != "" && mib < inv.DetectedMemoryMiB {
		inv.DetectedMemoryMiB = mib
		inv.Learn(limit.path, "DetectedMemoryMiB", "UsableMemoryMiB")
	}
	inv.UsableMemoryMiB = inv.DetectedMemoryMiB
	return errors.Join(err, errLimit)
}

// clampKiB keeps an amount below what int64 arithmetic of a few such amounts
// can overflow.
func clampKiB(kib uint64) int64 { return int64(min(kib, 1<<60)) }
