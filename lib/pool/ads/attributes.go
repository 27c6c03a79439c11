// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ads

// Attributes, as HTCondor spells them.
const (
	AttrAddressV1        = "AddressV1"
	AttrCapability       = "Capability"
	AttrChildClaimIDs    = "ChildClaimIds"
	AttrClaimID          = "ClaimId"
	AttrClaimIDList      = "ClaimIdList"
	AttrDutyCycle        = "DaemonCoreDutyCycle"
	AttrLastHeardFrom    = "LastHeardFrom"
	AttrLastReconfig     = "DaemonLastReconfigTime"
	AttrMachine          = "Machine"
	AttrMyAddress        = "MyAddress"
	AttrMyType           = "MyType"
	AttrName             = "Name"
	AttrNumClaims        = "NumClaims"
	AttrNumDynamicSlots  = "NumDynamicSlots"
	AttrPrivateNetwork   = "PrivateNetworkName"
	AttrRecentDutyCycle  = "RecentDaemonCoreDutyCycle"
	AttrRemoteAdmin      = "_condor_PrivRemoteAdminCapability"
	AttrRequirements     = "Requirements"
	AttrStart            = "Start"
	AttrStartTime        = "DaemonStartTime"
	AttrStartdIPAddr     = "StartdIpAddr"
	AttrTargetType       = "TargetType"
	AttrUpdateSequenceNo = "UpdateSequenceNumber"
	TypeDaemon           = "StartD"
	TypeExtra            = "Machine.Extra"
	TypeQuery            = "Query"
	TypeSchedd           = "Scheduler"
	TypeSlot             = "Machine"
	TypeMaster           = "DaemonMaster"
)

// Attributes of answers, and what Result says in those to commands in ads.
const (
	AttrResult          = "Result"
	AttrErrorString     = "ErrorString"
	AttrErrorCode       = "ErrorCode"
	ResultSuccess       = "Success"
	ResultFailure       = "Failure"
	ResultInvalid       = "InvalidRequest"
	ResultNotAuthorized = "NotAuthorized"
)
