// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"math"
	"slices"

	"github.com/execpoint/execpoint/lib/classad"
)

// dealOpen gives every open share its part of what the fixed ones left. Of
// processors, memory, swap and disk each gets the same; of custom resources
// the first slots get one more when it does not come out even.
func (b *builder) dealOpen() {
	for _, s := range []*space{&b.primary, &b.backfill} {
		s.dealt = slices.Clone(s.custom)
	}
	for i, p := range b.plans {
		missing, detail := b.deal(p)
		if missing == "" {
			continue
		}
		if b.layout.Failure != FailContinue {
			b.fail(p.typ, missing+": "+detail)
			return
		}
		reason := BrokenReason{Code: BrokenNoResources, Reason: missing}
		if p.broken != nil {
			reason.Reason = p.broken.Reason + "; " + missing
		}
		p.broken = &reason
		b.problems = slices.DeleteFunc(b.problems, func(q Problem) bool { return q.Slot == ID{N: i + 1} })
		b.problems = append(b.problems, Problem{Slot: ID{N: i + 1}, TypeID: p.typ.Number, Reason: reason.Reason, Detail: p.typ.at(detail)})
	}
	for _, v := range b.volumes {
		for _, r := range []room{v.primary, v.backfill} {
			handed := float64(v.size)
			if r.autos == 0 {
				handed -= r.left
			}
			v.provision = max(v.provision, int64(handed))
		}
	}
}

// deal fills the open shares of one plan in turn and says which could not be
// filled. What was filled before stays taken; the rest becomes nothing, so
// that a slot that lacks something is broken instead of half open.
func (b *builder) deal(p *plan) (missing, detail string) {
	s := b.spaceOf(p.typ)
	part := func(name string, a *amount, r room, total, least float64, round func(float64) float64) {
		if !a.auto {
			return
		}
		each := r.left / float64(r.autos)
		each = grain(round(each))
		if missing == "" && each < least {
			missing = fmt.Sprintf("Not enough %s (%.0f left for %d slots)", name, max(r.left, 0), r.autos)
			detail = fmt.Sprintf("%d slots with an open share divide what fixed shares leave of %.0f %s, which is %.0f: each needs at least 1",
				r.autos, total, name, max(r.left, 0))
		}
		if missing != "" {
			each = 0
		}
		*a = amount{value: each}
	}
	fractions := func(each float64) float64 { return each }
	leastCpus := 1.0
	if p.sliver {
		leastCpus = math.SmallestNonzeroFloat64
	}
	part("Cpus", &p.cpus, s.cpus, float64(b.has.Cpus), leastCpus, fractions)
	part("Memory", &p.mem, s.mem, float64(b.has.MemoryMiB), 1, math.Trunc)
	part("Swap", &p.swap, s.swap, float64(b.has.SwapKiB), b.leastSwap(), math.Trunc)
	part("Disk", &p.disk, *p.room(), float64(p.volume.size), 1, math.Trunc)
	for i := range p.custom {
		a, r := &p.custom[i], &s.dealt[i]
		if !a.auto {
			continue
		}
		each := 0.0
		if missing == "" && s.custom[i].left >= 1 {
			each = min(math.Ceil(r.left/float64(r.autos)), math.Floor(r.left))
			r.left -= each
		}
		r.autos--
		*a = amount{value: each}
	}
	return missing, detail
}

// leastSwap is 1, and 0 on a machine without any: having no swap is no reason
// to run nothing.
func (b *builder) leastSwap() float64 {
	if b.has.SwapKiB <= 0 {
		return 0
	}
	return 1
}

