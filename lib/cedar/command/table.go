// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import "strconv"

// Terms are what a daemon demands of the sender of a command, and what it takes.
type Terms struct {
	// Level is what the sender must be allowed, or one of Alternatives.
	Level        Level
	Alternatives []Level

	// Authenticated demands a user that is known here by name, whatever the policy
	// of the level is.
	Authenticated bool

	// Datagrams lets the command come in datagrams as well: the sender waits for no
	// answer to it, and one that is given goes nowhere.
	Datagrams bool

	// Empty says that the command has no payload on the wire, or one that its sender
	// waits with until it was answered. Before the handler begins it never shows that
	// it has the key of a session that it took up again.
	Empty bool

	// Keep leaves the connection open for further commands once one is answered.
	Keep bool

	// Message is how many bytes one message of its payload may have from a peer
	// that has proven who it is, 0 for 1 MiB. An eighth is taken from others.
	Message int
}

// Row is a command as one daemon answers it.
type Row struct {
	Number int
	Name   string // HTCondor's, as "REQUEST_CLAIM"
	Terms
}

// Acts reports whether the command may change something, so that its sender
// has to be proven: all above READ may.
func (r Row) Acts() bool { return r.Level != Allow && r.Level != Read }

// Answerer is a kind of daemon that answers commands.
type Answerer uint8

// The daemons of this project.
const (
	Startd Answerer = iota
	Starter
)

// Row returns the row of a command, false for one that this daemon does not
// answer: then it has a number and, if any daemon has it, a name.
func (a Answerer) Row(number int) (Row, bool) {
	for _, e := range table {
		if e.number == number {
			if t := e.terms(a); t != nil {
				return Row{number, e.name, *t}, true
			}
			return Row{Number: number, Name: e.name}, false
		}
	}
	return Row{Number: number}, false
}

// Rows returns the rows of all commands that this daemon answers, ascending by
// number.
func (a Answerer) Rows() []Row {
	var all []Row
	for _, e := range table {
		if t := e.terms(a); t != nil {
			all = append(all, Row{e.number, e.name, *t})
		}
	}
	return all
}

// Name returns the name of a command for people: its number where it is not
// known here.
func Name(number int) string {
	for _, e := range table {
		if e.number == number {
			return e.name
		}
	}
	return strconv.Itoa(number)
}

// entry is a command with the terms of those who answer it. One that has none is
// only sent from here.
type entry struct {
	number  int
	name    string
	startd  *Terms
	starter *Terms
}

func (e *entry) terms(a Answerer) *Terms {
	switch a {
	case Startd:
		return e.startd
	case Starter:
		return e.starter
	}
	return nil
}

// JobMessage is how many bytes a message with a job may have, and AskMessage one
// with a question of the control socket.
const (
	JobMessage = 8 << 20
	AskMessage = 1<<20 + 1024
)

// Terms that many commands have.
var (
	open       = Terms{Level: Allow}
	ofOwner    = Terms{Level: Allow, Authenticated: true} // the handler looks whether it is the job's owner: there is no level for that
	reading    = Terms{Level: Read}
	ofClaim    = Terms{Level: Daemon}
	ofClaimUDP = Terms{Level: Daemon, Datagrams: true}
	withJob    = Terms{Level: Daemon, Message: JobMessage}
	admin      = Terms{Level: Administrator}
	adminUDP   = Terms{Level: Administrator, Datagrams: true}
	order      = Terms{Level: Administrator, Datagrams: true, Empty: true}
	// HTCondor has these at DAEMON with ALLOW beside it: the handler decides.
	forAnybody = Terms{Level: Daemon, Alternatives: []Level{Allow}}
	forUsers   = Terms{Level: Daemon, Alternatives: []Level{Allow}, Authenticated: true}
)

