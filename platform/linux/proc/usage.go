// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
)

// Usage implements host.Family.
func (f *family) Usage() (host.Usage, error) {
	f.op.Lock()
	defer f.op.Unlock()
	if f.closed {
		return f.final, nil
	}
	return f.usage()
}

// lastUsage is usage of a family whose processes are gone, with what its group tells
// then alone. Called with op held, before the group is removed.
func (f *family) lastUsage() (host.Usage, error) {
	u, counted, err := f.measure()
	if f.group == nil {
		return u, err
	}
	last, lerr := f.group.Final(counted)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.peak.PeakRSSKiB = max(f.peak.PeakRSSKiB, last.Anonymous/1024)
	f.peak.ImageSizeKiB = max(f.peak.ImageSizeKiB, f.peak.PeakRSSKiB)
	f.peak.PeakProcs = max(f.peak.PeakProcs, int(last.Processes))
	u.PeakRSSKiB, u.ImageSizeKiB, u.PeakProcs = f.peak.PeakRSSKiB, f.peak.ImageSizeKiB, f.peak.PeakProcs
	if last.Memory != nil || last.CPU != nil || last.IO != nil {
		u.Pressure = &host.Pressure{Memory: (*host.Stall)(last.Memory), CPU: (*host.Stall)(last.CPU), IO: (*host.Stall)(last.IO)}
	}
	return u, errors.Join(err, lerr)
}

// usage adds what the ended ones used, as the kernel told when they were
// waited for, to what the living ones have used so far. Called with op held.
func (f *family) usage() (host.Usage, error) {
	u, _, err := f.measure()
	return u, err
}

// measure is usage, with what the group told of it.
func (f *family) measure() (host.Usage, cgroup.Usage, error) {
	var living []Stat
	var counted cgroup.Usage
	if !f.spotless() {
		var err error
		if living, err = f.members(); err != nil {
			return host.Usage{}, counted, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	u := host.Usage{UserCPU: f.user, SysCPU: f.sys, Procs: len(living)}
	pageKiB := int64(os.Getpagesize() / 1024)
	var size int64
	for _, st := range living {
		u.UserCPU += time.Duration(st.User+st.KidUser) * tick
		u.SysCPU += time.Duration(st.Sys+st.KidSys) * tick
		u.RSSKiB += st.RSS * pageKiB
		size += int64(st.Size / 1024)
	}
	if p := f.room.init(); !p.over() { // it has waited for those that had lost their parents
		if st, err := f.spawner.table.stat(p.pid); err == nil {
			u.UserCPU += time.Duration(st.KidUser) * tick
			u.SysCPU += time.Duration(st.KidSys) * tick
		}
	}
	// A child's own peak starts with ours, for until exec it shares our
	// memory: below that the number says only "at most".
	ended := f.maxKiB
	if ended <= f.floorKiB && f.peak.PeakRSSKiB > 0 {
		ended = 0
	}
	var groupErr error
	if f.group != nil {
		g, err := f.group.Usage()
		groupErr, counted = err, g
		if g.CPU {
			// what a parent that ignores SIGCHLD never waited for is in the
			// group's count alone
			u.UserCPU += max(0, g.Total-u.UserCPU-u.SysCPU)
		}
		if g.Block {
			u.BlockReads, u.BlockWrites = g.IO.Reads, g.IO.Writes
			u.BlockReadBytes, u.BlockWriteBytes = g.IO.ReadBytes, g.IO.WriteBytes
		}
		if g.Memory {
			u.OOMKills = g.OOMKills
			if g.OOMKills > 0 {
				u.OverMemory = &host.OverMemory{LimitKiB: g.Over.Limit / 1024, PeakKiB: g.Peak / 1024, Own: g.Over.Hits > 0, Part: g.Over.Below}
			}
			u.RSSKiB = g.RSS / 1024
			if g.Peak > 0 {
				ended = min(ended, g.Peak/1024)
			}
		}
	}
	f.peak.PeakRSSKiB = max(f.peak.PeakRSSKiB, u.RSSKiB, ended)
	f.peak.ImageSizeKiB = max(f.peak.ImageSizeKiB, size, f.peak.PeakRSSKiB)
	f.peak.UserCPU, f.peak.SysCPU = max(f.peak.UserCPU, u.UserCPU), max(f.peak.SysCPU, u.SysCPU)
	u.UserCPU, u.SysCPU = f.peak.UserCPU, f.peak.SysCPU // never back, though ticks are coarse
	f.peak.PeakProcs = max(f.peak.PeakProcs, u.Procs)
	u.PeakRSSKiB, u.ImageSizeKiB, u.PeakProcs = f.peak.PeakRSSKiB, f.peak.ImageSizeKiB, f.peak.PeakProcs
	return u, counted, groupErr
}
