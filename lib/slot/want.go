// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"strings"
)

// lint warns of what counts as nothing in a description. Only with FailAbort
// is a fraction that is none a reason to stop.
func (b *builder) lint(t *Type) {
	for _, w := range t.Shares.wishes {
		item := w.text
		if !w.blanket {
			item = w.name + "=" + w.text
		}
		warn := func(detail string) {
			if t.Where != "" {
				detail += " (" + t.Where + ")"
			}
			b.problems = append(b.problems, Problem{
				TypeID: t.Number, Warning: true, Reason: fmt.Sprintf("slot type %d: %q counts as nothing", t.Number, item), Detail: detail,
			})
		}
		if w.malformed {
			if b.layout.Failure == FailAbort {
				b.fail(t, fmt.Sprintf("%q is not a fraction: want two numbers, the second above 0", item))
				return
			}
			warn("not a fraction: want two numbers, the second above 0")
		}
		if w.blanket {
			continue
		}
		_, custom := b.find(w.name)
		if !custom && standard(w.name) == "" && !(w.kind == shareAmount && w.value > 0) {
			warn("there is no such resource: want cpus, memory, disk, swap" + b.names())
		}
	}
}

// want turns the shares of a type into amounts for its next slot.
func (b *builder) want(t *Type) (*plan, error) {
	p := &plan{
		typ: t, volume: b.volumeOf(len(b.plans) + 1),
		custom: make([]amount, len(b.resources)), constraints: make([]string, len(b.resources)),
	}
	var (
		blanket            wish
		haveCpus, haveMem  bool
		haveDisk, haveSwap bool
		haveCustom         = make([]bool, len(b.resources))
	)
	for _, w := range t.Shares.wishes {
		if w.blanket {
			blanket = w
			p.sliver = p.sliver || w.minimal
			continue
		}
		if i, ok := b.find(w.name); ok {
			p.custom[i], haveCustom[i] = w.of(b.resources[i].Count, 0), true
			p.constraints[i] = w.constraint
			continue
		}
		switch standard(w.name) {
		case "cpus":
			least := 1.0
			if p.sliver {
				least = 0
			}
			p.cpus, haveCpus = w.of(float64(b.has.Cpus), least), true
		case "memory":
			p.mem, haveMem = w.whole(b.has.MemoryMiB, 1, 2), true
		case "swap":
			p.swap, haveSwap = w.whole(b.has.SwapKiB, 0, 1), true
		case "disk":
			p.disk, haveDisk = w.whole(p.volume.size, leastDiskKiB, 1), true
		default:
			if w.kind == shareAmount && w.value > 0 {
				return nil, fmt.Errorf("unknown resource %q in %q: want cpus, memory, disk, swap%s", w.name, w.name+"="+w.text, b.names())
			}
		}
	}
	least := int64(1)
	if p.sliver {
		least = 0
	}
	if !haveCpus {
		p.cpus = blanket.of(float64(b.has.Cpus), float64(least))
	}
	if !haveMem {
		p.mem = blanket.whole(b.has.MemoryMiB, least, 2)
	}
	if !haveSwap {
		p.swap = blanket.whole(b.has.SwapKiB, 0, 1)
	}
	if !haveDisk {
		p.disk = blanket.whole(p.volume.size, 0, 1)
	}
	for i, have := range haveCustom {
		if !have {
			p.custom[i] = blanket.of(b.resources[i].Count, 0)
		}
	}
	b.homeless(p)
	return p, nil
}

// homeless breaks a plan whose execute directory cannot be used. The rest of
// the slot is made all the same, and shown; without a directory it has no disk,
// however much was asked for, and lacks nothing else for that.
func (b *builder) homeless(p *plan) {
	why, unusable := b.layout.Unusable[len(b.plans)+1]
	if !unusable {
		return
	}
	p.broken = &BrokenReason{Code: BrokenExecuteDir, Reason: why}
	if p.volume.size <= 0 {
		p.disk = amount{}
	}
}

// leastDiskKiB is the least that an explicit share of disk comes to.
const leastDiskKiB = 1024

func (b *builder) find(name string) (int, bool) {
	for i := range b.resources {
		if strings.EqualFold(b.resources[i].Name, name) {
			return i, true
		}
	}
	return 0, false
}

func (b *builder) names() string {
	var s strings.Builder
	for _, r := range b.resources {
		s.WriteString(", " + r.Name)
	}
	return s.String()
}

// standard returns the resource that a name stands for: any beginning of the
// full names will do, in any case.
func standard(name string) string {
	for _, full := range [...]struct{ spelling, resource string }{
		{"cpus", "cpus"}, {"ram", "memory"}, {"memory", "memory"},
		{"swap", "swap"}, {"virtualmemory", "swap"}, {"disk", "disk"},
	} {
		if len(name) <= len(full.spelling) && strings.EqualFold(name, full.spelling[:len(name)]) {
			return full.resource
		}
	}
	return ""
}
