// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import "github.com/execpoint/execpoint/lib/policy"

// checkpoint tells the starter of a virtual machine to checkpoint it, if the
// owner wants it now and the job allows it. The slot stays as it is, whatever
// comes of it.
func (e *Engine) checkpoint(sl *slotState) {
	if sl.act == nil || sl.act.Universe != policy.UniverseVM {
		return
	}
	wants, trace := policy.WantsCheckpoint(e.policyView(sl))
	if !wants {
		return
	}
	sl.act.checkpointed = e.now
	sl.ad.SetCheckpoint(e.now.Wall)
	e.emit(OrderStarter{Activation: sl.act.ID, Op: Checkpoint, Reason: traces(trace).String()})
	e.emit(AdChanged{Slot: sl.s.ID})
}

// mayCheckpoint reports whether periodic checkpoints of the job are asked
// about: it is a virtual machine's.
func (a *activation) mayCheckpoint() bool { return a.Universe == policy.UniverseVM }
