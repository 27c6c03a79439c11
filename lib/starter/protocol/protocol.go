// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/json"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/host"
)

// MaxLine bounds one line of the conversation in bytes. A longer one ends it.
const MaxLine = 8 << 20

// What a starter does when the startd goes away.
const (
	OrphanDie  = "die"  // kill the job, clean up, exit (the embedded access point)
	OrphanStay = "stay" // go on; the exit record on disk tells the next startd
)

// Plan is everything a starter needs to know to run one activation.
type Plan struct {
	Activation   string        `json:"activation"`     // "slot1_1#3"
	SlotName     string        `json:"slot"`           // "slot1_1"
	SlotFullName string        `json:"slot_full_name"` // "slot1_1@host.example.org"
	Execute      string        `json:"execute"`        // the directory in which the sandbox is made
	JobAd        string        `json:"job_ad"`         // old syntax
	MachineAd    string        `json:"machine_ad"`     // old syntax
	Cpus         int           `json:"cpus"`           // cores of the slot, for the thread-count variables
	Orphan       string        `json:"orphan"`         // OrphanDie or OrphanStay
	Submit       SubmitSide    `json:"submit"`
	Settings     *Settings     `json:"settings,omitempty"` // which the plan shares with others, and does not change; nil is the defaults
	Keep         bool          `json:"keep,omitempty"`     // leave the sandbox in place at the end
	MaxVacate    time.Duration `json:"max_vacate,omitempty"`
	// RunAs is the user of the job's processes, with whose rights everything in its
	// sandbox is done; nil is the starter's own, which is never root.
	RunAs *host.Identity `json:"run_as,omitempty"`
	// AskUser is who the job runs as where no account of that name is here: the
	// shadow knows the numbers of that user and group. "" is RunAs.
	AskUser string `json:"ask_user,omitempty"`
	// Dedicated says that every process of the job's user is the job's.
	Dedicated bool `json:"dedicated,omitempty"`
	// Shadow is the access point's side of a job of a pool, whose socket comes
	// beside the plan. With it Submit means nothing. nil is a job of the
	// embedded access point.
	Shadow *ShadowSide `json:"shadow,omitempty"`
	// Log is the log that the starter writes, nil for none.
	Log *LogPlan `json:"log,omitempty"`
}

// ShadowSide is what a starter has to know to speak with the shadow of its
// job. It holds secrets: as JSON it is whole, printed it is not.
type ShadowSide struct {
	Stream cedar.State // of the socket that is passed beside the plan
	// Claim is the whole claim id, with what is said of its session and the
	// session's key.
	Claim claim.Secret `json:"-"`
	// Family is the session that the daemons under one condor_master share, as
	// FamilySessionKey has it; "" for none. It is more than the claim is: who has
	// it is an administrator of these daemons. So it comes with the plan alone,
	// and goes to no environment, file or job.
	Family  claim.Secret `json:"-"`
	Address string       // the startd's public address; the starter is reached at the same host and networks
	// Version and Platform are ours, as in ads: $CondorVersion … $.
	Version, Platform string
	// Cookie is in the names of the shared port's sockets, where condor_master
	// chose it: nobody else can make one. "" for sockets in a directory.
	Cookie string
}

// plainSide is a ShadowSide as JSON has it but for the secrets.
type plainSide ShadowSide

// MarshalJSON writes everything, the secrets too.
func (s ShadowSide) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainSide
		Claim  string `json:"claim"`
		Family string `json:"family,omitempty"`
	}{plainSide(s), s.Claim.Reveal(), s.Family.Reveal()})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *ShadowSide) UnmarshalJSON(b []byte) error {
	var in struct {
		*plainSide
		Claim  string `json:"claim"`
		Family string `json:"family"`
	}
	in.plainSide = (*plainSide)(s)
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	s.Claim, s.Family = claim.Secret(in.Claim), claim.Secret(in.Family)
	return nil
}

