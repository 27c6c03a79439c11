// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"errors"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// LayoutFrom reads how the configuration wants the machine divided. The
// inventory tells how many static slots there are when the count is left
// open. The error is a config.Problems with every setting that cannot be
// read; a description that cannot be built is told by Build instead, because
// what becomes of it is the owner's choice.
//
// found is what inventory programs said, by whoever ran them. A number or list
// in the configuration counts before it, and it before what scanners found
// (machine.Inventory.Resources).
func LayoutFrom(cfg *config.Snapshot, inv *machine.Inventory, found ...Inventory) (Layout, error) {
	r := layoutReader{cfg: cfg, scanned: inv.Resources}
	layout := Layout{Failure: r.failureMode()}
	layout.Resources, layout.Unlisted = r.resources(found)
	layout.Types = r.types(inv.UsableCores)
	slots := 0
	for _, t := range layout.Types {
		slots += t.Count
	}
	if slots > MaxSlots {
		t := layout.Types[len(layout.Types)-1]
		r.problem(countKnob(t.Number), "the layout has "+strconv.Itoa(slots)+" slots", "at most "+strconv.Itoa(MaxSlots))
	}
	if len(r.problems) > 0 {
		return Layout{}, r.problems
	}
	return layout, nil
}

// Build divides the machine of the inventory; see Divide.
func Build(layout Layout, inv *machine.Inventory) (*Ledger, []Problem) {
	return Divide(layout, CapacityOf(inv))
}

// CapacityOf returns what an inventory has to divide.
func CapacityOf(inv *machine.Inventory) Capacity {
	has := Capacity{
		Cpus: inv.UsableCores, MemoryMiB: inv.UsableMemoryMiB, DiskKiB: inv.Execute.FreeKiB, SwapKiB: inv.SwapKiB,
	}
	for _, v := range inv.Volumes {
		has.Volumes = append(has.Volumes, Volume{ID: v.ID, DiskKiB: v.FreeKiB, Slots: v.Slots})
	}
	return has
}

type layoutReader struct {
	cfg      *config.Snapshot
	scanned  []machine.Resource
	problems config.Problems
}

// problem records what is wrong with a knob, at the place that set it.
func (r *layoutReader) problem(knob, message, want string) {
	p := &config.Problem{Knob: knob, Message: message, Want: want, Class: config.BadValue}
	if s, ok := r.cfg.Lookup(knob); ok {
		p.Value = s.Value
		p.File, p.Line, p.Column, p.EndLine = s.Origin.File, s.Origin.Line, s.Origin.Column, s.Origin.EndLine
		if p.File == "" {
			p.File = s.Origin.String()
		}
	}
	r.problems = append(r.problems, p)
}

func (r *layoutReader) fail(knob string, err error) {
	var p *config.Problem
	var ps config.Problems
	switch {
	case errors.As(err, &p):
		r.problems = append(r.problems, p)
	case errors.As(err, &ps):
		r.problems = append(r.problems, ps...)
	default:
		r.problem(knob, err.Error(), "")
	}
}

func (r *layoutReader) set(knob string) bool {
	s, ok := r.cfg.Lookup(knob)
	return ok && !s.IsDefault && s.Value != ""
}

func (r *layoutReader) number(knob string) int {
	n, err := r.cfg.Int(knob)
	if err != nil {
		r.fail(knob, err)
		return 0
	}
	return int(min(max(n, -1), MaxSlots+1))
}

func (r *layoutReader) flag(knob string) bool {
	b, err := r.cfg.Bool(knob)
	if err != nil {
		r.fail(knob, err)
	}
	return b
}

// failureMode reads SLOT_CONFIG_FAILURE_MODE. Without it the daemon goes on,
// if there is a daemon ad in which to tell what is broken.
func (r *layoutReader) failureMode() FailureMode {
	switch word := r.cfg.String("SLOT_CONFIG_FAILURE_MODE"); {
	case strings.EqualFold(word, "CLEAR"):
		return FailClear
	case strings.EqualFold(word, "ABORT"):
		return FailAbort
	case word == "" && strings.EqualFold(r.cfg.String("ENABLE_STARTD_DAEMON_AD"), "false"):
		return FailAbort
	}
	return FailContinue
}

func countKnob(number int) string { return "NUM_SLOTS_TYPE_" + strconv.Itoa(number) }

// types reads the slot types that make slots. With none of them configured
// the machine is type 0, an even split: one partitionable slot, or one static
// slot for each core.
func (r *layoutReader) types(cores int) []Type {
	highest := r.number("MAX_SLOT_TYPES")
	if highest > MaxSlotTypes {
		r.problem("MAX_SLOT_TYPES", "too many slot types", "at most "+strconv.Itoa(MaxSlotTypes))
		return nil
	}
	var types []Type
	for n := 1; n <= highest; n++ {
		if count := r.number(countKnob(n)); count > 0 {
			types = append(types, r.slotType(n, count))
		}
	}
	if len(types) > 0 {
		return types
	}
	t := Type{Partitionable: true, Backfill: r.flag("SLOT_TYPE_0_BACKFILL"), Where: "NUM_SLOTS"}
	if r.set("SLOT_TYPE_0_PARTITIONABLE") {
		t.Partitionable = r.flag("SLOT_TYPE_0_PARTITIONABLE")
	}
	switch {
	case r.set("NUM_SLOTS"):
		s, _ := r.cfg.Lookup("NUM_SLOTS")
		t.Count, t.Where = r.number("NUM_SLOTS"), s.Origin.String()
	case t.Partitionable:
		t.Count = 1
	default:
		t.Count = cores
	}
	t.Prefix = r.prefix("SLOT_TYPE_0")
	if t.Count < 1 {
		return nil
	}
	return []Type{t}
}

func (r *layoutReader) slotType(n, count int) Type {
	knob := "SLOT_TYPE_" + strconv.Itoa(n)
	t := Type{
		Number: n, Count: count,
		Partitionable: r.flag(knob + "_PARTITIONABLE"), Backfill: r.flag(knob + "_BACKFILL"),
		Prefix: r.prefix(knob),
	}
	if s, ok := r.cfg.Lookup(knob); ok {
		if s.Err != nil {
			r.fail(knob, s.Err)
		}
		t.Where = s.Origin.String()
		t.Shares, t.Err = ParseShares(s.Value)
	}
	return t
}

// prefix returns how the names of slots of a type begin.
func (r *layoutReader) prefix(typeKnob string) string {
	if own := r.cfg.String(typeKnob + "_NAME_PREFIX"); own != "" {
		return own
	}
	return r.cfg.String("STARTD_RESOURCE_PREFIX")
}
