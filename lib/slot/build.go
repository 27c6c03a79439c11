// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Divide builds the slots of a layout out of a machine. The ledger is never
// nil. Problems tell what could not be built; with FailContinue the rest is
// there, otherwise the ledger is without slots.
//
// Slots are numbered by type, then by count. Fixed shares are taken in that
// order, open ones ("auto") divide what is left. All divisions cut off the
// remainder, which stays unused.
func Divide(layout Layout, has Capacity) (*Ledger, []Problem) {
	b := newBuilder(layout, has)
	b.takeFixed()
	if !b.stopped {
		b.dealOpen()
	}
	if b.stopped {
		empty := newBuilder(layout, has)
		return empty.ledger(), b.problems
	}
	b.bind()
	return b.ledger(), b.problems
}

// plan is a slot in the making.
type plan struct {
	typ                   *Type
	volume                *volume
	cpus, mem, disk, swap amount
	custom                []amount // parallel to builder.resources
	constraints           []string // parallel to builder.resources, empty strings for none
	sliver                bool     // may have less than one processor
	broken                *BrokenReason
	assets                [][]string // parallel to builder.resources
}

type volume struct {
	id        string
	size      int64
	primary   room
	backfill  room
	provision int64 // handed to slots
}

// room is what is left of one resource while slots are fitted.
type room struct {
	left  float64
	autos int // slots with an open share
}

// space is what is left of everything; backfill slots have one of their own.
type space struct {
	cpus, mem, swap room
	custom          []room
	dealt           []room // of custom, while open shares are dealt
}

type builder struct {
	layout    Layout
	has       Capacity
	resources []Resource // ascending by name
	volumes   []*volume
	primary   space
	backfill  space
	plans     []*plan
	problems  []Problem
	stopped   bool
}

func newBuilder(layout Layout, has Capacity) *builder {
	b := &builder{layout: layout, has: has, resources: slices.Clone(layout.Resources)}
	slices.SortFunc(b.resources, func(x, y Resource) int { return compareFold(x.Name, y.Name) })
	for i, r := range b.resources {
		b.resources[i].Count = grain(r.Count)
		if r.Assets != nil {
			b.resources[i].Count = float64(len(r.Assets))
		}
	}
	for _, s := range []*space{&b.primary, &b.backfill} {
		*s = space{
			cpus: room{left: float64(has.Cpus)}, mem: room{left: float64(has.MemoryMiB)}, swap: room{left: float64(has.SwapKiB)},
			custom: make([]room, len(b.resources)),
		}
		for i, r := range b.resources {
			s.custom[i].left = r.Count
		}
	}
	b.volumes = []*volume{{size: has.DiskKiB}}
	for _, v := range has.Volumes {
		b.volumes = append(b.volumes, &volume{id: v.ID, size: v.DiskKiB})
	}
	for _, v := range b.volumes {
		v.primary.left, v.backfill.left = float64(v.size), float64(v.size)
	}
	return b
}

// volumeOf returns the file system of the execute directory of slot n.
func (b *builder) volumeOf(n int) *volume {
	for i, v := range b.has.Volumes {
		if slices.Contains(v.Slots, n) {
			return b.volumes[i+1]
		}
	}
	return b.volumes[0]
}

func (b *builder) spaceOf(t *Type) *space {
	if t.Backfill {
		return &b.backfill
	}
	return &b.primary
}

func (p *plan) room() *room {
	if p.typ.Backfill {
		return &p.volume.backfill
	}
	return &p.volume.primary
}

// fail records that a type lacks slots, once, and stops the build where the
// failure mode says so.
func (b *builder) fail(t *Type, detail string) {
	switch b.layout.Failure {
	case FailContinue:
	case FailAbort, FailClear:
		b.stopped = true
	}
	if slices.ContainsFunc(b.problems, func(p Problem) bool { return p.TypeID == t.Number && p.Slot.IsZero() && !p.Warning }) {
		return
	}
	b.problems = append(b.problems, Problem{
		TypeID: t.Number, Detail: t.at(detail), Fatal: b.layout.Failure == FailAbort,
		Reason: fmt.Sprintf("Could not create required number of type%d slots", t.Number),
	})
}

// takeFixed makes a plan for every slot and takes its fixed shares.
func (b *builder) takeFixed() {
	for i := range b.layout.Types {
		t := &b.layout.Types[i]
		if t.Err != nil {
			b.fail(t, t.Err.Error())
			if b.stopped {
				return
			}
			continue
		}
		b.lint(t)
		if b.stopped {
			return
		}
		for j := range t.Count {
			p, err := b.want(t)
			if err != nil {
				b.fail(t, err.Error())
				if b.stopped {
					return
				}
				break
			}
			if p.broken != nil && b.layout.Failure != FailContinue {
				b.fail(t, p.broken.Reason)
				return
			}
			if b.take(p) {
				b.plans = append(b.plans, p)
				if p.broken != nil {
					b.problems = append(b.problems, Problem{Slot: ID{N: len(b.plans)}, TypeID: t.Number, Reason: p.broken.Reason})
				}
				continue
			}
			if b.layout.Failure != FailContinue || j > 0 {
				b.fail(t, "not enough "+b.shortage(p)+": "+b.arithmetic(p, j+1))
				if b.stopped {
					return
				}
				// The slots of a type are alike: what did not fit once will
				// not fit again.
				break
			}
			detail := b.arithmetic(p, j+1)
			reason := BrokenReason{Code: BrokenNoResources, Reason: "Not enough " + b.trim(p)}
			if !b.take(p) {
				b.fail(t, strings.ToLower(reason.Reason[:1])+reason.Reason[1:]+": "+detail)
				break
			}
			p.broken = &reason
			b.plans = append(b.plans, p)
			b.problems = append(b.problems, Problem{
				Slot: ID{N: len(b.plans)}, TypeID: t.Number, Reason: reason.Reason, Detail: t.at(detail),
			})
		}
	}
}

