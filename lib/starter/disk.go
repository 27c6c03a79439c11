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

// How many times longer than a walk through the scratch directory the time is without
// one.
const (
	// restOfWalk has all walks together take less than 1 % of a core.
	restOfWalk = 100
	// restOfCount is that where the file system counts, and says that little has
	// changed: 0.1 %.
	restOfCount = 1000
)

// diskLooks are the looks at what the scratch directory holds, while the job runs.
// Reports come as often as the owner says (STARTER_UPDATE_INTERVAL), and a walk takes
// as long as the job has files: a report that comes too early has the figures of the
// last walk.
//
// Where the file system counts, at no cost, what is in the directory, each report has
// the figures of the last walk and what has come or gone since by that count, and there
// is no walk before much has changed. The count alone is not believed: whoever owns a
// file may have it counted elsewhere, so that a job could hide what it uses, and be
// blamed for what others use. The walk sees what is there, and puts both right.
type diskLooks struct {
	walked  bool
	found   sandbox.Usage // by the last walk
	counted sandbox.Usage // before it, by the file system
	ended   time.Time     // when it ended
	took    time.Duration
	ticks   *time.Ticker // nil without a file system of its own
}

// scratch is a scratch directory as who measures it knows it.
type scratch interface {
	// Usage walks; Counted is what the file system counts, false if it does not.
	Usage() sandbox.Usage
	Counted() (sandbox.Usage, bool)
}

// look measures, and walks only if it is time.
func (d *diskLooks) look(at scratch) sandbox.Usage {
	now := time.Now()
	counted, counts := at.Counted()
	if d.walked && now.Before(d.ended.Add(d.rest(counted, counts)*d.took)) {
		if !counts {
			return d.found
		}
		is := d.found
		is.KiB = max(is.KiB+counted.KiB-d.counted.KiB, 0)
		is.Files = max(is.Files+counted.Files-d.counted.Files, 0)
		return is
	}
	d.found, d.counted, d.walked = at.Usage(), counted, true
	d.ended = time.Now()
	d.took = d.ended.Sub(now)
	return d.found
}

// rest is how many times as long as it took the last walk was enough.
func (d *diskLooks) rest(counted sandbox.Usage, counts bool) time.Duration {
	if !counts || much(counted.KiB-d.counted.KiB, d.found.KiB, 1024) || much(int64(counted.Files-d.counted.Files), int64(d.found.Files), 100) {
		return restOfWalk
	}
	return restOfCount
}

// much reports whether a figure has changed by more than a 16th and than few.
func much(change, of, few int64) bool {
	return max(change, -change) > max(of/16, few)
}

// sayCounted writes to the log that the file system counts the scratch directory, and
// what keeps one from it that should.
func (a *activation) sayCounted() {
	by, err := a.box.CountedBy()
	switch {
	case a.log == nil:
	case err != nil:
		a.log.Warn("the file system does not count what the job uses of it; the scratch directory is walked through: " + err.Error())
	case by != "":
		a.log.Info("What the job uses of the disk is counted by " + by)
	}
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
