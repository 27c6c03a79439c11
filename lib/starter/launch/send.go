// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Numbered is an order with its number, by which a starter knows one that comes again.
type Numbered struct {
	ID    uint64
	Order protocol.Order
}

// Send hands an order to the starter. It waits neither for it to be read nor
// for it to be obeyed; orders arrive in the order they were sent. A starter that
// is gone is NotFound. One that does not read its orders is Broken when too many
// wait; it is killed then, and likewise when it leaves one unread for 20 s. Without
// orders it is asked after a minute of silence whether it reads any, and has two
// more to answer. A protocol.SlotAd takes the place of one that was not sent yet.
func (h *Handle) Send(o protocol.Order) error {
	if ad, ok := o.(protocol.SlotAd); ok && h.slotWaits(ad) {
		return nil
	}
	return h.send(message{}, o)
}

// send is Send for a message whose line is to follow what is there.
func (h *Handle) send(m message, o protocol.Order) error {
	select {
	case <-h.starter.Done():
		return errs.E("launch.Send", errs.NotFound, o.Kind(), errGone)
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sendAs(m, Numbered{h.number + 1, o})
}

// sendAs is send for an order that has its number. The caller holds mu, so that orders
// wait in the order of their numbers.
func (h *Handle) sendAs(m message, o Numbered) error {
	line, err := protocol.Append(m.line, protocol.Line{ID: o.ID, Message: o.Order})
	if err != nil {
		return errs.E("launch.Send", errs.Invalid, o.Order.Kind(), err)
	}
	m.line, m.order = line, o
	if err := h.orders.put(m); err != nil {
		return err
	}
	h.number = max(h.number, o.ID)
	if _, ok := o.Order.(protocol.SlotAd); ok {
		h.ads.owed = o.ID
	}
	return nil
}

// Unanswered are the orders that the starter has not taken yet, as far as it said: a
// later startd sends them again.
func (h *Handle) Unanswered() []Numbered { return h.orders.open.all() }

// slotAds has one SlotAd on its way at most: a starter that is slow to read
// gets the latest when it has read the last.
type slotAds struct {
	owed uint64           // the number of one that has no answer yet, 0 for none
	next *protocol.SlotAd // the latest that waits for it
}

// slotWaits has ad wait while another one is on its way.
func (h *Handle) slotWaits(ad protocol.SlotAd) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ads.owed != 0 {
		h.ads.next = &ad
	}
	return h.ads.owed != 0
}

// slotTold sends the ad that waits, if any, when the one before it was taken.
func (h *Handle) slotTold(taken uint64) {
	h.mu.Lock()
	if h.ads.owed == 0 || h.ads.owed > taken {
		h.mu.Unlock()
		return
	}
	next := h.ads.next
	h.ads = slotAds{}
	h.mu.Unlock()
	if next != nil {
		_ = h.Send(*next) // one that is gone needs none
	}
}
