// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// Resource is something of the machine, beside cores, memory and disk, that jobs
// ask for by its name (request_bolts) and that slots share out: what
// MACHINE_RESOURCE_<NAME> and inventory programs describe, found by a scanner.
type Resource struct {
	Name  string   // as in Request<Name>: letters, digits and _, no digit first
	Count float64  // how much of it there is, where IDs is nil
	IDs   []string // the names of the instances, each of which goes to one slot
	// Attrs are further attributes for the ads of all slots that have some of it;
	// nil for none. An ad among them holds properties: Common those of all
	// instances, one with the name of an instance, or with it as its id, those
	// of that one. require_bolts chooses by them.
	Attrs *classad.Ad
}

// AddResource adds a resource, in place of one of the same name. source is where
// it was found, as for Learn. What the configuration says of a resource of that
// name counts before it, and MACHINE_RESOURCE_NAMES, where set, keeps out what
// it does not name.
func (inv *Inventory) AddResource(source string, r Resource) {
	kept := make([]Resource, 0, len(inv.Resources)+1) // the slice may be shared
	for _, other := range inv.Resources {
		if !strings.EqualFold(other.Name, r.Name) {
			kept = append(kept, other)
		}
	}
	inv.Resources = append(kept, r)
	inv.Learn(source, "Resources."+r.Name)
}

// ScannerFunc is a scanner made of a function, for a program that knows of
// something which the others do not find.
func ScannerFunc(name string, scan func(*Inventory) error) Scanner { return scannerFunc{name, scan} }

type scannerFunc struct {
	name string
	scan func(*Inventory) error
}

func (s scannerFunc) Name() string { return s.name }

func (s scannerFunc) Scan(_ context.Context, inv *Inventory) error { return s.scan(inv) }
