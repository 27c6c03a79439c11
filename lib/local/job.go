// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"fmt"
	"slices"
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
	id      ID
	ad      *classad.Ad
	place   place
	status  Status
	since   clock.Instant  // when status was entered
	hold    *protocol.Hold // nil for a job that is not held
	run     *run           // the activation it is in, nil between runs
	starts  int64          // activations so far
	runs    int64          // those in which its program began
	exit    host.ExitStatus
	used    totals
	wait    wait
	restart restart
	policy  queuePolicy
}

// place is where a job stands among those that wait.
type place struct {
	prio  int64 // JobPrio
	order int   // position in the submit file
	sig   int   // jobs with the same signature match the same slots
}

// compare orders the better place first.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(q.prio, p.prio), cmp.Compare(p.order, q.order))
}

// totals are what a job used in all its runs.
type totals struct {
	imageKiB, rssKiB int64 // the largest that were reported
	userCPU, sysCPU  time.Duration
	wall             time.Duration
	sent, received   int64 // bytes
}

// grow takes the sizes of a measurement.
func (t *totals) grow(u host.Usage) {
	t.imageKiB = max(t.imageKiB, u.ImageSizeKiB)
	t.rssKiB = max(t.rssKiB, u.PeakRSSKiB)
}

// add takes a run that has ended.
func (t *totals) add(r *run, ended time.Time) {
	t.userCPU += r.usage.UserCPU
	t.sysCPU += r.usage.SysCPU
	t.sent += r.out
	t.received += r.in
	t.wall += r.wall(ended)
}

// wait is why a job waits, as far as it is known.
type wait struct {
	impossible string        // why no slot can ever run it, "" if one can
	never      string        // the same of a job that was held when that was found out
	refused    string        // why it was not started at the last try
	asked      clock.Instant // when the owner's policy was last asked why
	given      []string      // its reasons that the user was given
}

// why is what a user is told, "" if nothing is known.
func (w *wait) why() string { return cmp.Or(w.impossible, w.refused) }

// isNew reports whether the user was not yet given a reason, and notes that it is.
func (w *wait) isNew(reason string) bool {
	if reason == "" || slices.Contains(w.given, reason) {
		return false
	}
	w.given = append(w.given, reason)
	return true
}

// restart keeps a job from being started over and over.
type restart struct {
	crashes   int           // starters in a row that ended without a word
	notBefore clock.Instant // when it may be started again
	pace      jobpolicy.Pace
}

// waits reports whether the job may not be started yet.
func (r *restart) waits(now clock.Instant) bool { return r.notBefore.Boot > now.Boot }

// crashed lets the job wait longer after each crash.
func (r *restart) crashed(now clock.Instant) {
	r.crashes++
	r.notBefore = now.Add(backoff(r.crashes))
}

// ended notes a run that got no further, and returns how long the next start has to
// wait, 0 if it does not.
func (r *restart) ended(began, now clock.Instant) time.Duration {
	d := r.pace.Ended(began.Boot, now.Boot)
	if at := now.Add(d); d > 0 && at.Boot > r.notBefore.Boot {
		r.notBefore = at
	}
	return d
}

// queuePolicy is what the job's ad and the owner say of its stay in the queue.
type queuePolicy struct {
	applies       bool               // something may take it out of the queue, or put it back
	next          clock.Instant      // when that is asked next
	verdict       *jobpolicy.Verdict // why its run was told to end, nil if it was not
	mayBeReleased bool               // it is held, and a policy may release it
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