// SubmitSide says where the job's files come from and go to.
type SubmitSide struct {
	Local bool   `json:"local"` // the submit directory is on this machine
	Iwd   string `json:"iwd"`   // the job's initial directory there; "" takes Iwd of the job ad
	// As is whose the files of the submit side are, if that is not RunAs.
	As *host.Identity `json:"as,omitempty"`
	// Own says that they are those of the starter's own user, which is root.
	Own bool `json:"own,omitempty"`
	// Chirp says that OpAttributes and OpEvent are heard: the job may use Chirp.
	Chirp bool `json:"chirp,omitempty"`
}

// The operations of an Order.
const (
	OpPlan     = "plan"
	OpSuspend  = "suspend"
	OpContinue = "continue"
	OpSoftKill = "softkill" // the job's kill signal to its main process, then wait
	OpHardKill = "hardkill" // SIGKILL to everything
	// OpCheckpoint asks to save the state of a virtual machine, which goes on.
	OpCheckpoint = "checkpoint"
	// OpSlotAd brings the slot's ad as the pool is told it now: for the job, who
	// finds it in a file, and with what the machine's monitors say that the job uses.
	OpSlotAd = "slot-ad"
	// OpPing asks whether the starter reads its orders. All it does is answer.
	OpPing = "ping"
)

// Why a job is killed, which selects the signal.
const (
	MannerVacate = "vacate" // KillSig
	MannerRemove = "remove" // RemoveKillSig, else KillSig
	MannerHold   = "hold"   // HoldKillSig, else KillSig
)

// Order is one line from the startd to the starter.
type Order struct {
	Op      string `json:"op"`
	Plan    *Plan  `json:"plan,omitempty"`
	Manner  string `json:"manner,omitempty"` // for a kill; "" is MannerVacate
	Asked   string `json:"asked,omitempty"`  // who asked: "startd", "user", …
	Reason  string `json:"reason,omitempty"`
	Code    int    `json:"code,omitempty"`
	Subcode int    `json:"subcode,omitempty"`
	// Final says of a soft kill that the job will not come back and its output
	// is wanted all the same.
	Final bool `json:"final,omitempty"`
	// Deadline turns a soft kill into a hard one by the starter itself when
	// the job still runs after so long; 0 leaves that to the startd.
	Deadline time.Duration `json:"deadline,omitempty"`
	// OutputLimit is how long after a hard kill the output of a job whose
	// program has ended by itself may still be sent, as long as it moves. 0 is as
	// long as for a starter whose startd is gone.
	OutputLimit time.Duration `json:"output_limit,omitempty"`
	// SlotAd and Usage are ads in old syntax, of OpSlotAd. Usage has nothing but
	// numbers and undefined values, by the names under which the job's ad gets them.
	SlotAd string `json:"slot_ad,omitempty"`
	Usage  string `json:"usage,omitempty"`
}

// The operations of a Report.
const (
	OpReady            = "ready"
	OpSandbox          = "sandbox"
	OpTransferInStart  = "transfer-in-start"
	OpTransferInDone   = "transfer-in-done"
	OpRunning          = "running"
	OpUsage            = "usage"
	OpSuspended        = "suspended"
	OpContinued        = "continued"
	OpHeld             = "held"
	OpTransferOutStart = "transfer-out-start"
	OpOutputMoved      = "output-moved" // the program has ended by itself, and more of its output was sent since the last one
	OpTransferOutDone  = "transfer-out-done"
	OpEnded            = "ended"
	OpContact          = "contact" // the starter has an address of its own
	OpTaken            = "taken"   // an order was read, the plan excepted; whether it can be obeyed is another matter
	OpRefused          = "refused" // an order that this starter cannot carry out; nothing has changed
	// What a job without a shadow says by Chirp.
	OpAttributes = "attributes" // it sets attributes of its ad
	OpEvent      = "event"      // it has a line for its event log
)

