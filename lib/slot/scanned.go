// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
)

// found makes a resource of what a scanner found. It shows in ads as one that
// an inventory program told of: Detected<Name> is all there is, offline or not.
func (r *layoutReader) found(m machine.Resource) Resource {
	knob := resourcePrefix + m.Name
	if !isName(m.Name) {
		r.problem(knob, fmt.Sprintf("a scanner found the resource %q, which cannot be the name of one", m.Name), "letters, digits and _, no digit first")
		return Resource{Name: m.Name}
	}
	off, offIDs := countOrNames(r.cfg.String("OFFLINE_" + knob))
	ad := classad.NewAd()
	if m.Attrs != nil {
		ad = m.Attrs.Clone()
	}
	if m.IDs == nil {
		count := 0.0
		if m.Count > 0 { // not so for what is no number
			count = min(m.Count, maxWhole)
		}
		ad.SetReal("Detected"+m.Name, count)
		if count == float64(int64(count)) {
			ad.SetInt("Detected"+m.Name, int64(count))
		}
		return describedBy(r.counted(m.Name, count, nil, off, nil), ad)
	}
	for _, id := range m.IDs {
		if id == "" || strings.ContainsAny(id, ", \t\r\n") {
			r.problem(knob, fmt.Sprintf("a scanner found the instance %q of %s, which cannot be the name of one", id, m.Name), "names without commas and blanks")
		}
	}
	ad.SetString("Detected"+m.Name, strings.Join(m.IDs, ", "))
	return describedBy(r.counted(m.Name, 0, m.IDs, off, offIDs), ad)
}

// describedBy returns a resource with what the ad, which it takes over, says
// besides the amount.
func describedBy(r Resource, ad *classad.Ad) Resource {
	ad.Delete(r.Name)
	r.Attrs = ad
	r.properties()
	return r
}

// isName reports whether s can be the name of a resource: Request<s> is one of
// an attribute.
func isName(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && strings.IndexFunc(s, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) < 0
}
