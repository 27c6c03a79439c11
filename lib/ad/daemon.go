// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/slot"
)

// Daemon returns the ad of the daemon as a whole: what it has to give, what of
// it is in use, and what is broken. problems are those of slot.Build. The ad
// belongs to the caller.
func (m *Machine) Daemon(problems []slot.Problem, now clock.Instant) *classad.Ad {
	out := classad.NewAd()
	out.Update(m.ad)
	for _, name := range [...]string{
		"TargetType", "HasStartDaemonAd", attrAdmitted, attrCurrentRank, attrNumPids, attrRetirementRemaining,
		"LastFetchWorkCompleted", "LastFetchWorkSpawned", "NextFetchWorkDelay",
		attrKeyboardIdle, attrConsoleIdle, attrLoadAvg, attrCondorLoadAvg,
	} {
		out.Delete(name)
	}
	for _, a := range m.slots {
		for _, n := range m.set.slotAttrs {
			out.Delete(a.s.Name() + "_" + n)
		}
	}
	m.instances(out)
	for _, p := range m.published {
		if p.slot.IsZero() {
			for name, e := range p.attrs.All() {
				if !isStatic(name) && !isShared(name) {
					out.Set(name, e)
				}
			}
		}
	}
	for _, o := range m.set.ownAttrs(0) {
		out.Set(o.name, o.expr)
	}
	out.SetString("MyType", "StartD")
	out.SetString(attrName, m.set.name)
	out.SetInt(attrMyCurrentTime, now.Wall.Unix())

	var inUse, backfill slot.Quantities
	var disk int64
	for _, a := range m.slots {
		disk = max(disk, a.s.VolumeDiskKiB)
		if a.s.Kind == slot.Partitionable || len(a.claimAttrs) == 0 {
			continue
		}
		if a.s.Backfill {
			backfill = slot.Sum(backfill, a.s.Total)
		} else {
			inUse = slot.Sum(inUse, a.s.Total)
		}
	}
	out.SetInt(attrTotalDisk, disk)
	m.usage(out, "TotalInUse", inUse)
	m.usage(out, "TotalBackfillInUse", backfill)
	m.usage(out, "ExcessBackfill", m.excess(inUse, backfill))
	m.broken(out, problems)
	return out
}

// usage shows amounts under a prefix; all but disk and memory are reals.
func (m *Machine) usage(out *classad.Ad, prefix string, q slot.Quantities) {
	out.SetReal(prefix+attrCpus, q.Cpus)
	out.SetInt(prefix+attrMemory, q.MemoryMiB)
	out.SetInt(prefix+attrDisk, q.DiskKiB)
	for _, r := range m.src.Ledger.Resources() {
		c, _ := q.Find(r.Name)
		out.SetReal(prefix+r.Name, float64(c.Count))
	}
}

// excess is what backfill slots use of what the primary slots use as well.
func (m *Machine) excess(inUse, backfill slot.Quantities) slot.Quantities {
	total := m.src.Ledger.Account().Total
	over := func(a, b, all int64) int64 { return max(0, a+b-all) }
	out := slot.Quantities{
		Cpus:      max(0, inUse.Cpus+backfill.Cpus-total.Cpus),
		MemoryMiB: over(inUse.MemoryMiB, backfill.MemoryMiB, total.MemoryMiB),
		DiskKiB:   over(inUse.DiskKiB, backfill.DiskKiB, total.DiskKiB),
	}
	for _, c := range total.Custom {
		used, _ := inUse.Find(c.Name)
		shared, _ := backfill.Find(c.Name)
		out.Custom = append(out.Custom, slot.Custom{Name: c.Name, Count: over(used.Count, shared.Count, c.Count)})
	}
	return out
}

// broken lists what could not be built or has broken since, one attribute for
// each with its reason.
func (m *Machine) broken(out *classad.Ad, problems []slot.Problem) {
	var tags []string
	add := func(tag, reason string) {
		tag += "BrokenReason"
		if _, ok := out.Lookup(tag); ok {
			return
		}
		out.SetString(tag, reason)
		tags = append(tags, tag)
	}
	for _, a := range m.slots {
		if b := a.s.Broken; b != nil {
			add(a.s.Name(), b.Reason)
		}
	}
	for _, p := range problems {
		if p.Slot.IsZero() && !p.Warning {
			add("slot_type"+strconv.Itoa(p.TypeID), p.Reason)
		}
	}
	if len(tags) > 0 {
		_ = out.SetText("BrokenReasons", "{ "+strings.Join(tags, ",")+" }")
	}
}
