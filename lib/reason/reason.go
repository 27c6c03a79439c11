// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reason is the one table of HTCondor's numbers for why a job was held
// or left its slot. It owns the codes, their names and the words around a hold
// reason; it must never decide that a job is held. The numbers go over the
// wire, into job ads and into event logs, so they never change.
//
//	code := reason.FailedToCreateProcess // 6, its subcode is the errno
//	reason.From("slot1_1@host", "Failed to execute …") // "Error from slot1_1@host: Failed to execute …"
package reason

import "strconv"

// Code is a hold reason (below 1000) or a vacate reason (1000 and above).
type Code int

// Why a job was put on hold. Where an errno is the subcode it says so.
const (
	Unspecified               Code = 0
	UserRequest               Code = 1
	JobPolicy                 Code = 3
	CorruptedCredential       Code = 4
	JobPolicyUndefined        Code = 5
	FailedToCreateProcess     Code = 6  // errno
	UnableToOpenOutput        Code = 7  // errno; standard error as well
	UnableToOpenInput         Code = 8  // errno
	UnableToOpenOutputStream  Code = 9  // errno
	UnableToOpenInputStream   Code = 10 // errno
	InvalidTransferAck        Code = 11
	TransferOutputError       Code = 12 // errno
	TransferInputError        Code = 13 // errno
	IwdError                  Code = 14 // errno
	SubmittedOnHold           Code = 15
	SpoolingInput             Code = 16
	JobShadowMismatch         Code = 17
	InvalidTransferGoAhead    Code = 18
	HookPrepareJobFailure     Code = 19 // exit status, or minus the signal
	MissedDeferredTime        Code = 20
	StartdHeldJob             Code = 21
	UnableToInitUserLog       Code = 22
	FailedToAccessUserAccount Code = 23
	NoCompatibleShadow        Code = 24
	InvalidCronSettings       Code = 25
	SystemPolicy              Code = 26
	SystemPolicyUndefined     Code = 27
	MaxTransferInputExceeded  Code = 32
	MaxTransferOutputExceeded Code = 33
	JobOutOfResources         Code = 34 // OutOfMemory or OutOfDisk
	InvalidDockerImage        Code = 35
	FailedToCheckpoint        Code = 36
	PreScriptFailed           Code = 43
	PostScriptFailed          Code = 44
	SingularityTestFailed     Code = 45
	JobDurationExceeded       Code = 46
	JobExecuteExceeded        Code = 47
	HookShadowPrepareFailure  Code = 48
	CannotSwitchPrimaryGroup  Code = 49
)

// Why a job left its slot without being held.
const (
	VacateBase                    Code = 1000 // the first of them; job policy
	SystemPolicyVacate            Code = 1001
	ShadowException               Code = 1002
	JobNotStarted                 Code = 1003
	UserVacateJob                 Code = 1004
	JobShouldRequeue              Code = 1005
	FailedToActivateClaim         Code = 1006
	StarterError                  Code = 1007
	ReconnectFailed               Code = 1008
	ClaimDeactivated              Code = 1009
	StartdVacateCommand           Code = 1010
	StartdPreemptExpression       Code = 1011
	StartdException               Code = 1012
	StartdShutdown                Code = 1013
	StartdDraining                Code = 1014
	StartdCoalesce                Code = 1015
	StartdHibernate               Code = 1016
	StartdReleaseCommand          Code = 1017
	StartdPreemptingClaimRank     Code = 1018
	StartdPreemptingClaimUserPrio Code = 1019
	VMError                       Code = 1020
	ContainerError                Code = 1021
	ScheddVacate                  Code = 1022
	JobRemoved                    Code = 1023
	ScratchDirError               Code = 1024
	SuccessfulCheckpoint          Code = 1025
	StartdRehoming                Code = 1037 // the EP moves to another access point
)

// Subcodes of JobOutOfResources.
const (
	OutOfMemory = 102
	OutOfDisk   = 104
)

// Holds reports whether code and subcode mean that the job is held, rather
// than that it left and may be matched again.
func Holds(code Code, subcode int) bool {
	return code > 0 && code < VacateBase && subcode > -int(VacateBase)
}

// From puts the slot in front of an error that its starter reports, the form
// of a HoldReason.
func From(slot, text string) string { return "Error from " + slot + ": " + text }

