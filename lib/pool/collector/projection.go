// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// projection is the attributes that a peer asks for, each once; all if there
// are none.
type projection struct {
	names []string
	has   map[string]bool // the same, in lower case
}

func projectionOf(text string) projection {
	p := projection{has: map[string]bool{}}
	for name := range strings.FieldsFuncSeq(text, isListSeparator) {
		if key := strings.ToLower(name); !p.has[key] {
			p.has[key] = true
			p.names = append(p.names, name)
		}
	}
	return p
}

// in returns the names to look at: those asked for, or those of the ad if
// these are fewer. A query has room for hundreds of thousands of names.
func (p projection) in(ad *classad.Ad) []string {
	if len(p.names) <= ad.Len() {
		return p.names
	}
	var names []string
	for name := range ad.All() {
		if p.has[strings.ToLower(name)] {
			names = append(names, name)
		}
	}
	return names
}

// of returns an ad of the attributes asked for and of those that they refer
// to.
func (p projection) of(ad *classad.Ad) *classad.Ad {
	if len(p.names) == 0 {
		return ad
	}
	out := classad.NewAd()
	put := func(name string) {
		if e, ok := ad.Lookup(name); ok {
			out.Set(name, e)
		}
	}
	for _, name := range p.in(ad) {
		e, ok := ad.Lookup(name)
		if !ok {
			continue
		}
		put(name)
		if _, constant := e.LiteralValue(); constant {
			continue
		}
		if refs, ok := e.Refs(ad); ok {
			for _, r := range refs.Internal {
				put(r)
			}
		}
	}
	return out
}