// table is every command that is answered or sent here, ascending by number.
var table = [...]entry{
	{UpdateStartdAd, "UPDATE_STARTD_AD", nil, nil},
	{QueryStartdAds, "QUERY_STARTD_ADS", &reading, nil},
	{QueryScheddAds, "QUERY_SCHEDD_ADS", nil, nil},
	{QueryMasterAds, "QUERY_MASTER_ADS", nil, nil},
	{InvalidateStartdAds, "INVALIDATE_STARTD_ADS", nil, nil},
	{QueryMultipleAds, "QUERY_MULTIPLE_ADS", &reading, nil},
	{CCBRegister, "CCB_REGISTER", nil, nil},
	{CCBRequest, "CCB_REQUEST", nil, nil},
	// Nothing comes of it without an id that was made here.
	{CCBReverseConnect, "CCB_REVERSE_CONNECT", &open, &open},
	{SharedPortConnect, "SHARED_PORT_CONNECT", nil, nil},
	{SharedPortPassSock, "SHARED_PORT_PASS_SOCK", nil, nil},

	{ContinueClaim, "CONTINUE_CLAIM", &ofClaim, nil},
	{SuspendClaim, "SUSPEND_CLAIM", &ofClaim, nil},
	{DeactivateClaim, "DEACTIVATE_CLAIM", &ofClaim, nil},
	{DeactivateClaimForcibly, "DEACTIVATE_CLAIM_FORCIBLY", &ofClaim, nil},
	{DeactivateClaimJobDone, "DEACTIVATE_CLAIM_JOB_DONE", &ofClaim, nil},
	{XEventNotification, "X_EVENT_NOTIFICATION", &Terms{Level: Allow, Keep: true, Datagrams: true}, nil},
	{GetHistory, "GET_HISTORY", &reading, nil},
	{MatchInfo, "MATCH_INFO", &Terms{Level: Negotiator, Datagrams: true}, nil},
	{Alive, "ALIVE", &ofClaimUDP, nil},
	{RequestClaim, "REQUEST_CLAIM", &withJob, nil},
	{ReleaseClaim, "RELEASE_CLAIM", &ofClaimUDP, nil},
	{ActivateClaim, "ACTIVATE_CLAIM", &withJob, nil},
	{VacateAllClaims, "VACATE_ALL_CLAIMS", &order, nil},
	{GiveState, "GIVE_STATE", &reading, nil},
	{ConfigVal, "CONFIG_VAL", &reading, nil},
	{VacateClaim, "VACATE_CLAIM", &adminUDP, nil},
	{GiveTotalsClassAd, "GIVE_TOTALS_CLASSAD", &reading, nil},
	{VacateAllFast, "VACATE_ALL_FAST", &order, nil},
	{VacateClaimFast, "VACATE_CLAIM_FAST", &adminUDP, nil},
	{UpdateGSICred, "UPDATE_GSI_CRED", nil, &Terms{Level: Write}},
	{DelegateGSICredStarter, "DELEGATE_GSI_CRED_STARTER", nil, &Terms{Level: Write, Empty: true}},
	{DelegateGSICredStartd, "DELEGATE_GSI_CRED_STARTD", &ofClaim, nil},
	{DrainJobs, "DRAIN_JOBS", &admin, nil},
	{CancelDrainJobs, "CANCEL_DRAIN_JOBS", &admin, nil},
	{CoalesceSlots, "COALESCE_SLOTS", &withJob, nil},
	{DirectAttach, "DIRECT_ATTACH", nil, nil},
	{ReactivateClaimCheck, "REACTIVATE_CLAIM_CHECK", &ofClaim, nil},
	{DeactivateClaimFinalXfer, "DEACTIVATE_CLAIM_FINAL_XFER", &ofClaim, nil},
	{Rehome, "REHOME", &admin, nil},
	{CommandDataSlot, "COMMAND_DATA_SLOT", &withJob, nil},
	{CAAuthCmd, "CA_AUTH_CMD", &Terms{Level: Write, Authenticated: true, Message: JobMessage}, nil},
	{QmgmtWrite, "QMGMT_WRITE_CMD", nil, nil},
	{CACmd, "CA_CMD", &Terms{Level: Write, Message: JobMessage}, &Terms{Level: Write}},

	{StarterVacateJob, "STARTER_VACATE_JOB", nil, &ofClaim},
	{CreateJobOwnerSecSession, "CREATE_JOB_OWNER_SEC_SESSION", nil, &ofClaim},
	// HTCondor registers these two for READ; a user who may read the pool is not the
	// job's owner.
	{StartSSHD, "START_SSHD", nil, &ofOwner},
	{StarterPeek, "STARTER_PEEK", nil, &ofOwner},

	{DCRaiseSignal, "DC_RAISESIGNAL", &ofClaimUDP, &ofClaim},
	{DCConfigPersist, "DC_CONFIG_PERSIST", &forAnybody, nil},
	{DCConfigRuntime, "DC_CONFIG_RUNTIME", &forAnybody, nil},
	{DCReconfig, "DC_RECONFIG", &order, nil},
	{DCOffGraceful, "DC_OFF_GRACEFUL", &order, nil},
	{DCOffFast, "DC_OFF_FAST", &order, nil},
	{DCConfigVal, "DC_CONFIG_VAL", &reading, nil},
	{DCChildAlive, "DC_CHILDALIVE", nil, nil},
	{DCAuthenticate, "DC_AUTHENTICATE", nil, nil}, // lib/cedar/security answers it
	{DCNop, "DC_NOP", &Terms{Level: Allow, Datagrams: true, Empty: true}, &ofOwner},
	{DCReconfigFull, "DC_RECONFIG_FULL", &order, nil},
	{DCFetchLog, "DC_FETCH_LOG", &admin, nil},
	{DCOffPeaceful, "DC_OFF_PEACEFUL", &order, nil},
	{DCSetPeaceful, "DC_SET_PEACEFUL_SHUTDOWN", &order, nil},
	{DCTimeOffset, "DC_TIME_OFFSET", &ofClaim, nil},
	{DCPurgeLog, "DC_PURGE_LOG", &admin, nil},
	{DCNopRead, "DC_NOP_READ", nop(Read), nil},
	{DCNopWrite, "DC_NOP_WRITE", nop(Write), nil},
	{DCNopNegotiator, "DC_NOP_NEGOTIATOR", nop(Negotiator), nil},
	{DCNopAdministrator, "DC_NOP_ADMINISTRATOR", nop(Administrator), nil},
	{DCNopOwner, "DC_NOP_OWNER", nop(Administrator), nil}, // the level OWNER became ADMINISTRATOR
	{DCNopConfig, "DC_NOP_CONFIG", nop(Config), nil},
	{DCNopDaemon, "DC_NOP_DAEMON", nop(Daemon), nil},
	{DCNopAdvertiseStartd, "DC_NOP_ADVERTISE_STARTD", nop(AdvertiseStartd), nil},
	{DCNopAdvertiseSchedd, "DC_NOP_ADVERTISE_SCHEDD", nop(AdvertiseSchedd), nil},
	{DCNopAdvertiseMaster, "DC_NOP_ADVERTISE_MASTER", nop(AdvertiseMaster), nil},
	{DCSecQuery, "DC_SEC_QUERY", nil, nil}, // lib/cedar/security answers it
	{DCSetForce, "DC_SET_FORCE_SHUTDOWN", &order, nil},
	{DCOffForce, "DC_OFF_FORCE", &order, nil},
	{DCSetReady, "DC_SET_READY", nil, nil},
	{DCQueryReady, "DC_QUERY_READY", &reading, nil},
	{DCQueryInstance, "DC_QUERY_INSTANCE", &open, &ofOwner},
	{DCStartTokenRequest, "DC_START_TOKEN_REQUEST", &forAnybody, nil},
	{DCFinishTokenRequest, "DC_FINISH_TOKEN_REQUEST", &forAnybody, nil},
	{DCListTokenRequest, "DC_LIST_TOKEN_REQUEST", &forUsers, nil},
	{DCApproveTokenRequest, "DC_APPROVE_TOKEN_REQUEST", &forUsers, nil},
	{DCAutoApproveTokenRequest, "DC_AUTO_APPROVE_TOKEN_REQUEST", &admin, nil},
	{FiletransUpload, "FILETRANS_UPLOAD", nil, nil},
	{FiletransDownload, "FILETRANS_DOWNLOAD", nil, nil},

	{CreddGetCred, "CREDD_GET_CRED", nil, nil},

	// To look needs READ, to change something ADMINISTRATOR, as for the commands
	// of HTCondor that do the same. A peer without a name is not answered.
	{ExecpointLook, "EXECPOINT_LOOK", &Terms{Level: Read, Authenticated: true, Message: AskMessage}, nil},
	{ExecpointChange, "EXECPOINT_CHANGE", &Terms{Level: Administrator, Authenticated: true, Message: AskMessage}, nil},
}

// nop are the terms of a command that only tries whether a level is allowed.
func nop(l Level) *Terms { return &Terms{Level: l, Datagrams: true, Empty: true} }
