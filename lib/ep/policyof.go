// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// PolicyOf returns the expressions of a slot, nil if there is no such slot.
// They are the engine's own and may be read before its next Step.
func (e *Engine) PolicyOf(id slot.ID) *policy.Expressions {
	if sl, ok := e.slots.byID[id]; ok {
		return sl.exprs
	}
	return nil
}
