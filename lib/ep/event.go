// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Event is something that happened. Events are values; ads in them belong to
// the engine from then on and must not be changed.
//
// An event that cannot be (an unknown claim, an activation that is over)
// changes nothing. If it has a Ref it is answered by a Reply with an error.
type Event interface{ event() }

// Tick says that time has passed. It is due at the instant that the last
// WakeAt named; an earlier or later one does no harm.
type Tick struct{}

// Sampled brings fresh readings of the machine. Send it before a Tick: policy
// is evaluated by the Tick.
type Sampled struct{ Sample machine.Sample }

// Published brings attributes that a source outside the machine scanners
// found, such as a periodic job's output. Attrs replaces all that the same
// Source published for the same slots before; nil or empty withdraws it.
type Published struct {
	Source string
	Slot   slot.ID // the zero ID: every slot; else this slot alone, see ad.Machine.Publish
	Attrs  *classad.Ad
}

// ClaimRequested asks for a claim: of a dynamic slot carved from a
// partitionable Slot, of a static Slot, or of a claimed Slot whose claim is to
// be preempted. The Reply to a preempting request comes when the slot is free
// for it, or when it is refused.
type ClaimRequested struct {
	Ref Ref
	// Slot is the slot, zero where Capability says it.
	Slot slot.ID
	// Capability is the id that the slot offered (SlotView.NextClaim): whoever
	// knows it may claim. It is worth one request, granted or refused, and
	// becomes the id of the claim. The id of a claimed partitionable slot may
	// be used again and again. Zero is for the EP's own access point alone.
	Capability claim.ID
	Job        *classad.Ad
	Client     claim.Client
	// Evict are claims of dynamic slots that are ended at once, so that the
	// partitionable Slot has room.
	Evict []claim.ID
	// Leftovers asks for the means to carve the rest of a partitionable slot
	// without another match.
	Leftovers bool
	// DynamicSlots is how many slots to carve from a partitionable Slot. 0 is
	// one, and with Whole none.
	DynamicSlots int
	// Whole claims the partitionable Slot itself, for WholeTime or the most
	// that the owner allows: no other client can carve from it meanwhile.
	Whole     bool
	WholeTime time.Duration
	// Lease is the length of the lease, 0 for what Job and AliveInterval give.
	Lease         time.Duration
	AliveInterval time.Duration
	// Priority says that a negotiator prefers the user, so that a rank as good
	// as the present one is enough to preempt.
	Priority bool

	work *claim.Work // of the engine's own request, for fetched work
}

// ClaimWithdrawn takes the ClaimRequested with that Ref back while it waits for
// a claim to be preempted. There will be no Reply to it.
type ClaimWithdrawn struct{ Ref Ref }

// ActivateRequested asks to run Job under a claim.
type ActivateRequested struct {
	Ref   Ref
	Claim claim.ID
	Job   *classad.Ad
	// Fault is what the machine lacks for another starter at this moment, nil if
	// nothing is known to be missing. It refuses a request that would be granted.
	Fault *MachineFault
}

// StarterStarted says that the starter of an activation runs.
type StarterStarted struct {
	Activation claim.ActivationID
	Proc       host.ProcID
}

// StarterReached says at which address a starter is reached by shadows and
// tools.
type StarterReached struct {
	Activation claim.ActivationID
	Address    string // a sinful
}

// StarterFailed says that the starter of an activation could not be started.
// No StarterExited follows.
type StarterFailed struct {
	Activation claim.ActivationID
	Err        error
	Fault      *MachineFault // set if it is the machine's fault
}

// JobRunning says that the job's own process runs.
type JobRunning struct {
	Activation claim.ActivationID
	Proc       host.ProcID // zero if it is not known
}

// JobUsage brings what the job has used so far.
type JobUsage struct {
	Activation claim.ActivationID
	Usage      host.Usage
	DiskKiB    int64
	Files      int // in the scratch directory, 0 if they were not counted
}

// JobSuspended says that the starter has stopped the job.
type JobSuspended struct{ Activation claim.ActivationID }

// JobContinued says that the starter has let the job go on.
type JobContinued struct{ Activation claim.ActivationID }

// OutputMoved says that the program of a job has ended by itself and that its
// output is on the way: more of it was sent since the last such event.
type OutputMoved struct{ Activation claim.ActivationID }

// JobEnded says that the job is gone and its output is where it belongs; only
// the starter itself is left.
type JobEnded struct {
	Activation claim.ActivationID
	Exit       Exit
}

// Exit is how a job ended, as far as the engine cares.
type Exit struct {
	Status  host.ExitStatus
	Evicted bool // it was made to leave
	Held    bool // it could not start, or its output could not be kept
	Usage   host.Usage
	// BytesIn and BytesOut are what was moved for the job: its input, its output.
	BytesIn, BytesOut int64
	// Broken says why the slot cannot be used again, nil if it can.
	Broken *slot.BrokenReason
	// Fault is set if the job could not be started because of the machine.
	Fault *MachineFault
}

