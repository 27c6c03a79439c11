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
		"TargetType", "HasStartDaemonAd", attrAdmitted, attrExecuteVolume, attrCurrentRank, attrNumPids, attrRetirementRemaining,
		attrFetchCompleted, attrFetchSpawned, attrFetchDelay,
		attrKeyboardIdle, attrConsoleIdle, attrLoadAvg, attrCondorLoadAvg, attrScratch,
	} {
		out.Delete(name)
	}
	for _, a := range m.slots {
		for _, n := range m.set.slotAttrs {
			out.Delete(a.s.Name() + "_" + n)
		}
	}
	m.instances(out)
	for _, p := range m.published[slot.ID{}] {
		for name, e := range p.attrs.All() {
			if !isStatic(name) && !isShared(name) {
				out.Set(name, e)
			}
		}
	}
	for _, o := range m.set.ownAttrs(0) {
		out.Set(o.name, o.expr)
	}
	out.SetString("MyType", "StartD")
	out.SetString(attrName, m.set.name)
	out.SetInt(attrMyCurrentTime, now.Wall.Unix())

	out.SetInt("DaemonStartTime", m.started.Wall.Unix())
	out.SetInt("DaemonLastReconfigTime", m.configured.Wall.Unix())

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
	if l := m.src.Inventory.Execute.Logical; l != nil { // in bytes, and in no ad of a slot, as HTCondor has them
		out.SetInt("LvmDetectedDisk", l.Bytes)
		out.SetInt("LvmNonCondorDiskUsage", l.OthersBytes)
	}
	m.usage(out, "TotalInUse", inUse, func(name string) bool { return m.taken[false][name] })
	m.usage(out, "TotalBackfillInUse", backfill, func(name string) bool { return m.taken[true][name] })
	m.usage(out, "ExcessBackfill", m.excess(), func(string) bool { return true })
	m.transferred.show(out)
	m.statistics(out, now)
	m.broken(out, problems)
	m.unparsed(out)
	return out
}

// unparsed lists what the owner wrote and is no expression, so that whoever
// looks at the pool sees that this machine does not decide as its owner meant.
// HTCondor says so only in its log.
func (m *Machine) unparsed(out *classad.Ad) {
	if len(m.src.Unparsed) == 0 {
		return
	}
	list := make([]*classad.Expr, 0, len(m.src.Unparsed))
	for _, err := range m.src.Unparsed {
		list = append(list, classad.Literal(classad.String(err.Error())))
	}
	out.SetValue("InvalidExpressions", classad.List(list...))
}

// took remembers that a slot with its custom resources was in use.
func (m *Machine) took(s *slot.Slot) {
	for _, c := range s.Total.Custom {
		if m.taken[s.Backfill] == nil {
			m.taken[s.Backfill] = map[string]bool{}
		}
		m.taken[s.Backfill][c.Name] = true
	}
}

// transfers counts what jobs have moved since the EP began.
type transfers struct {
	jobs    int
	in, out int64 // bytes
}

// Transferred adds what a job that ended has moved, in bytes: its input and
// its output.
func (m *Machine) Transferred(in, out int64) {
	m.transferred.jobs++
	m.transferred.in += max(0, in)
	m.transferred.out += max(0, out)
}

// show tells the totals and the average of a job, in MiB.
func (t transfers) show(ad *classad.Ad) {
	const mib = 1 << 20
	jobs := float64(max(1, t.jobs))
	ad.SetReal("TotalTransferInputMB", float64(t.in)/mib)
	ad.SetReal("AvgTransferInputMB", float64(t.in)/mib/jobs)
	ad.SetReal("TotalTransferOutputMB", float64(t.out)/mib)
	ad.SetReal("AvgTransferOutputMB", float64(t.out)/mib/jobs)
}

// usage shows amounts under a prefix; all but disk and memory are reals.
// Custom resources are shown where that is wanted: what is in use of one only
// when a slot that may have some was in use before.
func (m *Machine) usage(out *classad.Ad, prefix string, q slot.Quantities, shown func(name string) bool) {
	out.SetReal(prefix+attrCpus, q.Cpus)
	out.SetInt(prefix+attrMemory, q.MemoryMiB)
	out.SetInt(prefix+attrDisk, q.DiskKiB)
	for _, r := range m.src.Ledger.Resources() {
		if shown(r.Name) {
			c, _ := q.Find(r.Name)
			out.SetReal(prefix+r.Name, float64(c.Count))
		}
	}
}

// excess is what the backfill slots were given beyond what the primary slots
// were given.
func (m *Machine) excess() slot.Quantities {
	var primary, backfill slot.Quantities
	for _, a := range m.slots {
		switch {
		case a.s.Kind == slot.Dynamic:
		case a.s.Backfill:
			backfill = slot.Sum(backfill, a.s.Total)
		default:
			primary = slot.Sum(primary, a.s.Total)
		}
	}
	out := slot.Quantities{
		Cpus:      max(0, backfill.Cpus-primary.Cpus),
		MemoryMiB: max(0, backfill.MemoryMiB-primary.MemoryMiB),
		DiskKiB:   max(0, backfill.DiskKiB-primary.DiskKiB),
	}
	for _, c := range backfill.Custom {
		has, _ := primary.Find(c.Name)
		out.Custom = append(out.Custom, slot.Custom{Name: c.Name, Count: max(0, c.Count-has.Count)})
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
		if b := a.s.Broken; b != nil && !m.knownBreakage(a.s.Name()) {
			add(a.s.Name(), b.Reason)
		}
	}
	for _, p := range problems {
		if p.Slot.IsZero() && !p.Warning {
			add("slot_type"+strconv.Itoa(p.TypeID), p.Reason)
		}
	}
	times := make(map[string]int)
	var contexts []string
	for _, b := range m.breakages {
		times[b.Tag]++
		tag := b.Tag + letters(times[b.Tag])
		add(tag, b.Why.Reason)
		out.SetValue(tag+"BrokenContext", classad.AdValue(m.context(b)))
		contexts = append(contexts, tag+"BrokenContext")
	}
	if len(contexts) > 0 {
		_ = out.SetText("BrokenContextAds", "{ "+strings.Join(contexts, ",")+" }")
	}
	if len(tags) > 0 {
		_ = out.SetText("BrokenReasons", "{ "+strings.Join(tags, ",")+" }")
	}
}
