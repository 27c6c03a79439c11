// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package command

// The first number of an answer to a command about a claim.
const (
	NotOK           = 0
	OK              = 1
	TryAgain        = 2 // to ACTIVATE_CLAIM: the slot is not cleaned up yet
	Leftovers       = 3 // to REQUEST_CLAIM: granted, with the rest of the slot; its claim id as a plain string
	LeftoversSecret = 5 // the same, with the claim id as a secret
	SlotAd          = 7 // to REQUEST_CLAIM: granted, and the ad of one of the slots follows
)

// Codes of a refused claim or activation. They continue HTCondor's vacate codes
// (lib/reason), and schedds put them into the job's ad and event log.
const (
	RefusedBadRequest      = 1026 // the request cannot be read, or its job lacks something
	RefusedNoMatch         = 1027 // job and slot do not match
	RefusedStillCleaning   = 1028 // the last activation is still being cleaned up
	RefusedWorklifeExpired = 1029 // the claim takes no more jobs
	RefusedPreempted       = 1030
	RefusedBroken          = 1031
	RefusedNotIdle         = 1032
	RefusedUnclaimed       = 1033
	RefusedClaimNotFound   = 1034
)

// Codes of a refused drain.
const (
	DrainInProgress  = 10001 // the machine is being drained already
	DrainUnknownID   = 10002 // no drain has that id
	DrainCheckFailed = 10003 // the check expression is not true of every slot
)
