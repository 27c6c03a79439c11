// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// account is what the job used, in all its runs. It is asked and added to by the
// activation's goroutine and by those that work beside it.
type account struct {
	mu    sync.Mutex
	began time.Time // when the job was executed first
	io    ioHistory
	peak  int64      // the most resident memory at an update, KiB
	spent usedBefore // by earlier runs of the job, which have saved its state
}

// begin notes that a run begins now.
func (a *account) begin(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.began.IsZero() {
		a.began = now
	}
}

// total is what all runs used, the present one included.
func (a *account) total(present host.Usage) host.Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent.and(present)
}

// saved notes that the present run has ended with its state saved.
func (a *account) saved(u host.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent = a.spent.plus(u)
}

// measure puts what the job used into c, whose Usage is that of the present run.
func (a *account) measure(c *condition, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.Moment == job.Exited {
		a.peak = max(a.peak, c.Usage.PeakRSSKiB)
	}
	c.Usage = a.spent.and(c.Usage)
	a.peak = max(a.peak, c.Usage.RSSKiB)
	c.peakRSS = a.peak
	if c.word == words[job.Exited] {
		c.peakRSS = max(c.peakRSS, c.Usage.PeakRSSKiB)
	}
	if c.word != "" && !a.began.IsZero() {
		c.counted, c.recent = max(0, now.Sub(a.began)), a.io.recent(now, blockIOOf(c.Usage), c.window)
	}
}

// usedBefore adds what earlier runs of the job have used.
type usedBefore struct{ host.Usage }

func (u usedBefore) plus(v host.Usage) usedBefore {
	u.UserCPU += v.UserCPU
	u.SysCPU += v.SysCPU
	u.ImageSizeKiB = max(u.ImageSizeKiB, v.ImageSizeKiB)
	u.PeakRSSKiB = max(u.PeakRSSKiB, v.PeakRSSKiB)
	u.PeakProcs = max(u.PeakProcs, v.PeakProcs)
	u.BlockReads += v.BlockReads
	u.BlockWrites += v.BlockWrites
	u.BlockReadBytes += v.BlockReadBytes
	u.BlockWriteBytes += v.BlockWriteBytes
	return u
}

// and is what the job has used together with its present run.
func (u usedBefore) and(v host.Usage) host.Usage {
	sum := u.plus(v).Usage
	sum.RSSKiB, sum.Procs, sum.OOMKills, sum.OverMemory, sum.Pressure = v.RSSKiB, v.Procs, v.OOMKills, v.OverMemory, v.Pressure
	return sum
}

// blockIO is what a job read from and wrote to block devices.
type blockIO struct {
	reads, writes         int64
	readBytes, writeBytes int64
}

func blockIOOf(u host.Usage) blockIO {
	return blockIO{u.BlockReads, u.BlockWrites, u.BlockReadBytes, u.BlockWriteBytes}
}

func (b blockIO) minus(o blockIO) blockIO {
	return blockIO{b.reads - o.reads, b.writes - o.writes, b.readBytes - o.readBytes, b.writeBytes - o.writeBytes}
}

// ioHistory remembers measurements of a window of time. It begins with
// nothing.
type ioHistory struct {
	before blockIO // what was there when the window began
	inside []ioSample
}

type ioSample struct {
	at time.Time
	io blockIO
}

// recent notes what was counted up to now and returns what of it falls into
// the window.
func (h *ioHistory) recent(now time.Time, io blockIO, window time.Duration) blockIO {
	for len(h.inside) > 0 && now.Sub(h.inside[0].at) > window {
		h.before, h.inside = h.inside[0].io, h.inside[1:]
	}
	h.inside = append(h.inside, ioSample{now, io})
	return io.minus(h.before)
}

// blocks says what the job did to block devices, ever and recently, and for
// how long that has been counted.
func (c condition) blocks(ad *classad.Ad) {
	put := func(prefix string, io blockIO, since time.Duration) {
		ad.SetInt(prefix+"BlockReads", io.reads)
		ad.SetInt(prefix+"BlockWrites", io.writes)
		ad.SetInt(prefix+"BlockReadKbytes", io.readBytes/1024)
		ad.SetInt(prefix+"BlockWriteKbytes", io.writeBytes/1024)
		ad.SetInt(prefix+"StatsLifetime", int64(since/time.Second))
	}
	put("", blockIOOf(c.Usage), c.counted)
	put("Recent", c.recent, min(c.counted, c.window))
}
