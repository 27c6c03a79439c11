// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slot divides a machine. It owns slot types, shares and the ledger
// of what each slot holds: total = free + carved + broken + offline holds for
// every resource and every named asset after every operation, and an
// operation that fails changes nothing.
//
// It takes values and returns values. It must never measure the machine,
// decide who may use a slot, or know that claims, ads and jobs' states exist.
//
//	led, problems := slot.Build(layout, inventory)
//	d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1, MemoryMiB: 2048, DiskKiB: 20 << 20})
//	fmt.Println(d.ID)         // slot1_1
//	err = led.Return(d.ID)    // the parent is whole again
package slot

import (
	"fmt"
	"strconv"
	"strings"
)

// ID names a slot for as long as it exists: N counts from 1 over the machine,
// Sub from 1 over the dynamic slots of one partitionable slot and is 0 for
// every other slot. The zero ID names no slot.
type ID struct {
	N, Sub int
}

// DefaultPrefix starts the names of slots unless the configuration says
// otherwise.
const DefaultPrefix = "slot"

// String returns "slot1" or "slot1_2".
func (id ID) String() string { return id.Name(DefaultPrefix) }

// Name returns the name of the slot under another prefix.
func (id ID) Name(prefix string) string {
	b := make([]byte, 0, len(prefix)+12)
	b = append(b, prefix...)
	b = strconv.AppendInt(b, int64(id.N), 10)
	if id.Sub != 0 {
		b = append(b, '_')
		b = strconv.AppendInt(b, int64(id.Sub), 10)
	}
	return string(b)
}

// IsZero reports whether id names no slot.
func (id ID) IsZero() bool { return id == ID{} }

// IsDynamic reports whether id names a dynamic slot.
func (id ID) IsDynamic() bool { return id.Sub != 0 }

// Parent returns the ID of the slot that id was carved from, and id itself
// when it was not carved.
func (id ID) Parent() ID { return ID{N: id.N} }

// Compare orders IDs by number, a parent before its dynamic slots.
func (id ID) Compare(o ID) int {
	if id.N != o.N {
		return id.N - o.N
	}
	return id.Sub - o.Sub
}

// ParseID reads "slot1" or "slot1_2", with the default prefix in any case.
// A host part behind "@" is ignored.
func ParseID(s string) (ID, error) {
	name, _, _ := strings.Cut(s, "@")
	if len(name) < len(DefaultPrefix) || !strings.EqualFold(name[:len(DefaultPrefix)], DefaultPrefix) {
		return ID{}, fmt.Errorf("slot name %q: want slotN or slotN_M", s)
	}
	first, second, dynamic := strings.Cut(name[len(DefaultPrefix):], "_")
	n, ok := parseNumber(first)
	if !ok {
		return ID{}, fmt.Errorf("slot name %q: want slotN or slotN_M", s)
	}
	id := ID{N: n}
	if dynamic {
		if id.Sub, ok = parseNumber(second); !ok {
			return ID{}, fmt.Errorf("slot name %q: want slotN or slotN_M", s)
		}
	}
	return id, nil
}

// parseNumber reads a positive decimal number of at most nine digits without
// sign or leading zero.
func parseNumber(s string) (int, bool) {
	if s == "" || len(s) > 9 || s[0] == '0' {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// Kind says how a slot gives out what it has.
type Kind uint8

// The kinds of slot.
const (
	Static        Kind = iota // runs jobs itself, fixed at start
	Partitionable             // never runs a job; dynamic slots are carved from it
	Dynamic                   // carved for a claim, returned when the claim ends
)

// String returns the word that SlotType shows in an ad.
func (k Kind) String() string {
	switch k {
	case Static:
		return "Static"
	case Partitionable:
		return "Partitionable"
	case Dynamic:
		return "Dynamic"
	}
	return "Unknown"
}

// BrokenReason says why the resources of a slot cannot be used.
type BrokenReason struct {
	Code   BrokenCode
	Reason string // one sentence, as published in SlotBrokenReason
}

// BrokenCode is published as SlotBrokenCode.
type BrokenCode int

// The codes of broken slots.
const (
	BrokenNoResources BrokenCode = 1 // the layout asked for more than there is
	BrokenAssets      BrokenCode = 2 // too few instances of a resource to hand out
	BrokenExecuteDir  BrokenCode = 3 // the execute directory cannot be used
	BrokenUnclean     BrokenCode = 4 // what a job left behind could not be removed
	BrokenVolume      BrokenCode = 5 // the logical volume of a job could not be removed
	BrokenHungProcess BrokenCode = 6 // a job's process could not be killed
	BrokenHungGroup   BrokenCode = 7 // a job's control group could not be removed
)

// Slot is one slot as the ledger has it. The ledger owns it: read it, do not
// change it. A *Slot stays valid until the ledger's next change to that slot.
type Slot struct {
	ID     ID
	Kind   Kind
	TypeID int    // number of the slot type, that of the parent for a d-slot
	Prefix string // starts the name, DefaultPrefix unless configured

	// Total is what was handed to the slot. Free is what can still be given
	// to a job or claim: Total for a sound static or dynamic slot, nothing for
	// a broken one, and for a partitionable slot Total less its dynamic slots
	// and less Lost. What is Offline is not free. A backfill slot may give out
	// less than Free, see Ledger.Open.
	Total, Free Quantities

	// Offline is what of Total was taken out of use since the slot was made,
	// in a partitionable slot without that of its dynamic slots.
	Offline Quantities

	// Lost is what broken dynamic slots took with them when they were
	// returned; only a partitionable slot has any.
	Lost Quantities

	// Asked is what a slot that found too few instances (BrokenAssets) was to
	// have of the resources with named instances; Total is what it found.
	Asked []Custom

	Broken   *BrokenReason // nil for a sound slot
	Backfill bool          // overlaps the ordinary slots
	Data     bool          // a dynamic slot that holds files which jobs share
	Part     bool          // split off a dynamic slot for a job: it is not split itself

	// Sliver marks a slot of a "minimal" share with less than half a
	// processor: its Cpus are taken from no other slot and not accounted for.
	Sliver bool

	VolumeDiskKiB int64 // handed out to all slots of the volume with the slot's execute directory
	Children      int   // number of dynamic slots carved from it

	occupied bool // a static slot that is claimed
}

// Name returns the name of the slot without the host: "slot1_2".
func (s *Slot) Name() string { return s.ID.Name(s.Prefix) }

// FullName returns the name of the slot in ads: "slot1_2@host".
func (s *Slot) FullName(host string) string { return s.Name() + "@" + host }

// Request is what a dynamic slot is to have: amounts only, any names of
// assets in it are ignored. A Cpus of 0 takes no processor.
type Request = Quantities

// accounted returns what the machine's account shows for q, an amount held by
// the slot.
func (s *Slot) accounted(q Quantities) Quantities {
	if s.Sliver {
		q.Cpus = 0
	}
	return q
}
