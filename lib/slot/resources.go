// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

const resourcePrefix = "MACHINE_RESOURCE_"

// resources reads the custom resources that are given as a count, a list of
// instances or a description, and takes over what inventories found.
// MACHINE_RESOURCE_NAMES, when set, keeps all others out: nothing of them can
// be had, but what described them stays in the ads, as HTCondor leaves it.
func (r *layoutReader) resources(found []Inventory) (out, unlisted []Resource) {
	allowed := r.cfg.List(resourcePrefix + "NAMES")
	put := func(knob, name string, read func() Resource) {
		fold := func(s string) bool { return strings.EqualFold(s, name) }
		switch {
		case len(allowed) > 0 && !slices.ContainsFunc(allowed, fold):
			before := r.problems // what is wrong with it does no harm
			if next := read(); next.Attrs != nil {
				unlisted = append(unlisted, next)
			}
			r.problems = before
			return
		case slices.ContainsFunc(reservedNames[:], fold):
			r.problem(knob, name+" is a standard resource", "another name")
			return
		}
		next := read()
		if i := slices.IndexFunc(out, func(o Resource) bool { return fold(o.Name) }); i >= 0 {
			out[i] = next.over(out[i])
			return
		}
		out = append(out, next)
	}
	for _, m := range r.scanned {
		put(resourcePrefix+m.Name, m.Name, func() Resource { return r.found(m) })
	}
	for _, f := range found {
		knob := resourcePrefix + "INVENTORY_" + f.Resource
		put(knob, f.Resource, func() Resource { return r.described(knob, f.Resource, f.Ad) })
	}
	for _, knob := range r.cfg.Names() {
		if len(knob) <= len(resourcePrefix) || !strings.EqualFold(knob[:len(resourcePrefix)], resourcePrefix) {
			continue
		}
		name, value := knob[len(resourcePrefix):], r.cfg.String(knob)
		if value == "" || strings.EqualFold(name, "NAMES") || len(name) > 10 && strings.EqualFold(name[:10], "INVENTORY_") {
			continue
		}
		if !strings.Contains(value, "\n") {
			put(knob, name, func() Resource { return r.resource(knob, name, value) })
			continue
		}
		ad, err := classad.ParseAd(value, classad.Old)
		if err != nil {
			r.problem(knob, "the description is not an ad: "+err.Error(), "a number, the names of the instances, or an ad with Detected"+name)
			continue
		}
		put(knob, name, func() Resource { return r.described(knob, name, ad) })
	}
	slices.SortFunc(out, func(a, b Resource) int { return compareFold(a.Name, b.Name) })
	return out, unlisted
}

// over puts what is configured before what an inventory found: the amount and
// the instances. What the inventory said besides stays, and a number alone
// takes that many of the instances it found, if there are so many.
func (r Resource) over(found Resource) Resource {
	if r.Attrs == nil {
		r.Attrs, r.Properties = found.Attrs, found.Properties
	}
	if n := int(r.Count); r.Assets == nil && found.Assets != nil && r.Count == float64(n) && n <= len(found.Assets) {
		r.Assets, r.Offline, r.Without = found.Assets[:n:n], found.Offline, 0
	}
	return r
}

var reservedNames = [...]string{"CPU", "CPUS", "DISK", "SWAP", "MEM", "MEMORY", "RAM"}

func (r *layoutReader) resource(knob, name, value string) Resource {
	count, ids := countOrNames(value)
	off, offIDs := countOrNames(r.cfg.String("OFFLINE_" + knob))
	return r.counted(name, count, ids, off, offIDs)
}

// counted makes a resource of an amount or of the names of its instances.
// Names that are offline but not among the instances do not count. A name that
// is listed twice is two instances: so a device is shared by jobs, also by
// condor_gpu_discovery -repeat and -divide.
func (r *layoutReader) counted(name string, count float64, ids []string, off float64, offIDs []string) Resource {
	if ids == nil {
		off = min(off, count)
		return Resource{Name: name, Count: count - off, Without: off}
	}
	out := Resource{Name: name, Assets: []string{}}
	for _, id := range ids {
		if slices.Contains(offIDs, id) {
			out.Offline = append(out.Offline, id)
		} else {
			out.Assets = append(out.Assets, id)
		}
	}
	out.Count = float64(len(out.Assets))
	return out
}

