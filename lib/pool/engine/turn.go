// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"iter"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/slot"
)

// Slots are the engine's queries about single slots.
type Slots interface {
	SlotOf(id claim.ID) (slot.ID, bool)
	SlotView(id slot.ID) (ep.SlotView, bool)
	Views() iter.Seq[ep.SlotView]
	// After returns the views of the slots behind one, in order.
	After(id slot.ID) iter.Seq[ep.SlotView]
}

// Ads are the engine's queries that make ads.
type Ads interface {
	PublicAd(id slot.ID) *classad.Ad
	SlotAd(id slot.ID) *classad.Ad
	DaemonAd(problems []slot.Problem) *classad.Ad
	Extras() []*classad.Ad
}

// Whole are the engine's queries about all slots together.
type Whole interface {
	AllSlots(x *classad.Expr) bool
	Empty() bool
}

// Queries are all that may be read of the engine.
type Queries interface {
	Slots
	Ads
	Whole
}

// Turn is what a function may use while it runs in the goroutine that owns the
// engine. Nothing of it may be kept.
type Turn struct {
	Now    clock.Instant
	Engine Queries
	// Step tells the engine what happened and has all performed that follows.
	Step func(ep.Event)
	// Advertised is shown the ad of each slot that collectors are sent, without
	// secrets; nil if it is not wanted.
	Advertised func(id slot.ID, ad *classad.Ad)
}

// Owner reaches the goroutine that owns the engine.
type Owner interface {
	// Do has f run there and waits until it has run. f must not block. The
	// error says that f will never run: the owner is gone, or ctx ended before
	// its turn came.
	Do(ctx context.Context, f func(Turn)) error
}

// Wake makes ch ready, for the goroutine that waits for it. It never blocks.
func Wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
