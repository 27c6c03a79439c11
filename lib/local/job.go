// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Status is the status of a job, with HTCondor's numbers as JobStatus has them.
type Status int

// The statuses of a job.
const (
	Idle         Status = 1
	Running      Status = 2
	Removed      Status = 3
	Completed    Status = 4
	Held         Status = 5
	Transferring Status = 6 // output is on its way
	Suspended    Status = 7
)

// String returns the lower-case word for s.
func (s Status) String() string {
	switch s {
	case Idle:
		return "idle"
	case Running:
		return "running"
	case Removed:
		return "removed"
	case Completed:
		return "completed"
	case Held:
		return "held"
	case Transferring:
		return "transferring"
	case Suspended:
		return "suspended"
	}
	return fmt.Sprintf("status %d", int(s))
}

// ID names a job: the cluster of its submit file and its number therein.
type ID struct{ Cluster, Proc int }

// String returns "12.3".
func (id ID) String() string { return fmt.Sprintf("%d.%d", id.Cluster, id.Proc) }

// job is one job of the queue.
type job struct {
	id     ID
	ad     *classad.Ad
	order  int   // position in the submit file
	prio   int64 // JobPrio
	sig    int   // jobs with the same signature match the same slots
	status Status
	since  clock.Instant // when status was entered

	run        *run // the activation it is in, nil between runs
	starts     int64
	runs       int64
	exit       host.ExitStatus
	imageKiB   int64 // largest ImageSize reported
	rssKiB     int64
	userCPU    time.Duration // of all runs
	sysCPU     time.Duration
	sent, recv int64 // bytes of all runs
	wall       time.Duration
	hold       *protocol.Hold
	impossible string        // why no slot can ever run it, "" if one can
	refused    string        // why it was not started at the last try
	crashes    int           // starters in a row that ended without a word
	retry      clock.Instant // not to be started before
	pace       jobpolicy.Pace

	asked  clock.Instant // when it was last asked why it waits
	toldOf []string      // reasons of its waiting that were told

	policed bool               // something may take it out of the queue, or put it back
	look    clock.Instant      // when that is asked next
	ending  *jobpolicy.Verdict // why its run was told to end, nil if it was not
	never   string             // why no slot could run it when it was held from the start
	waits   bool               // it is held, and its own policy may release it
}

// run is one activation of a job.
type run struct {
	job       *job
	lease     *lease
	act       claim.ActivationID
	activated clock.Instant // when the slot became busy
	started   time.Time     // when the job's program began
	dir       string        // its scratch directory
	suspended time.Time     // zero while it runs
	total     time.Duration // suspended so far
	imageKiB  int64         // last size written to the event log
	ended     bool
	usage     host.Usage
	diskKiB   int64
	in, out   int64
}

// lease is a claim this access point holds.
type lease struct {
	id    claim.ID
	slot  slot.ID
	name  string // slot1_1@host
	ad    *classad.Ad
	run   *run
	going bool // release was asked for
}

// perJob are attributes that differ between the jobs of one submit file and
// rarely matter for a match. A policy that names one makes it matter.
var perJob = []string{
	"ProcId", "GlobalJobId", "Args", "Arguments", "In", "Out", "Err", "Env", "Environment", "UserLog", "Iwd",
	"TransferInput", "TransferOutput", "TransferOutputRemaps", "JobDescription", "QDate", "JobStatus",
	"EnteredCurrentStatus", "NumJobStarts", "JobRunCount", "Cmd",
}

// signature returns a text that is equal for jobs which the same slots accept.
// named tells whether an expression of the machine mentions an attribute.
func signature(ad *classad.Ad, named func(attr string) bool) string {
	skip := make(map[string]bool, len(perJob))
	own := ""
	for _, n := range []string{"Requirements", "Rank", "RequestCpus", "RequestMemory", "RequestDisk"} {
		if e, ok := ad.Lookup(n); ok {
			own += " " + strings.ToLower(e.String())
		}
	}
	for _, n := range perJob {
		if !named(n) && !strings.Contains(own, strings.ToLower(n)) {
			skip[strings.ToLower(n)] = true
		}
	}
	var b strings.Builder
	for name, e := range ad.All() {
		if skip[strings.ToLower(name)] {
			continue
		}
		b.WriteString(strings.ToLower(name))
		b.WriteByte('=')
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}
