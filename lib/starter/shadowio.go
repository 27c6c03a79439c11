// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

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
	put("", blockIOOf(c.usage), c.counted)
	put("Recent", c.recent, min(c.counted, c.window))
}
