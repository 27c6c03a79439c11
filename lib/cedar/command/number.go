// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package command

// Commands to collectors, brokers and the shared port.
const (
	UpdateStartdAd      = 0
	QueryStartdAds      = 5
	QueryScheddAds      = 6
	QueryMasterAds      = 7
	InvalidateStartdAds = 13
	QueryMultipleAds    = 53
	CCBRegister         = 67
	CCBRequest          = 68
	CCBReverseConnect   = 69 // first on a reversed connection
	SharedPortConnect   = 75 // first on a connection: whom it is for
	SharedPortPassSock  = 76 // from the shared port to its endpoints: a socket follows
)

// Commands about slots and claims, and of schedds.
const (
	ContinueClaim            = 401
	SuspendClaim             = 402
	DeactivateClaim          = 403
	DeactivateClaimForcibly  = 404
	DeactivateClaimJobDone   = 413
	XEventNotification       = 427
	GetHistory               = 429
	MatchInfo                = 440
	Alive                    = 441
	RequestClaim             = 442
	ReleaseClaim             = 443
	ActivateClaim            = 444
	VacateAllClaims          = 447
	GiveState                = 448
	ConfigVal                = 457 // the older name of DCConfigVal
	VacateClaim              = 465
	GiveTotalsClassAd        = 470
	VacateAllFast            = 474
	VacateClaimFast          = 475
	UpdateGSICred            = 487
	DelegateGSICredStarter   = 500
	DelegateGSICredStartd    = 501
	DrainJobs                = 512
	CancelDrainJobs          = 513
	CoalesceSlots            = 522
	DirectAttach             = 531
	ReactivateClaimCheck     = 554
	DeactivateClaimFinalXfer = 561
	Rehome                   = 562
	CommandDataSlot          = 563
	CAAuthCmd                = 1000 // the command stands in an ad
	QmgmtWrite               = 1112 // of a schedd; the calls follow on the connection
	CACmd                    = 1200 // the command stands in an ad
)

// Commands to a starter, and from a starter to its shadow.
const (
	StarterVacateJob         = 1500
	CreateJobOwnerSecSession = 1501
	StartSSHD                = 1502
	StarterPeek              = 1503
	CreddGetCred             = 81001 // what the access point has of a user
	FiletransUpload          = 61000 // input: the shadow uploads
	FiletransDownload        = 61001 // output: the shadow downloads
)

// Commands that every daemon knows.
const (
	DCRaiseSignal             = 60000
	DCConfigPersist           = 60002
	DCConfigRuntime           = 60003
	DCReconfig                = 60004
	DCOffGraceful             = 60005
	DCOffFast                 = 60006
	DCConfigVal               = 60007
	DCChildAlive              = 60008
	DCAuthenticate            = 60010 // begins every handshake; as the real command it only makes a session
	DCNop                     = 60011
	DCReconfigFull            = 60012
	DCFetchLog                = 60013
	DCOffPeaceful             = 60015
	DCSetPeaceful             = 60016
	DCTimeOffset              = 60017
	DCPurgeLog                = 60018
	DCNopRead                 = 60020
	DCNopWrite                = 60021
	DCNopNegotiator           = 60022
	DCNopAdministrator        = 60023
	DCNopOwner                = 60024
	DCNopConfig               = 60025
	DCNopDaemon               = 60026
	DCNopAdvertiseStartd      = 60027
	DCNopAdvertiseSchedd      = 60028
	DCNopAdvertiseMaster      = 60029
	DCSecQuery                = 60040 // asks whether another command would be allowed
	DCSetForce                = 60041
	DCOffForce                = 60042
	DCSetReady                = 60043
	DCQueryReady              = 60044
	DCQueryInstance           = 60045
	DCStartTokenRequest       = 60047
	DCFinishTokenRequest      = 60048
	DCListTokenRequest        = 60049
	DCApproveTokenRequest     = 60050
	DCAutoApproveTokenRequest = 60051
)

// Commands of this project alone, above all numbers that HTCondor uses: the
// questions of the control socket (lib/observe), over the wire. The payload is a
// Request as a text of JSON, the answer a Response.
const (
	ExecpointLook   = 90001 // to see the slots, and why each is as it is
	ExecpointChange = 90002 // to drain, to take that back and to vacate
)
