// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/slot"
)

// instances shows the properties of the instances that the slot holds: those
// that all of them share as GPUs_X, and for each instance an ad GPUs_<id>. A
// broken slot shows none.
func (a *Slot) instances() {
	if a.s.Broken != nil {
		return
	}
	for _, r := range a.m.src.Ledger.Resources() {
		if c, ok := a.s.Total.Find(r.Name); ok && len(r.Properties) > 0 {
			a.m.set.properties(a.ad, r, c.Assets)
		}
	}
}

func (set *settings) properties(out *classad.Ad, r slot.Resource, ids []string) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return r.Properties[id] == nil })
	if len(ids) == 0 {
		return
	}
	first := r.Properties[ids[0]]
	var differing []string
	for name, e := range first.All() {
		same := true
		for _, id := range ids[1:] {
			o, ok := r.Properties[id].Lookup(name)
			same = same && ok && o.Equal(e)
		}
		if same {
			out.Set(r.Name+"_"+name, e)
		} else {
			differing = append(differing, name)
		}
	}
	slices.Sort(differing)
	switch {
	case set.verbose:
		for _, id := range ids {
			out.SetValue(r.Name+"_"+attrSafe(id), classad.AdValue(described(r, id)))
		}
	case set.nested:
		for _, id := range ids {
			own := classad.NewAd()
			for _, name := range differing {
				if e, ok := r.Properties[id].Lookup(name); ok {
					own.Set(name, e)
				}
			}
			if own.Len() > 0 {
				out.SetValue(r.Name+"_"+attrSafe(id), classad.AdValue(own))
			}
		}
	default:
		for _, name := range differing {
			var each []*classad.Expr
			for _, id := range ids {
				if e, ok := r.Properties[id].Lookup(name); ok {
					each = append(each, e)
				}
			}
			out.SetValue(r.Name+"_"+name+"List", classad.List(each...))
		}
	}
}

// described is all that is known of an instance, with its name.
func described(r slot.Resource, id string) *classad.Ad {
	ad := r.Properties[id].Clone()
	ad.SetString("Id", id)
	return ad
}

// instances puts the ads of all instances of the machine into the daemon's ad,
// and the list of them in the place of what the inventory said.
func (m *Machine) instances(out *classad.Ad) {
	for _, r := range slices.Concat(m.src.Ledger.Resources(), m.src.Ledger.Unlisted()) {
		if len(r.Properties) == 0 {
			continue
		}
		var refs []*classad.Expr
		for _, id := range slices.Sorted(maps.Keys(r.Properties)) {
			name := r.Name + "_" + attrSafe(id)
			out.SetValue(name, classad.AdValue(described(r, id)))
			if e, err := classad.ParseExpr(name, classad.Old); err == nil {
				refs = append(refs, e)
			}
		}
		out.SetValue("Detected"+r.Name, classad.List(refs...))
	}
}

// consumption shows what a job is charged for in a partitionable slot whose
// owner says so (CONSUMPTION_POLICY), and in its dynamic slots: for each
// resource an expression about the job, and in the partitionable slot how many
// claims it can have at once.
func (a *Slot) consumption() {
	set := &a.m.set
	a.claims = 0
	if a.s.Kind == slot.Static || !set.truth("CONSUMPTION_POLICY", a.s.TypeID) {
		return
	}
	names := []string{attrCpus, attrDisk, attrMemory}
	for _, r := range a.m.src.Ledger.Resources() {
		names = append(names, r.Name)
	}
	slices.SortFunc(names, func(x, y string) int { return strings.Compare(strings.ToLower(x), strings.ToLower(y)) })
	var limits []string
	for _, n := range names {
		e := set.expr(a.s.TypeID, "CONSUMPTION_"+n)
		if e == nil {
			e = consumptionOf(n)
		}
		a.ad.Set("Consumption"+n, e)
		limits = append(limits, "ifThenElse(TARGET._cp_orig_Request"+n+" =!= undefined,TARGET.Request"+n+" <= MY."+n+",MY.Consumption"+n+" <= MY."+n+")")
	}
	if a.m.offline() {
		limits = append(limits, withoutNetwork)
	}
	if set.expr(a.s.TypeID, attrWithinLimits) == nil {
		if e, err := classad.ParseExpr("("+strings.Join(limits, " && ")+")", classad.Old); err == nil {
			a.ad.Set(attrWithinLimits, e)
		}
	}
	if a.s.Kind == slot.Dynamic {
		return
	}
	claims := int64(math.Ceil(a.s.Total.Cpus))
	if e := set.expr(a.s.TypeID, "NUM_CLAIMS"); e != nil {
		if n, ok := e.Eval(&classad.Env{My: a.ad}).AsInt(); ok {
			claims = n
		}
	}
	a.claims = int(min(max(0, claims), mostClaims))
	a.ad.SetInt("NumClaims", int64(a.claims))
}

// mostClaims bounds NUM_CLAIMS: each is an id with a session of its own, and all
// of them are in one ad.
const mostClaims = 4096

// Claims returns how many claims the owner offers of a partitionable slot at a
// time, by its consumption policy; 0 without one.
func (a *Slot) Claims() int { return a.claims }

// whole shows for how long the whole of a partitionable slot may be claimed,
// where the owner allows that at all.
func (a *Slot) whole() {
	if a.s.Kind == slot.Partitionable && a.m.set.wholeClaims {
		a.ad.SetInt("MaxClaimTime", seconds(a.m.set.wholeTime))
	}
}

// truth reads a flag for a slot type.
func (s *settings) truth(knob string, typeID int) bool {
	e := s.expr(typeID, knob)
	return e != nil && e.Eval(nil).IsTrue()
}

// consumptionOf is what is charged where the owner does not say.
func consumptionOf(resource string) *classad.Expr {
	text := "ifthenelse(target.Request" + resource + " =?= undefined,0,target.Request" + resource + ")"
	switch resource {
	case attrCpus:
		text = "quantize(target.RequestCpus,{ 1 })"
	case attrDisk:
		text = "quantize(target.RequestDisk,{ 1024 })"
	case attrMemory:
		text = "quantize(target.RequestMemory,{ 128 })"
	}
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		return classad.Literal(classad.ErrorValue())
	}
	return e
}
