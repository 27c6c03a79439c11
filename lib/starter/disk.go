// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// restOfWalk is how many times longer than a walk through the scratch directory the
// time is without one: all walks together take less than 1 % of a core.
const restOfWalk = 100

// diskLooks are the looks at what the scratch directory holds, while the job runs.
// Reports come as often as the owner says (STARTER_UPDATE_INTERVAL), and a walk takes
// as long as the job has files: a report that comes too early has the figures of the
// last walk.
type diskLooks struct {
	next  time.Time    // the earliest time of the next walk
	ticks *time.Ticker // nil without a file system of its own
}

// look walks, unless it is too early; else it returns what was.
func (d *diskLooks) look(walk func() sandbox.Usage, was sandbox.Usage) sandbox.Usage {
	began := time.Now()
	if began.Before(d.next) {
		return was
	}
	is := walk()
	ended := time.Now()
	d.next = ended.Add(restOfWalk * ended.Sub(began))
	return is
}

// lookAtVolumes is how often a starter looks whether its job has outgrown its file
// system, as often as HTCondor's.
const lookAtVolumes = 10 * time.Second

func (d *diskLooks) begin() {
	d.stop()
	d.ticks = time.NewTicker(lookAtVolumes)
}

func (d *diskLooks) stop() {
	if d.ticks != nil {
		d.ticks.Stop()
		d.ticks = nil
	}
}

// A job that has a file system of its own is held when it has used what its slot has
// of disk, as HTCondor does it. A full file system counts as well, while the job runs
// and at its end: HTCondor looks at the part that is used alone, which a small volume
// never reaches for what the file system needs itself, and at a job that is over no
// more, whose result is cut off all the same.

// lookAtVolume has a job leave that has outgrown its file system.
func (a *activation) lookAtVolume() []duty {
	a.disk = a.box.Usage()
	hold := a.outgrown()
	if hold == nil {
		return nil
	}
	if a.log != nil {
		a.log.Info("Job was held: " + hold.Reason)
	}
	return a.life.ordered(protocol.HardKill{Leave: protocol.Leave{
		Manner: protocol.MannerHold, Asked: job.AskedByStarter, Reason: hold.Reason, Code: hold.Code, Subcode: hold.Subcode,
	}})
}

// outOfDisk says what becomes of a job that has ended with a file system that it had
// outgrown; nil if it had not, or that does not matter.
func (a *activation) outOfDisk() []duty {
	if a.plan.Volume == nil {
		return nil
	}
	a.disk = a.box.Usage()
	hold := a.outgrown()
	if hold == nil {
		return nil
	}
	duties := a.life.starved(hold, eviction{})
	if duties != nil && a.log != nil {
		a.log.Info("Job was held: " + hold.Reason)
	}
	return duties
}

// outgrown is why the job is held for its disk, nil if it is not.
func (a *activation) outgrown() *protocol.Hold {
	limit := a.plan.Volume.LimitKiB
	if !a.disk.Full && a.disk.KiB < limit {
		return nil
	}
	return a.holds.From(reason.JobOutOfResources, reason.OutOfDisk, fmt.Sprintf(
		"Job has exceeded allocated disk (%s). Consider increasing the value of request_disk.", bytesText(limit*1024)))
}

// bytesText is a size in HTCondor's words: "98.00 MB".
func bytesText(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, units, at := float64(bytes)/1024, "KMGT", 0
	for ; value >= 1024 && at < len(units)-1; at++ {
		value /= 1024
	}
	return fmt.Sprintf("%.2f %cB", value, units[at])
}