// StarterExited says that the starter of an activation is gone with everything
// it had started, whatever it reported before.
type StarterExited struct {
	Activation claim.ActivationID
	Status     host.ExitStatus
	// ClientLost says that the starter gave up because the access point had
	// been silent for longer than the lease.
	ClientLost bool
	// Immortal is how many processes of the job could not be ended.
	Immortal int
	// Fault is set if the starter ended without a word because of the machine.
	Fault *MachineFault
	// Broken says why the slot cannot be used again, nil if it can.
	Broken *slot.BrokenReason
}

// VolumeRemoved says that the volume of an activation, which could not be removed at its
// end, is gone now.
type VolumeRemoved struct{ Activation claim.ActivationID }

// DeactivateRequested asks to end the job under a claim and to keep the claim.
// A Reply that says Closing has given the claim back, unless it was only asked.
type DeactivateRequested struct {
	Ref   Ref
	Claim claim.ID
	How   Deactivation
	// Final says that the job will not run again and its output is wanted all
	// the same.
	Final bool
	// Purpose is what the access point does with the job then, if it says so.
	Purpose Purpose
}

// Purpose is what becomes of a job that its access point takes back.
type Purpose uint8

// The purposes. A shadow says none.
const (
	Unsaid Purpose = iota
	ToRemove
	ToHold
)

// Deactivation says how a job is ended by its access point.
type Deactivation uint8

// The ways to deactivate.
const (
	Gracefully Deactivation = iota // with the job's vacate time
	Forcibly                       // at once
	JobDone                        // it has ended by itself
	Asking                         // nothing is ended: may another job follow under the claim?
)

// ReleaseRequested gives a claim back. A job under it is killed.
type ReleaseRequested struct {
	Ref   Ref
	Claim claim.ID
}

// WorkEnded says that a slot that claimed itself, for work that it fetches, found
// no more of it: an idle claim is given back, without retiring.
type WorkEnded struct {
	Ref   Ref // zero: no reply wanted
	Claim claim.ID
}

// SuspendRequested asks to stop the job under a claim until ContinueRequested.
// While it holds, CONTINUE is not asked.
type SuspendRequested struct {
	Ref   Ref
	Claim claim.ID
}

// ContinueRequested takes SuspendRequested back.
type ContinueRequested struct {
	Ref   Ref
	Claim claim.ID
}

// LeaseRenewed is a sign of life from the holder of a claim.
type LeaseRenewed struct {
	Claim claim.ID
	By    Sign
}

// VacateRequested asks in the owner's name to end the claim of a slot, or with
// the zero Slot every claim. A partitionable slot has no claim: its dynamic
// slots stay as they are.
type VacateRequested struct {
	Ref    Ref // zero: no reply wanted
	Slot   slot.ID
	Manner Manner
}

// ShutdownRequested begins the end of the EP. A faster manner overrides a
// slower one; the other way round nothing changes.
type ShutdownRequested struct{ Manner Manner }

// Manner says how much consideration a job gets.
type Manner uint8

// The manners, from slow to fast.
const (
	Peaceful Manner = iota // wait until jobs end by themselves
	Graceful               // retirement, then the vacate time
	Fast                   // neither
)

var mannerNames = [...]string{"peaceful", "graceful", "fast"}

// String returns the lower-case name.
func (m Manner) String() string {
	if int(m) < len(mannerNames) {
		return mannerNames[m]
	}
	return "unknown manner"
}

// Reconfigured brings a new configuration. Slots keep their shape; the policy
// and the intervals change at once. It is taken over as a whole or not at all,
// which the Reply says: whoever sends it changes nothing of his own before that.
type Reconfigured struct {
	Ref      Ref
	Snapshot *config.Snapshot
	// Inventory is the machine with the attributes that it has under the new
	// configuration; nil leaves them as they are. Nothing changes it any more.
	Inventory *machine.Inventory
}

// AbilitiesFound brings the machine with what its programs and its starters say
// that they can. They are asked when the slots are there already, since any of them
// may take its time, and pools are told of the difference at once.
type AbilitiesFound struct {
	// Inventory is the machine with these attributes, otherwise as it was. Nothing
	// changes it any more.
	Inventory *machine.Inventory
}

func (Tick) event()                {}
func (Sampled) event()             {}
func (Published) event()           {}
func (ClaimRequested) event()      {}
func (ClaimWithdrawn) event()      {}
func (ActivateRequested) event()   {}
func (StarterStarted) event()      {}
func (StarterReached) event()      {}
func (StarterFailed) event()       {}
func (JobRunning) event()          {}
func (JobUsage) event()            {}
func (JobSuspended) event()        {}
func (JobContinued) event()        {}
func (OutputMoved) event()         {}
func (JobEnded) event()            {}
func (StarterExited) event()       {}
func (VolumeRemoved) event()       {}
func (DeactivateRequested) event() {}
func (ReleaseRequested) event()    {}
func (WorkEnded) event()           {}
func (SuspendRequested) event()    {}
func (ContinueRequested) event()   {}
func (LeaseRenewed) event()        {}
func (VacateRequested) event()     {}
func (ShutdownRequested) event()   {}
func (Reconfigured) event()        {}
func (AbilitiesFound) event()      {}
