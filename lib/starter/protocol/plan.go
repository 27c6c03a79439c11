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

// What a starter does when the startd goes away.
const (
	OrphanDie  = "die"  // kill the job, clean up, exit (the embedded access point)
	OrphanStay = "stay" // go on; the exit record on disk tells the next startd
)

// Plan is everything a starter needs to know to run one activation: the first order.
type Plan struct {
	Activation   string        `json:"activation"`     // "slot1_1#3"
	SlotName     string        `json:"slot"`           // "slot1_1"
	SlotFullName string        `json:"slot_full_name"` // "slot1_1@host.example.org"
	Execute      string        `json:"execute"`        // the directory in which the sandbox is made
	JobAd        string        `json:"job_ad"`         // old syntax
	MachineAd    string        `json:"machine_ad"`     // old syntax
	Cpus         int           `json:"cpus"`           // cores of the slot, for the thread-count variables
	Limits       SlotLimits    `json:"limits"`         // what the slot has
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
	// TrackGID is a group that each process of the job has and no other process of
	// the machine; 0 is none. Only a starter of root can give it.
	TrackGID uint32 `json:"track_gid,omitempty"`
	// Volume is the scratch directory's own file system, nil for none.
	Volume *host.Volume `json:"volume,omitempty"`
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
	Family claim.Secret `json:"-"`
	// Split is the claim id by which more slots can be made of what this slot does not
	// need, whole as Claim is; "" for none. The starter of a data slot gives it to its
	// shadow.
	Split   claim.Secret `json:"-"`
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
		Split  string `json:"split,omitempty"`
	}{plainSide(s), s.Claim.Reveal(), s.Family.Reveal(), s.Split.Reveal()})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *ShadowSide) UnmarshalJSON(b []byte) error {
	var in struct {
		*plainSide
		Claim  string `json:"claim"`
		Family string `json:"family"`
		Split  string `json:"split"`
	}
	in.plainSide = (*plainSide)(s)
	if err := strict(b, &in); err != nil {
		return err
	}
	s.Claim, s.Family, s.Split = claim.Secret(in.Claim), claim.Secret(in.Family), claim.Secret(in.Split)
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
	// InPlace says that no file is moved, whatever the job's ad says: a job of the local
	// universe works in its submit directory.
	InPlace bool `json:"in_place,omitempty"`
	// Chirp says that Attributes and Event are heard: the job may use Chirp.
	Chirp bool `json:"chirp,omitempty"`
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
