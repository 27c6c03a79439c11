// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ad projects what the EP knows into ClassAds: the ad of each slot and
// the ad of the daemon. It owns which attribute is called what, where its
// value comes from and when it is shown. It must never decide anything, and
// no code reads the state of a slot back from an ad.
//
// Ads are layered without copying: one ad for the machine, one for each slot
// type over it, one for each slot on top. Whatever changes by the minute for
// all slots alike stands in the machine's ad and is refreshed in place once
// per sample, so that ten thousand slots cost no more than their number of
// changes. The ad of a slot is live: policy expressions are evaluated in it as
// it stands. What is sent elsewhere is a flat Snapshot of it.
//
//	m, err := ad.New(ad.Source{Config: snapshot, Inventory: inventory, Ledger: ledger, Policy: expressions}, now)
//	m.Refresh(sample, now)
//	a, _ := m.Slot(slot.ID{N: 1})
//	a.SetPair(policy.UnclaimedIdle, now)
//	fmt.Print(a.Snapshot(now).Text(classad.Old))
package ad
