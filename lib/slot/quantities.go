// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// Quantities are amounts of every resource. The zero value is nothing at all.
// Quantities are values: functions here never change the slices of an
// argument.
type Quantities struct {
	Cpus      float64 // processors, in millionths: finer parts are rounded away
	MemoryMiB int64
	DiskKiB   int64
	SwapKiB   int64
	Custom    []Custom // ascending by Name without regard to case, no name twice
}

// Custom is an amount of one counted resource that the configuration or an
// inventory named. When the instances have names, Assets lists them in
// inventory order and Count is their number. A name may be there more than once.
type Custom struct {
	Name   string
	Count  int64
	Assets []string

	// Require, in a Request, is what each instance must have: an expression
	// over its properties. Nil takes any instance.
	Require *classad.Expr
}

// microsPerCpu is the grain of processors. Amounts are kept as float64 but
// are always whole millionths, so that sums of them are exact.
const microsPerCpu = 1e6

func micros(cpus float64) int64 { return int64(math.Round(cpus * microsPerCpu)) }

func roundCpus(cpus float64) float64 { return math.Round(cpus*microsPerCpu) / microsPerCpu }

// Find returns the amount of the named custom resource; a name is compared
// without regard to case.
func (q Quantities) Find(name string) (Custom, bool) {
	for i := range q.Custom {
		if strings.EqualFold(q.Custom[i].Name, name) {
			return q.Custom[i], true
		}
	}
	return Custom{}, false
}

// IsZero reports whether q is nothing at all.
func (q Quantities) IsZero() bool {
	if micros(q.Cpus) != 0 || q.MemoryMiB != 0 || q.DiskKiB != 0 || q.SwapKiB != 0 {
		return false
	}
	for _, c := range q.Custom {
		if c.Count != 0 {
			return false
		}
	}
	return true
}

// Fits reports whether q is no more than avail in every resource.
func (q Quantities) Fits(avail Quantities) bool { return q.Misfit(avail) == "" }

// Misfit says with the numbers what of q is more than avail has, and nothing
// when q fits: "Cpus 8 > 2, Memory 9000000 > 16384".
func (q Quantities) Misfit(avail Quantities) string {
	var b strings.Builder
	for i, m := range q.misfits(avail) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(m.name + " " + m.want + " > " + m.have)
	}
	return b.String()
}

// misfit is one resource that a request wants more of than there is.
type misfit struct {
	name, want, have string
}

func (q Quantities) misfits(avail Quantities) []misfit {
	var out []misfit
	if micros(q.Cpus) > micros(avail.Cpus) {
		out = append(out, misfit{"Cpus", formatCpus(q.Cpus), formatCpus(avail.Cpus)})
	}
	whole := func(name string, want, have int64) {
		if want > have {
			out = append(out, misfit{name, strconv.FormatInt(want, 10), strconv.FormatInt(have, 10)})
		}
	}
	whole("Memory", q.MemoryMiB, avail.MemoryMiB)
	whole("Disk", q.DiskKiB, avail.DiskKiB)
	whole("VirtualMemory", q.SwapKiB, avail.SwapKiB)
	for _, c := range q.Custom {
		have, _ := avail.Find(c.Name)
		whole(c.Name, c.Count, have.Count)
	}
	return out
}

// valid refuses amounts that no slot can have.
func (q Quantities) valid() error {
	if !(q.Cpus >= 0 && q.Cpus < 1<<31) {
		return fmt.Errorf("%v cpus", q.Cpus)
	}
	if q.MemoryMiB < 0 || q.DiskKiB < 0 || q.SwapKiB < 0 {
		return fmt.Errorf("a negative amount: %s, %d KiB swap", q, q.SwapKiB)
	}
	for i, c := range q.Custom {
		if c.Count < 0 {
			return fmt.Errorf("a negative amount: %s %d", c.Name, c.Count)
		}
		if i > 0 && compareFold(q.Custom[i-1].Name, c.Name) >= 0 {
			return fmt.Errorf("resources out of order: %s behind %s", c.Name, q.Custom[i-1].Name)
		}
	}
	return nil
}

// take returns what a slot gets that asks for r out of q: every custom
// resource of q, the first named instances that have what r requires.
func (l *Ledger) take(q Quantities, r Request) (Quantities, error) {
	out := Quantities{Cpus: roundCpus(r.Cpus), MemoryMiB: r.MemoryMiB, DiskKiB: r.DiskKiB, SwapKiB: r.SwapKiB}
	if len(q.Custom) == 0 {
		return out, nil
	}
	out.Custom = make([]Custom, len(q.Custom))
	for i, c := range q.Custom {
		want, _ := r.Find(c.Name)
		out.Custom[i] = Custom{Name: c.Name, Count: want.Count}
		switch {
		case want.Count == 0:
		case want.Require != nil:
			var of Resource
			if k := slices.IndexFunc(l.resources, func(r Resource) bool { return strings.EqualFold(r.Name, c.Name) }); k >= 0 {
				of = l.resources[k]
			}
			chosen := of.choose(c.Assets, int(want.Count), want.Require)
			if int64(len(chosen)) < want.Count {
				return Quantities{}, fmt.Errorf("%s %d > %d with %s", c.Name, want.Count, len(chosen), want.Require)
			}
			out.Custom[i].Assets = chosen
		case len(c.Assets) > 0:
			out.Custom[i].Assets = c.Assets[:want.Count:want.Count]
		}
	}
	return out, nil
}

// ordered returns q with its assets in the order they have in inventory.
func (q Quantities) ordered(inventory Quantities) Quantities {
	for i, c := range q.Custom {
		if len(c.Assets) < 2 {
			continue
		}
		all, _ := inventory.Find(c.Name)
		q.Custom[i].Assets = without(all.Assets, without(all.Assets, c.Assets))
	}
	return q
}

