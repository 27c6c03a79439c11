// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// slotAd keeps what the startd tells of the slot: the whole for the job, where
// HTCondor's jobs look for it, and what the job uses of resources that the
// machine's monitors measure for the next update of the job's ad. HTCondor's
// starter reads that out of the same file; here it comes beside it, since the text
// of an ad that shows what a job says of itself is not to be read back.
func (a *activation) slotAd(o protocol.SlotAd) {
	if a.box == nil || a.life.phase == telling {
		return
	}
	if used, err := classad.ParseAd(o.Usage, classad.Old); err == nil {
		a.metered = used
	}
	if o.Limits != nil {
		a.follow(*o.Limits)
	}
	if err := a.box.WriteUpdateAd(o.Slot); err != nil && a.log != nil {
		a.log.Warn("the job does not see the slot's ad", "err", err)
	}
}