// Report is one line from the starter to the startd. Which fields are set
// depends on Op.
type Report struct {
	Op      string       `json:"op"`
	At      time.Time    `json:"at"`
	Dir     string       `json:"dir,omitempty"`      // sandbox: its directory
	Proc    *host.ProcID `json:"proc,omitempty"`     // ready: the starter; running: the job's main process
	Usage   *host.Usage  `json:"usage,omitempty"`    // usage
	DiskKiB int64        `json:"disk_kib,omitempty"` // usage: what the scratch directory holds
	Count   int          `json:"count,omitempty"`    // suspended: processes stopped
	Files   int          `json:"files,omitempty"`    // transfer-…-done
	Bytes   int64        `json:"bytes,omitempty"`    // transfer-…-done
	Hold    *Hold        `json:"hold,omitempty"`     // held
	Record  *ExitRecord  `json:"record,omitempty"`   // ended
	Address string       `json:"address,omitempty"`  // contact: where the starter is reached, a sinful
	Order   string       `json:"order,omitempty"`    // taken, refused: the operation
	Why     string       `json:"why,omitempty"`      // refused
	Text    string       `json:"text,omitempty"`     // attributes: an ad in old syntax; event: the line
	Delayed bool         `json:"delayed,omitempty"`  // attributes: they waited for an update, and no event tells of them
}

// Hold is why the job cannot go on without its owner: HTCondor's hold reason
// with its code and subcode (an errno mostly).
type Hold struct {
	Code    int    `json:"code"`
	Subcode int    `json:"subcode"`
	Reason  string `json:"reason"`
}

// ExitRecord is how an activation ended. Where the sandbox may outlive the
// report (OrphanStay, Keep) it is written there first, so that it is found
// even if nobody was there to listen.
type ExitRecord struct {
	Activation string          `json:"activation"`
	Status     host.ExitStatus `json:"status"`            // of the job's main process; has not ended if it never ran
	Evicted    bool            `json:"evicted"`           // ended because of an order or because the startd went away
	Asked      string          `json:"asked,omitempty"`   // who asked for the eviction
	Reason     string          `json:"reason,omitempty"`  // why it was evicted
	Code       int             `json:"code,omitempty"`    // vacate code
	Subcode    int             `json:"subcode,omitempty"` //
	Usage      host.Usage      `json:"usage"`
	Started    time.Time       `json:"started,omitzero"` // when the job's main process began; zero if it never ran
	Ended      time.Time       `json:"ended"`
	BytesIn    int64           `json:"bytes_in"`
	BytesOut   int64           `json:"bytes_out"`
	DiskKiB    int64           `json:"disk_kib"`       // scratch directory at the end
	Leftovers  int             `json:"leftovers"`      // processes that outlived the main one and were killed
	Held       *Hold           `json:"held,omitempty"` // set when the job has to be held
	Problems   []string        `json:"problems,omitempty"`
	// Lost says that the starter gave up because its shadow was away for longer
	// than the lease of the job.
	Lost bool `json:"lost,omitempty"`
	// Fault is set when the job's program never ran and the machine is, or may
	// be, to blame.
	Fault *Fault `json:"fault,omitempty"`
}

// The kinds of a Fault.
const (
	FaultExecute = "execute" // EXECUTE cannot be used
	FaultSpawn   = "spawn"   // no process can be started
)

// Fault says that a job could not be started because of the machine, so that
// the startd starts no more until that is mended.
type Fault struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	// Doubtful says that the job itself may have caused it: it may have brought
	// more files than the disk has room for.
	Doubtful bool `json:"doubtful,omitempty"`
}

// LogPlan is the log that a starter writes: STARTER_LOG with what
// STARTER_LOG_NAME_APPEND puts behind it, shown as STARTER_DEBUG says. Many
// starters may write the same file after one another, and at the same time.
type LogPlan struct {
	Path       string        `json:"path,omitempty"`
	Syslog     bool          `json:"syslog,omitempty"`      // to the system's log instead: LOG_TO_SYSLOG
	Debug      []string      `json:"debug,omitempty"`       // lists of categories, as ALL_DEBUG and STARTER_DEBUG
	TimeFormat string        `json:"time_format,omitempty"` // DEBUG_TIME_FORMAT
	Stamps     bool          `json:"stamps,omitempty"`      // LOGS_USE_TIMESTAMP
	MaxBytes   int64         `json:"max_bytes,omitempty"`   // MAX_STARTER_LOG as a size, 0 for none
	MaxAge     time.Duration `json:"max_age,omitempty"`     // MAX_STARTER_LOG as a time, 0 for none
	Keep       int           `json:"keep,omitempty"`        // MAX_NUM_STARTER_LOG
}