// described makes a resource of an ad: that of an inventory, or a description
// in the configuration. What the ad says is offline counts instead of what the
// configuration says.
func (r *layoutReader) described(knob, name string, ad *classad.Ad) Resource {
	if ad == nil {
		return Resource{Name: name}
	}
	offText, ok := ad.EvalString("Offline"+name, nil)
	if !ok {
		offText = r.cfg.String("OFFLINE_" + resourcePrefix + name)
	}
	off, offIDs := countOrNames(offText)
	var (
		count float64
		ids   []string
	)
	if text, ok := ad.EvalString("Detected"+name, nil); ok {
		count, ids = countOrNames(text)
	} else if n, ok := ad.EvalReal("Detected"+name, nil); ok && n > 0 {
		count = min(n, maxWhole)
	}
	out := r.counted(name, count, ids, off, offIDs)
	out.Attrs = ad.Clone()
	out.Attrs.Delete(name) // the amount is the slot's to say
	out.properties()
	return out
}

// properties takes the ads of properties out of what the inventory said. An ad
// belongs to the instance that it names as id, or else to the one of its name;
// Common belongs to all of them.
func (r *Resource) properties() {
	nested := make(map[string]*classad.Ad)
	for name, e := range r.Attrs.All() {
		if !strings.HasPrefix(e.String(), "[") {
			continue
		}
		if ad, ok := e.Eval(nil).AsAd(); ok {
			nested[name] = ad
		}
	}
	if len(nested) == 0 {
		return
	}
	r.Properties = make(map[string]*classad.Ad)
	add := func(id string, ad *classad.Ad) {
		if r.Properties[id] == nil {
			r.Properties[id] = classad.NewAd()
		}
		r.Properties[id].Update(ad)
	}
	known := slices.Concat(r.Assets, r.Offline)
	for name, ad := range nested {
		if strings.EqualFold(name, "Common") {
			for _, id := range known {
				add(id, ad)
			}
			r.Attrs.Delete(name)
			delete(nested, name)
		}
	}
	for name, ad := range nested {
		id, ok := ad.EvalString("id", nil)
		if !ok {
			id = name
		}
		if slices.Contains(known, id) {
			add(id, ad)
			r.Properties[id].Delete("id")
			r.Attrs.Delete(name)
		}
	}
}

// choose returns up to n of the instances that have what a constraint asks
// for, in the order given. The constraint is the name of an instance in quotes
// (see called), or an expression over the properties; nil takes any.
func (r *Resource) choose(from []string, n int, constraint *classad.Expr) []string {
	if constraint == nil {
		return from[:min(n, len(from))]
	}
	suits := func(id string) bool {
		props := r.Properties[id]
		return props != nil && constraint.Eval(&classad.Env{My: props}).IsTrue()
	}
	if v, ok := constraint.LiteralValue(); ok {
		if name, ok := v.AsString(); ok {
			suits = r.called(name)
		}
	}
	var out []string
	for _, id := range from {
		if len(out) == n {
			break
		}
		if suits(id) {
			out = append(out, id)
		}
	}
	return out
}

// called returns which instances a name in quotes stands for: the one of that
// name in any case, or, if the machine has none, those whose names begin so.
// The documents write GPU-6a96bd13 for a device, which is how the names of
// condor_gpu_discovery begin, and all of them only without -uuid; HTCondor
// itself knows whole names alone, and its slot is broken with any other.
func (r *Resource) called(name string) func(id string) bool {
	whole := func(id string) bool { return strings.EqualFold(id, name) }
	if name == "" || slices.ContainsFunc(r.Assets, whole) || slices.ContainsFunc(r.Offline, whole) {
		return whole
	}
	return func(id string) bool { return len(id) > len(name) && strings.EqualFold(id[:len(name)], name) }
}

// countOrNames reads a number, an expression that is one, or else a list of
// names, whose length is the count.
func countOrNames(text string) (float64, []string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	if v, rest := leadingNumber(text); strings.TrimSpace(rest) == "" {
		return max(v, 0), nil
	}
	if e, err := classad.ParseExpr(text, classad.Old); err == nil {
		if v, ok := e.Eval(nil).AsNumber(); ok && v == v {
			return min(max(v, 0), maxWhole), nil
		}
	}
	names := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	return float64(len(names)), names
}
