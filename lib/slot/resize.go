// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import "math"

// Resize follows the volume of EXECUTE, which has diskKiB for jobs now. Every slot on it keeps its part of the whole; what dynamic slots were
// promised stays theirs, so a partitionable slot has at least that. Slots whose
// SLOT<N>_EXECUTE lies elsewhere, and those with an amount of their own, follow
// with the same factor as the rest, like the shares that they are of TotalDisk.
// Resize reports whether anything changed. diskKiB below 0 counts as 0.
func (l *Ledger) Resize(diskKiB int64) bool {
	diskKiB = max(0, diskKiB)
	if l.diskKiB == 0 {
		return false // nothing was dealt out, so no slot has a part
	}
	factor := float64(diskKiB) / float64(l.diskKiB)
	changed := false
	for _, sh := range l.shares {
		s := sh.slot
		if sh.elsewhere {
			continue
		}
		promised := int64(0)
		for _, c := range sh.children {
			if c != nil {
				promised += c.Total.DiskKiB
			}
		}
		promised += s.Lost.DiskKiB
		to := max(promised, int64(math.Floor(float64(sh.dealtKiB)*factor)))
		provision := int64(math.Floor(float64(sh.provisionKiB) * factor))
		by := to - s.Total.DiskKiB
		if by == 0 && provision == s.VolumeDiskKiB {
			continue
		}
		changed = true
		s.Total.DiskKiB, s.VolumeDiskKiB = to, provision
		if s.Broken == nil {
			s.Free.DiskKiB = to - promised
		}
		for _, c := range sh.children {
			if c != nil {
				c.VolumeDiskKiB = provision
			}
		}
		if !s.Backfill {
			l.total.DiskKiB += by
		}
	}
	return changed
}
