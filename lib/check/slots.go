// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/slot"
)

var (
	countKnob = pattern(`(?i)^NUM_SLOTS_TYPE_([0-9]+)$`)
	shareKnob = pattern(`(?i)^SLOT_TYPE_([0-9]+)$`)
)

// slotSettings reports settings for slots and slot types that nothing looks at.
func (c *checker) slotSettings() {
	for _, s := range c.set {
		name := bare(s.Name)
		if m := perSlot().FindStringSubmatch(name); m != nil {
			perType := strings.EqualFold(m[1], "SLOT_TYPE_")
			switch {
			case c.isPublished(m[3]):
			case perType && (strings.EqualFold(m[3], "IS_OWNER") || strings.EqualFold(m[3], "IsOwner")):
				c.add(found(NoEffect, s, "is not looked at: IS_OWNER is the machine's", "IS_OWNER = SlotTypeID =?= "+m[2]+" && …"))
			case !perType && isPolicy(m[3]):
				c.add(found(NoEffect, s, "is not looked at: an expression is replaced for a slot type, not for a slot",
					"SLOT_TYPE_<type>_"+m[3]+", or a clause SlotID == "+m[2]+" in "+m[3]))
			}
		}
		if m := shareKnob().FindStringSubmatch(name); m != nil && m[1] != "0" && !c.Partial {
			if many, err := c.Config.Int("NUM_SLOTS_TYPE_" + m[1]); err == nil && many <= 0 {
				if _, ok := c.setting("NUM_SLOTS_TYPE_" + m[1]); !ok {
					c.add(found(SlotUnused, s, "makes no slots", "NUM_SLOTS_TYPE_"+m[1]+" = 1"))
				}
			}
		}
	}
}

// slotWeight reports weights of what a negotiator does not know of a slot.
func (c *checker) slotWeight() {
	for _, s := range c.set {
		if _, knob := slotTypeKnob(bare(s.Name)); !strings.EqualFold(knob, "SLOT_WEIGHT") && !strings.EqualFold(knob, "SlotWeight") {
			continue
		}
		n := parse(s)
		if n == nil {
			continue
		}
		n.all(func(m *node) bool {
			if m.op != opAttr || m.isAttr("Cpus") || m.isAttr("Memory") || m.isAttr("Disk") {
				return true
			}
			c.add(found(WeightOther, s, "looks at "+m.written(), "Cpus, Memory and Disk only"))
			return false
		})
	}
}

// slots builds the slots on paper.
func (c *checker) slots() {
	if c.Inventory == nil {
		return
	}
	layout, err := slot.LayoutFrom(c.Config, c.Inventory, c.inventories()...)
	if err != nil {
		var ps config.Problems
		if errors.As(err, &ps) {
			for _, p := range ps {
				f := problem(p)
				if s, ok := c.Config.Lookup(p.Knob); ok {
					f.Template = s.Origin.Template
				}
				if !c.has(f.Knob, WrongType, OutOfRange, BadMacro) {
					c.add(f)
				}
			}
		}
		return
	}
	_, problems := slot.Build(layout, c.Inventory)
	told := map[int]bool{}
	for _, p := range problems {
		if !p.Warning && told[p.TypeID] || c.ofUnknown(p) {
			continue // the other slots of the type, or nobody can say
		}
		told[p.TypeID] = told[p.TypeID] || !p.Warning
		code, instead := SlotTooLarge, "less: this machine has "+slotResources(slot.CapacityOf(c.Inventory))
		if p.Warning {
			code, instead = SlotOdd, "cpus=, memory=, disk=, swap= or the name of a resource, each once"
		}
		s, ok := c.setting("SLOT_TYPE_" + strconv.Itoa(p.TypeID))
		if !ok {
			if s, ok = c.setting("NUM_SLOTS_TYPE_" + strconv.Itoa(p.TypeID)); !ok {
				s, _ = c.setting("NUM_SLOTS")
			}
		}
		f := found(code, s, "cannot be built: "+p.Reason+c.sums(layout, p.Reason, p.Detail), instead)
		if p.Warning {
			f.Message = p.Reason
		}
		c.add(f)
	}
}

// inventories are those that are known, and more than enough of what is not:
// nothing is short of a resource that nobody has counted.
func (c *checker) inventories() []slot.Inventory {
	all := slices.Clone(c.Found)
	for _, name := range c.Unknown {
		const plenty = 1 << 20
		ad := classad.NewAd()
		ad.SetInt("Detected"+name, plenty)
		all = append(all, slot.Inventory{Resource: name, Ad: ad})
	}
	return all
}

// ofUnknown reports whether a problem is about a resource that nobody counted.
func (c *checker) ofUnknown(p slot.Problem) bool {
	return slices.ContainsFunc(c.Unknown, func(name string) bool {
		word := regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(name) + `\b`)
		return word.MatchString(p.Reason)
	})
}

// shortOf finds in a reason the resource that ran out.
var shortOf = pattern(`(?i)not enough (\w+)`)

// sums shows what all slot types together ask of the resource that ran out, or
// else the detail of the problem.
func (c *checker) sums(layout slot.Layout, reason, detail string) string {
	m := shortOf().FindStringSubmatch(reason)
	if m == nil {
		return ": " + detail
	}
	var terms []string
	for _, t := range layout.Types {
		share := "an equal part"
		for item := range strings.FieldsFuncSeq(t.Shares.String(), func(r rune) bool { return r == ',' || r == '\n' || r == ' ' || r == '\t' }) {
			name, amount, named := strings.Cut(item, "=")
			switch {
			case !named:
				share = item
			case sameResource(name, m[1]):
				share = amount
			}
		}
		terms = append(terms, strconv.Itoa(t.Count)+" x "+share)
	}
	return ": " + m[1] + " " + strings.Join(terms, " + ") + " of " + c.total(layout, m[1])
}

// total is what the machine has of a resource.
func (c *checker) total(layout slot.Layout, resource string) string {
	has := slot.CapacityOf(c.Inventory)
	switch {
	case strings.EqualFold(resource, "Cpus"):
		return strconv.Itoa(has.Cpus)
	case strings.EqualFold(resource, "Memory"):
		return strconv.FormatInt(has.MemoryMiB, 10) + " MiB"
	case strings.EqualFold(resource, "Disk"):
		return strconv.FormatInt(has.DiskKiB, 10) + " KiB"
	case strings.EqualFold(resource, "Swap"):
		return strconv.FormatInt(has.SwapKiB, 10) + " KiB"
	}
	for _, r := range layout.Resources {
		if strings.EqualFold(r.Name, resource) {
			return strconv.FormatFloat(r.Count, 'f', -1, 64)
		}
	}
	return "none"
}

// sameResource compares the word of a description with a resource: both go by
// the first letter, or whole for custom ones.
func sameResource(word, resource string) bool {
	standard := map[byte]string{'c': "Cpus", 'm': "Memory", 'r': "Memory", 'd': "Disk", 's': "Swap", 'v': "Swap"}
	if strings.EqualFold(word, resource) {
		return true
	}
	return word != "" && strings.EqualFold(standard[strings.ToLower(word)[0]], resource)
}

func slotResources(has slot.Capacity) string {
	return slot.Quantities{Cpus: float64(has.Cpus), MemoryMiB: has.MemoryMiB, DiskKiB: has.DiskKiB}.String()
}

// has reports whether something of these codes was found about a knob.
func (c *checker) has(knob string, codes ...Code) bool {
	for i := range c.list {
		if strings.EqualFold(c.list[i].Knob, knob) {
			for _, code := range codes {
				if c.list[i].Code == code {
					return true
				}
			}
		}
	}
	return false
}
