// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/slot"
)

// Breakage is something that a job broke.
type Breakage struct {
	Tag    string // name of the slot without the host
	Why    slot.BrokenReason
	At     clock.Instant
	Client claim.Client
	Job    *classad.Ad // nil if unknown
	Held   slot.Quantities
	// Activation is the one that broke it.
	Activation claim.ActivationID
}

// maxBreakages bounds what the daemon's ad tells: the latest ones.
const maxBreakages = 256

// Broke remembers what broke, also when the slot itself is gone.
func (m *Machine) Broke(b Breakage) {
	if len(m.breakages) == maxBreakages {
		m.breakages = m.breakages[1:]
	}
	m.breakages = append(m.breakages, b)
}

// Mended forgets what an activation broke.
func (m *Machine) Mended(act claim.ActivationID) {
	m.breakages = slices.DeleteFunc(m.breakages, func(b Breakage) bool { return b.Activation == act })
}

// knownBreakage reports whether a job broke the slot of that name; otherwise
// it was never whole.
func (m *Machine) knownBreakage(tag string) bool {
	for _, b := range m.breakages {
		if b.Tag == tag {
			return true
		}
	}
	return false
}

// context tells what BROKEN_SLOT_CONTEXT_ATTRS names of whoever broke it.
func (m *Machine) context(b Breakage) *classad.Ad {
	out := classad.NewAd()
	out.SetString("Id", b.Tag)
	out.SetInt("Code", int64(b.Why.Code))
	out.SetInt("Time", b.At.Wall.Unix())
	out.SetString("Reason", b.Why.Reason)
	for _, name := range names(m.set.cfg, "BROKEN_SLOT_CONTEXT_ATTRS") {
		known := ""
		switch {
		case strings.EqualFold(name, attrRemoteUser):
			known = b.Client.User
		case strings.EqualFold(name, attrRemoteScheddName):
			known = b.Client.Schedd
		case strings.EqualFold(name, attrClientMachine):
			known = b.Client.Host
		case strings.EqualFold(name, attrJobID):
			if b.Job != nil {
				known, _ = jobID(b.Job)
			}
		}
		if known != "" {
			out.SetString(name, known)
		} else if b.Job != nil {
			if e, ok := b.Job.Lookup(name); ok {
				out.Set(name, e)
			}
		}
	}
	held := HeldBy(b.Held)
	for name, e := range held.All() {
		out.Set(name, e)
	}
	return out
}

// HeldBy is what a broken slot held, as it is lost to others: amounts, and the
// instances of resources that have names.
func HeldBy(q slot.Quantities) *classad.Ad {
	out := classad.NewAd()
	out.SetReal(attrCpus, q.Cpus)
	out.SetInt(attrMemory, q.MemoryMiB)
	out.SetInt(attrDisk, q.DiskKiB)
	out.SetInt("GPUs", 0) // tools ask for them
	for _, c := range q.Custom {
		out.SetInt(c.Name, c.Count)
		if len(c.Assets) > 0 {
			out.SetString("Assigned"+c.Name, strings.Join(c.Assets, ","))
		}
	}
	return out
}

// letters tells the n-th thing of one name apart: "", "a", "b" and so on.
func letters(n int) string {
	if n < 2 {
		return ""
	}
	return strings.Repeat("z", (n-2)/26) + string(rune('a'+(n-2)%26))
}
