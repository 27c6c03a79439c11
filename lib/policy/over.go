// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"iter"

	"github.com/execpoint/execpoint/lib/classad"
)

// Over returns an ad in which the expressions can be seen by name over those
// of slot, as every decision sees them. It is the caller's; slot is not
// changed and shows through.
func (x *Expressions) Over(slot *classad.Ad) *classad.Ad {
	over := classad.NewAd()
	for k := range numKeys {
		if keyed[k].knob != "" && x.list[k].Expr != nil {
			over.Set(k.attrName(), x.list[k].Expr)
		}
	}
	over.SetParent(slot)
	return over
}

// All yields every expression that is set or has a default.
func (x *Expressions) All() iter.Seq2[Key, Expression] {
	return func(yield func(Key, Expression) bool) {
		for k := range numKeys {
			if x.list[k].Expr != nil && !yield(k, x.list[k]) {
				return
			}
		}
	}
}
