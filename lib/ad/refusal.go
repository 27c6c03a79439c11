// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import "time"

// RefuseStart shows that the slot takes no job for a while because the machine
// is not sound: why, since when, and when it will be tried again. Meanwhile
// Requirements are false. With an empty reason it takes jobs again.
//
// HTCondor's SlotBrokenReason is for what never heals: it takes the resources
// away until the startd is started again.
func (a *Slot) RefuseStart(reason string, since, until time.Time) {
	if a.refused = reason != ""; a.refused {
		a.ad.SetString(attrStartRefusedReason, reason)
		a.setInt(attrStartRefusedSince, since.Unix())
		a.setInt(attrStartRefusedUntil, until.Unix())
	} else {
		for _, name := range [...]string{attrStartRefusedReason, attrStartRefusedSince, attrStartRefusedUntil} {
			a.drop(name)
		}
	}
	a.require()
}