// bind gives names of instances to the slots, in inventory order; backfill
// slots, which share them, take from the end. A slot that finds too few that
// suit it keeps those, and is broken.
func (b *builder) bind() {
	for _, p := range b.plans {
		p.assets = make([][]string, len(b.resources))
	}
	for k, r := range b.resources {
		if len(r.Assets) == 0 {
			continue
		}
		front, back := slices.Clone(r.Assets), slices.Clone(r.Assets)
		slices.Reverse(back)
		for i, p := range b.plans {
			pool := &front
			if p.typ.Backfill {
				pool = &back
			}
			n := int(p.custom[k].value)
			var constraint *classad.Expr
			detail := fmt.Sprintf("%d of %s", n, r.Name)
			if text := p.constraints[k]; text != "" {
				var err error
				if constraint, err = classad.ParseExpr(text, classad.Old); err != nil {
					detail = fmt.Sprintf("the constraint %q is not an expression: %v", text, err)
					constraint = classad.Literal(classad.ErrorValue())
				} else {
					detail = fmt.Sprintf("%d of %s with %s", n, r.Name, text)
				}
			}
			p.assets[k] = slices.Clone(r.choose(*pool, n, constraint))
			*pool = without(*pool, p.assets[k])
			if len(p.assets[k]) < n && p.broken == nil {
				b.unequipped(i, r.Name, fmt.Sprintf("%s, only %d left", detail, len(p.assets[k])))
			}
		}
	}
	for k, r := range b.resources {
		for i, p := range b.plans {
			if p.constraints[k] != "" && len(r.Assets) == 0 && p.custom[k].value >= 1 && p.broken == nil {
				b.unequipped(i, r.Name, fmt.Sprintf("%s has no named instances to choose from by %s", r.Name, p.constraints[k]))
			}
		}
	}
}

// unequipped breaks the slot of a plan that lacks instances of a resource.
func (b *builder) unequipped(i int, resource, detail string) {
	p := b.plans[i]
	detail = p.typ.at(detail)
	reason := BrokenReason{Code: BrokenAssets, Reason: "Not enough instances of resource " + resource}
	p.broken = &reason
	b.problems = append(b.problems, Problem{Slot: ID{N: i + 1}, TypeID: p.typ.Number, Reason: reason.Reason, Detail: detail})
}

// ledger turns the plans into slots. Parts of a processor that are left over
// by a share stay with the machine.
func (b *builder) ledger() *Ledger {
	l := &Ledger{total: Quantities{
		Cpus: float64(max(b.has.Cpus, 0)), MemoryMiB: max(b.has.MemoryMiB, 0), SwapKiB: max(b.has.SwapKiB, 0),
	}}
	for _, v := range b.volumes {
		l.total.DiskKiB += max(v.size, 0)
	}
	for _, r := range b.resources {
		usable := Custom{Name: r.Name, Count: int64(math.Floor(r.Count)), Assets: slices.Clone(r.Assets)}
		offline := Custom{Name: r.Name, Count: int64(len(r.Offline)) + int64(math.Floor(grain(r.Without))), Assets: slices.Clone(r.Offline)}
		l.offline.Custom = append(l.offline.Custom, offline)
		l.total.Custom = append(l.total.Custom, Custom{
			Name: r.Name, Count: usable.Count + offline.Count, Assets: slices.Concat(usable.Assets, offline.Assets),
		})
	}
	l.diskKiB = max(b.has.DiskKiB, 0)
	l.spare = minus(l.total, l.offline)
	l.resources, l.built = b.resources, slices.Clone(b.resources)
	l.outages, l.unlisted = make([]outage, len(b.resources)), b.layout.Unlisted
	for i, p := range b.plans {
		s := &Slot{
			ID: ID{N: i + 1}, TypeID: p.typ.Number, Prefix: p.typ.Prefix, Backfill: p.typ.Backfill, Broken: p.broken,
			VolumeDiskKiB: p.volume.provision,
		}
		if s.Prefix == "" {
			s.Prefix = DefaultPrefix
		}
		if p.typ.Partitionable {
			s.Kind = Partitionable
		}
		s.Total = Quantities{
			Cpus: math.Floor(p.cpus.value), MemoryMiB: int64(p.mem.value),
			DiskKiB: int64(p.disk.value), SwapKiB: int64(p.swap.value),
		}
		if p.sliver {
			s.Total.Cpus = p.cpus.value
			s.Sliver = p.counted() == 0
		}
		for k, r := range b.resources {
			c := Custom{Name: r.Name, Count: int64(p.custom[k].value)}
			if len(r.Assets) > 0 {
				if p.broken != nil && p.broken.Code == BrokenAssets {
					s.Asked = append(s.Asked, c)
				}
				c.Count, c.Assets = int64(len(p.assets[k])), p.assets[k]
			}
			s.Total.Custom = append(s.Total.Custom, c)
		}
		if s.Broken == nil {
			s.Free = s.Total
		}
		if s.Backfill {
			l.overlapped = true
		} else {
			l.spare = minus(l.spare, s.accounted(s.Total))
		}
		l.shares = append(l.shares, &share{
			slot: s, dealtKiB: s.Total.DiskKiB, provisionKiB: s.VolumeDiskKiB, elsewhere: p.volume != b.volumes[0],
		})
	}
	return l
}
