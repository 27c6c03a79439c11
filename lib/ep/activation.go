// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// activation is the engine's side of a claim.Activation.
type activation struct {
	claim.Activation
	job     jobName
	proc    host.ProcID   // of the starter
	address string        // where the starter is reached, "" if it has not said
	ranFrom clock.Instant // when the job itself began, zero before
	used    consumption
	order   order
	limits  killLimits
	outcome outcome
	drained bool // draining ends the job before its time
	// checkpointed is when a checkpoint was last ordered, or the job began.
	checkpointed clock.Instant
}

// jobName is what a job is called.
type jobName struct {
	global string // GlobalJobId
	number string // "7.2"
}

func jobNameOf(job *classad.Ad) (n jobName) {
	n.global, _ = job.EvalString("GlobalJobId", nil)
	cluster, ok := job.EvalInt("ClusterId", nil)
	if proc, ok2 := job.EvalInt("ProcId", nil); ok && ok2 {
		n.number = strconv.FormatInt(cluster, 10) + "." + strconv.FormatInt(proc, 10)
	}
	return n
}

// consumption is what a job was measured to use.
type consumption struct {
	usage    host.Usage
	at       time.Duration // run time at which usage was measured
	cpus     float64       // processors kept busy between the last two measurements
	measured bool          // cpus is
	diskKiB  int64
}

// measure takes what the job has used so far and finds its present rate.
func (c *consumption) measure(u host.Usage, runTime time.Duration) {
	spent := (u.UserCPU + u.SysCPU) - (c.usage.UserCPU + c.usage.SysCPU)
	over := runTime - c.at
	c.usage = u
	if over < time.Second {
		return
	}
	c.at, c.measured = runTime, true
	c.cpus = max(0, spent.Seconds()/over.Seconds())
}

// order is what the starter was told about the end of its job.
type order struct {
	why   vacate       // why the job is to leave, zero if it is not
	hold  *policy.Hold // the job goes on hold
	final bool         // the output is wanted although the job will not run again
	to    Purpose      // of an access point that takes the job back
}

// evicts reports whether the job was told to leave.
func (o *order) evicts() bool { return o.why.code != 0 || o.why.reason != "" }

// killLimits are the boot times until which a job and its starter may take to
// end. A job is killed hard when it has used its vacate time, and its starter when
// that does not help; as long as the output of an ended job moves both have time.
type killLimits struct {
	soft        time.Duration // at which a soft kill becomes a hard one, 0: none
	hard        time.Duration // at which the starter is ended by force, 0: never
	late        bool          // the hard kill comes because the vacate time is over
	output      time.Duration // until which output may move after a hard kill
	outputMoved time.Duration // at which it was last seen to move, 0: never
}

// extend lets a soft kill wait for output that moves; grace is how long it may
// stand still.
func (k *killLimits) extend(now, grace time.Duration) {
	if until := k.outputMoved + grace; k.soft != 0 && k.outputMoved != 0 && until > now {
		k.soft = max(k.soft, until)
	}
}

// softOver and hardOver report whether the time is up.
func (k *killLimits) softOver(now time.Duration) bool { return k.soft != 0 && now >= k.soft }
func (k *killLimits) hardOver(now time.Duration) bool { return k.hard != 0 && now >= k.hard }

// outcome is what is known of the end of an activation.
type outcome struct {
	exit   Exit // of the job, if exited
	exited bool
	broken *slot.BrokenReason // what the job left behind breaks the slot
	fault  *MachineFault      // why it could not be set up
}