// most returns the larger amount of every resource.
func most(a, b Quantities) Quantities {
	out := Quantities{
		Cpus: max(a.Cpus, b.Cpus), MemoryMiB: max(a.MemoryMiB, b.MemoryMiB),
		DiskKiB: max(a.DiskKiB, b.DiskKiB), SwapKiB: max(a.SwapKiB, b.SwapKiB),
		Custom: slices.Clone(a.Custom),
	}
	for _, c := range b.Custom {
		i, found := slices.BinarySearchFunc(out.Custom, c.Name, compareCustom)
		if !found {
			out.Custom = slices.Insert(out.Custom, i, Custom{Name: c.Name, Count: c.Count})
		} else if c.Count > out.Custom[i].Count {
			out.Custom[i].Count = c.Count
		}
	}
	return out
}

// difference says where two amounts differ, with the names of assets, in any
// order; a resource that is absent counts as 0.
func difference(want, have Quantities) string {
	switch {
	case micros(want.Cpus) != micros(have.Cpus):
		return fmt.Sprintf("Cpus %v, want %v", have.Cpus, want.Cpus)
	case want.MemoryMiB != have.MemoryMiB:
		return fmt.Sprintf("Memory %d, want %d", have.MemoryMiB, want.MemoryMiB)
	case want.DiskKiB != have.DiskKiB:
		return fmt.Sprintf("Disk %d, want %d", have.DiskKiB, want.DiskKiB)
	case want.SwapKiB != have.SwapKiB:
		return fmt.Sprintf("VirtualMemory %d, want %d", have.SwapKiB, want.SwapKiB)
	}
	for _, pair := range [][2]Quantities{{want, have}, {have, want}} {
		for _, c := range pair[0].Custom {
			o, _ := pair[1].Find(c.Name)
			if c.Count != o.Count {
				return fmt.Sprintf("%s %d against %d", c.Name, c.Count, o.Count)
			}
			if x, y := slices.Sorted(slices.Values(c.Assets)), slices.Sorted(slices.Values(o.Assets)); !slices.Equal(x, y) {
				return fmt.Sprintf("%s %v against %v", c.Name, x, y)
			}
		}
	}
	return ""
}

func formatCpus(c float64) string { return strconv.FormatFloat(c, 'f', -1, 64) }

// Clone returns a copy of q that shares nothing with it.
func (q Quantities) Clone() Quantities {
	q.Custom = slices.Clone(q.Custom)
	for i := range q.Custom {
		q.Custom[i].Assets = slices.Clone(q.Custom[i].Assets)
	}
	return q
}

// String prints q for people: "2 cpus, 4096 MiB, 20971520 KiB disk, 2 GPUs".
func (q Quantities) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s cpus, %d MiB, %d KiB disk", formatCpus(q.Cpus), q.MemoryMiB, q.DiskKiB)
	for _, c := range q.Custom {
		if c.Count != 0 {
			fmt.Fprintf(&b, ", %d %s", c.Count, c.Name)
		}
	}
	return b.String()
}

// Sum returns a + b, the assets of b behind those of a.
func Sum(a, b Quantities) Quantities { return plus(a, b) }

// plus returns a + b: assets of b behind those of a.
func plus(a, b Quantities) Quantities {
	out := a
	out.Cpus = roundCpus(a.Cpus + b.Cpus)
	out.MemoryMiB += b.MemoryMiB
	out.DiskKiB += b.DiskKiB
	out.SwapKiB += b.SwapKiB
	if len(b.Custom) == 0 {
		return out
	}
	out.Custom = slices.Clone(a.Custom)
	for _, c := range b.Custom {
		i, found := slices.BinarySearchFunc(out.Custom, c.Name, compareCustom)
		if !found {
			out.Custom = slices.Insert(out.Custom, i, Custom{Name: c.Name, Count: c.Count, Assets: slices.Clone(c.Assets)})
			continue
		}
		out.Custom[i].Count += c.Count
		out.Custom[i].Assets = slices.Concat(out.Custom[i].Assets, c.Assets)
	}
	return out
}

// minus returns a − b for a b that fits in a; the assets of b leave those of
// a in their order.
func minus(a, b Quantities) Quantities {
	out := a
	out.Cpus = roundCpus(a.Cpus - b.Cpus)
	out.MemoryMiB -= b.MemoryMiB
	out.DiskKiB -= b.DiskKiB
	out.SwapKiB -= b.SwapKiB
	if len(b.Custom) == 0 {
		return out
	}
	out.Custom = slices.Clone(a.Custom)
	for _, c := range b.Custom {
		i, found := slices.BinarySearchFunc(out.Custom, c.Name, compareCustom)
		if !found {
			continue
		}
		out.Custom[i].Count -= c.Count
		if len(c.Assets) > 0 {
			out.Custom[i].Assets = without(out.Custom[i].Assets, c.Assets)
		}
	}
	return out
}

// without returns what is left of a list of instances, in its order, when others
// are taken out. A name that is listed twice is two instances: a device that two
// jobs may use at once. Each name that is taken is one of them.
func without(ids, taken []string) []string {
	left := make([]string, 0, len(ids))
	rest := slices.Clone(taken)
	for _, id := range ids {
		if i := slices.Index(rest, id); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
			continue
		}
		left = append(left, id)
	}
	return left
}

func compareCustom(c Custom, name string) int { return compareFold(c.Name, name) }

// compareFold orders resource names without regard to ASCII case.
func compareFold(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := lower(a[i]), lower(b[i])
		if x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