// tolerance lets a sum of fractions reach the whole: amounts have a grain of
// one millionth, so it is half of that.
const tolerance = 5e-7

// grain rounds an amount to whole millionths.
func grain(v float64) float64 { return roundCpus(v) }

// counted is what the slot's processors cost the machine: a sliver of less
// than half a processor costs nothing.
func (p *plan) counted() float64 {
	if p.sliver && p.cpus.value < 0.5 {
		return 0
	}
	return p.cpus.value
}

// after returns what is left when a is taken, and whether that can be.
func (r room) after(a amount) (room, bool) {
	if a.auto {
		r.autos++
		return r, r.left >= -tolerance
	}
	r.left -= a.value
	return r, r.left >= -tolerance
}

// take books the fixed amounts of a plan, all or none.
func (b *builder) take(p *plan) bool {
	s := b.spaceOf(p.typ)
	cost := p.cpus
	if !cost.auto {
		cost.value = p.counted()
	}
	cpus, _ := s.cpus.after(cost)
	// Only whole processors remain after each slot, so that shares of a
	// third of eight processors fit three times.
	okCpus := cpus.left >= -tolerance
	cpus.left = math.Trunc(cpus.left)
	if !p.sliver {
		okCpus = cpus.left >= 0
	}
	mem, okMem := s.mem.after(p.mem)
	swap, okSwap := s.swap.after(p.swap)
	disk, okDisk := p.room().after(p.disk)
	custom := make([]room, len(s.custom))
	ok := okCpus && okMem && okSwap && okDisk
	for i := range custom {
		var fits bool
		custom[i], fits = s.custom[i].after(p.custom[i])
		ok = ok && fits
	}
	if !ok {
		return false
	}
	s.cpus, s.mem, s.swap, s.custom = cpus, mem, swap, custom
	*p.room() = disk
	return true
}

// at adds the origin of the type's description to a message.
func (t *Type) at(detail string) string {
	if t.Where == "" {
		return detail
	}
	return detail + " (" + t.Where + ")"
}

// arithmetic says of everything that a plan, the n-th of its type, lacks how
// much it wants and how much is left of what there is.
func (b *builder) arithmetic(p *plan, n int) string {
	words := fmt.Sprintf("slot %d of %d of type %d", n, p.typ.Count, p.typ.Number)
	if text := strings.Join(strings.Fields(p.typ.Shares.text), " "); text != "" {
		words += fmt.Sprintf(" %q", text)
	}
	for i, l := range b.lacks(p) {
		if i > 0 {
			words += " and"
		}
		words += fmt.Sprintf(" wants %s %s, %s of %s left", formatCpus(grain(l.cost)), l.unit, formatCpus(grain(max(l.left, 0))), formatCpus(grain(l.total)))
	}
	return words
}

// lack is one resource that a plan wants more of than is left.
type lack struct {
	name, unit, format string
	a                  *amount
	cost, left, total  float64
}

func (b *builder) lacks(p *plan) []lack {
	s := b.spaceOf(p.typ)
	all := []lack{
		{"Cpus", "Cpus", "%.2f", &p.cpus, p.counted(), s.cpus.left, float64(b.has.Cpus)},
		{"Memory", "MiB Memory", "%.0f", &p.mem, p.mem.value, s.mem.left, float64(b.has.MemoryMiB)},
		{"Swap", "KiB Swap", "%.0f", &p.swap, p.swap.value, s.swap.left, float64(b.has.SwapKiB)},
		{"Disk", "KiB Disk", "%.0f", &p.disk, p.disk.value, p.room().left, float64(p.volume.size)},
	}
	for i, r := range b.resources {
		all = append(all, lack{r.Name, r.Name, "%.2f", &p.custom[i], p.custom[i].value, s.custom[i].left, r.Count})
	}
	var out []lack
	for _, l := range all {
		if !l.a.auto && l.left-l.cost < -tolerance {
			out = append(out, l)
		}
	}
	return out
}

// shortage says what a plan lacks, as HTCondor words it: "Cpus (1.00
// short) Memory (72 short)".
func (b *builder) shortage(p *plan) string { return b.short(p, false) }

// trim cuts a plan down to what is left and says what it lacked.
func (b *builder) trim(p *plan) string { return b.short(p, true) }

func (b *builder) short(p *plan, cut bool) string {
	var words []string
	for _, l := range b.lacks(p) {
		words = append(words, fmt.Sprintf("%s ("+l.format+" short)", l.name, l.cost-l.left))
		if cut {
			l.a.value = max(l.left, 0)
		}
	}
	return strings.Join(words, " ")
}