// String returns HTCondor's name of c, or its number if it has none here.
func (c Code) String() string {
	for _, n := range names {
		if n.code == c {
			return n.name
		}
	}
	return strconv.Itoa(int(c))
}

// names holds the spelling that appears in NumVacatesByReason and its like.
var names = [...]struct {
	code Code
	name string
}{
	{Unspecified, "Unspecified"}, {UserRequest, "UserRequest"}, {JobPolicy, "JobPolicy"},
	{CorruptedCredential, "CorruptedCredential"}, {JobPolicyUndefined, "JobPolicyUndefined"},
	{FailedToCreateProcess, "FailedToCreateProcess"}, {UnableToOpenOutput, "UnableToOpenOutput"},
	{UnableToOpenInput, "UnableToOpenInput"}, {UnableToOpenOutputStream, "UnableToOpenOutputStream"},
	{UnableToOpenInputStream, "UnableToOpenInputStream"}, {InvalidTransferAck, "InvalidTransferAck"},
	{TransferOutputError, "TransferOutputError"}, {TransferInputError, "TransferInputError"},
	{IwdError, "IwdError"}, {SubmittedOnHold, "SubmittedOnHold"}, {SpoolingInput, "SpoolingInput"},
	{JobShadowMismatch, "JobShadowMismatch"}, {InvalidTransferGoAhead, "InvalidTransferGoAhead"},
	{HookPrepareJobFailure, "HookPrepareJobFailure"}, {MissedDeferredTime, "MissedDeferredExecutionTime"},
	{StartdHeldJob, "StartdHeldJob"}, {UnableToInitUserLog, "UnableToInitUserLog"},
	{FailedToAccessUserAccount, "FailedToAccessUserAccount"}, {NoCompatibleShadow, "NoCompatibleShadow"},
	{InvalidCronSettings, "InvalidCronSettings"}, {SystemPolicy, "SystemPolicy"},
	{SystemPolicyUndefined, "SystemPolicyUndefined"}, {MaxTransferInputExceeded, "MaxTransferInputSizeExceeded"},
	{MaxTransferOutputExceeded, "MaxTransferOutputSizeExceeded"}, {JobOutOfResources, "JobOutOfResources"},
	{InvalidDockerImage, "InvalidDockerImage"}, {FailedToCheckpoint, "FailedToCheckpoint"},
	{PreScriptFailed, "PreScriptFailed"}, {PostScriptFailed, "PostScriptFailed"},
	{SingularityTestFailed, "SingularityTestFailed"}, {JobDurationExceeded, "JobDurationExceeded"},
	{JobExecuteExceeded, "JobExecuteExceeded"}, {HookShadowPrepareFailure, "HookShadowPrepareJobFailure"},
	{CannotSwitchPrimaryGroup, "CannotSwitchPrimaryGroup"},
	{VacateBase, "JobPolicyVacate"}, {SystemPolicyVacate, "SystemPolicyVacate"}, {ShadowException, "ShadowException"},
	{JobNotStarted, "JobNotStarted"}, {UserVacateJob, "UserVacateJob"}, {JobShouldRequeue, "JobShouldRequeue"},
	{FailedToActivateClaim, "FailedToActivateClaim"}, {StarterError, "StarterError"}, {ReconnectFailed, "ReconnectFailed"},
	{ClaimDeactivated, "ClaimDeactivated"}, {StartdVacateCommand, "StartdVacateCommand"},
	{StartdPreemptExpression, "StartdPreemptExpression"}, {StartdException, "StartdException"},
	{StartdShutdown, "StartdShutdown"}, {StartdDraining, "StartdDraining"}, {StartdCoalesce, "StartdCoalesce"},
	{StartdHibernate, "StartdHibernate"}, {StartdReleaseCommand, "StartdReleaseCommand"},
	{StartdPreemptingClaimRank, "StartdPreemptingClaimRank"}, {StartdPreemptingClaimUserPrio, "StartdPreemptingClaimUserPrio"},
	{VMError, "VMError"}, {ContainerError, "ContainerError"}, {ScheddVacate, "ScheddVacate"}, {JobRemoved, "JobRemoved"},
	{ScratchDirError, "ScratchDirError"}, {SuccessfulCheckpoint, "SuccessfulCheckpoint"},
	{StartdRehoming, "StartdRehoming"},
}
