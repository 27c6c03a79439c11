// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Report takes one report of the starter of an activation.
func (a *AP) Report(now clock.Instant, act claim.ActivationID, told protocol.Told) {
	r, ok := a.runs[act]
	if !ok || r.ended {
		return
	}
	j, at := r.job, told.At
	if at.IsZero() {
		at = now.Wall
	}
	switch rep := told.What.(type) {
	case protocol.Sandbox:
		r.dir = rep.Dir
	case protocol.TransferInStart:
		a.log(at, j, eventlog.FileTransfer{Step: eventlog.InputStarted, Host: a.cfg.Address})
	case protocol.TransferInDone:
		r.in = rep.Bytes
		a.log(at, j, eventlog.FileTransfer{Step: eventlog.InputFinished})
	case protocol.Running:
		r.started = at
		j.runs++
		j.ad.SetInt("NumJobStarts", j.runs)
		j.ad.SetInt("JobRunCount", j.runs)
		j.ad.SetInt("JobCurrentStartExecutingDate", at.Unix())
		a.checkSoon(j, now)
		a.log(at, j, a.executeEvent(r))
		a.changed(Change{Job: j.id, At: at, Status: Running, What: "started", Slot: r.lease.name})
	case protocol.Usage:
		a.usage(at, r, rep)
	case protocol.Suspended:
		r.suspended = at
		a.setStatus(j, Suspended, now)
		n, _ := j.ad.EvalInt("TotalSuspensions", nil)
		j.ad.SetInt("TotalSuspensions", n+1)
		j.ad.SetInt("LastSuspensionTime", at.Unix())
		a.log(at, j, eventlog.Suspended{Processes: rep.Count})
		a.changed(Change{Job: j.id, At: at, Status: Suspended, What: "suspended", Slot: r.lease.name})
	case protocol.Continued:
		a.unsuspend(at, r)
		a.setStatus(j, Running, now)
		a.changed(Change{Job: j.id, At: at, Status: Running, What: "continued", Slot: r.lease.name})
	case protocol.TransferOutStart:
		a.setStatus(j, Transferring, now)
		a.log(at, j, eventlog.FileTransfer{Step: eventlog.OutputStarted})
	case protocol.TransferOutDone:
		r.out = rep.Bytes
		a.log(at, j, eventlog.FileTransfer{Step: eventlog.OutputFinished})
	case protocol.Held:
		// The starter's own words reach the log at once; the hold
		// follows when the starter has ended.
		a.log(at, j, eventlog.RemoteError{
			Daemon: "starter", Host: r.lease.name, Text: strings.TrimPrefix(rep.Hold.Reason, "Error from "+r.lease.name+": "),
			ReasonCode: rep.Hold.Code, ReasonSubcode: rep.Hold.Subcode,
		})
	case protocol.Attributes:
		a.setAttrs(now, at, j, rep)
	case protocol.Event:
		a.log(at, j, eventlog.Generic{Info: rep.Text})
	case protocol.Ended:
		a.ended(now, r, rep.Record)
	}
}

// setAttrs takes what the job says about itself into its ad. As a schedd does it
// writes each attribute that the job sets at once into the job's event log, and
// none that waited for an update.
func (a *AP) setAttrs(now clock.Instant, at time.Time, j *job, rep protocol.Attributes) {
	ad, err := classad.ParseAd(rep.Ad, classad.Old)
	if err != nil {
		a.problem(fmt.Errorf("job %s: the attributes that it set: %w", j.id, err))
		return
	}
	for name, e := range ad.All() {
		ev := eventlog.AttributeUpdate{Name: name, Value: e.Text(classad.Old)}
		if was, ok := j.ad.Lookup(name); ok {
			ev.OldValue = was.Text(classad.Old)
		}
		if j.ad.Set(name, e); !rep.Delayed {
			a.log(at, j, ev)
		}
	}
	j.place.prio, _ = j.ad.EvalInt("JobPrio", nil)
	a.own++
	j.place.sig = -a.own // no other job is known to match the same slots
	if !j.policy.applies && a.cfg.System.Has(j.ad) {
		j.policy.applies = true
		a.policed = append(a.policed, j)
	}
	a.checkSoon(j, now)
}

func (a *AP) unsuspend(at time.Time, r *run) {
	if r.suspended.IsZero() {
		return
	}
	d := at.Sub(r.suspended)
	r.total += d
	r.suspended = time.Time{}
	n, _ := r.job.ad.EvalInt("CumulativeSuspensionTime", nil)
	r.job.ad.SetInt("CumulativeSuspensionTime", n+int64(d/time.Second))
	a.log(at, r.job, eventlog.Unsuspended{})
}

// usage notes a measurement and logs it when the job has grown.
func (a *AP) usage(at time.Time, r *run, rep protocol.Usage) {
	j := r.job
	r.usage, r.diskKiB = rep.Usage, max(r.diskKiB, rep.DiskKiB)
	j.used.grow(r.usage)
	j.used.rssKiB = max(j.used.rssKiB, r.usage.RSSKiB)
	a.usageAttrs(r)
	if j.used.imageKiB <= r.imageKiB {
		return
	}
	r.imageKiB = j.used.imageKiB
	a.log(at, j, eventlog.ImageSize{Size: j.used.imageKiB, MemoryUsage: (j.used.rssKiB + 1023) / 1024, ResidentSetSize: j.used.rssKiB, ProportionalSetSize: -1})
}

func (a *AP) usageAttrs(r *run) {
	ad := r.job.ad
	ad.SetInt("ImageSize", r.job.used.imageKiB)
	ad.SetInt("ResidentSetSize", r.job.used.rssKiB)
	ad.SetInt("DiskUsage", r.diskKiB)
	ad.SetReal("RemoteUserCpu", (r.job.used.userCPU + r.usage.UserCPU).Truncate(time.Second).Seconds())
	ad.SetReal("RemoteSysCpu", (r.job.used.sysCPU + r.usage.SysCPU).Truncate(time.Second).Seconds())
}

// executeEvent builds event 001.
func (a *AP) executeEvent(r *run) eventlog.Event {
	ev := eventlog.Execute{Host: a.cfg.Address, SlotName: r.lease.name}
	add := func(name, value string) { ev.Props = append(ev.Props, eventlog.Property{Name: name, Value: value}) }
	add("CondorScratchDir", eventlog.Quote(r.dir))
	for _, res := range resources(r.lease.ad) {
		add(res, r.lease.ad.Eval(res, nil).Text(classad.Old))
		if e, ok := r.lease.ad.Lookup("Available" + res); ok {
			add("Available"+res, e.Text(classad.Old))
		}
	}
	return ev
}

// resources lists the resources of a slot, without swap, as events show them.
func resources(ad *classad.Ad) []string {
	text, _ := ad.EvalString("MachineResources", nil)
	var names []string
	for _, n := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		if !strings.EqualFold(n, "Swap") {
			names = append(names, n)
		}
	}
	return names
}

// table builds the resource table of an evicted or terminated event.
func (r *run) table(ended time.Time, now clock.Instant) []eventlog.Resource {
	var rows []eventlog.Resource
	wall := r.wall(ended)
	for _, name := range resources(r.lease.ad) {
		row := eventlog.Resource{Name: name, Allocated: r.lease.ad.Eval(name, nil).Text(classad.Old)}
		if v := r.job.ad.Eval("Request"+name, &classad.Env{Target: r.lease.ad}); !v.IsUndefined() {
			row.Request = v.Text(classad.Old)
		}
		if v, ok := r.lease.ad.EvalString("Assigned"+name, nil); ok {
			row.Assigned = eventlog.Quote(v)
		}
		switch name {
		case "Cpus":
			use := 0.0
			if wall > 0 {
				use = (r.usage.UserCPU + r.usage.SysCPU).Seconds() / wall.Seconds()
			}
			row.Usage = eventlog.Number(use)
		case "Memory":
			row.Usage = eventlog.Number(float64((r.usage.PeakRSSKiB + 1023) / 1024))
		case "Disk":
			row.Usage = eventlog.Number(float64(r.diskKiB))
		}
		rows = append(rows, row)
	}
	rows = append(rows, eventlog.Resource{Name: "TimeExecute", Usage: eventlog.Number(float64(wall / time.Second))})
	return append(rows, eventlog.Resource{Name: "TimeSlotBusy", Usage: eventlog.Number(float64(now.Sub(r.activated) / time.Second))})
}

func (r *run) wall(ended time.Time) time.Duration {
	if r.started.IsZero() || ended.Before(r.started) {
		return 0
	}
	return ended.Sub(r.started)
}

func (r *run) remote() eventlog.Usage {
	return eventlog.Usage{User: r.usage.UserCPU, System: r.usage.SysCPU}
}

// ended takes the exit record.
func (a *AP) ended(now clock.Instant, r *run, rec protocol.ExitRecord) {
	j := r.job
	r.usage, r.diskKiB = rec.Usage, max(r.diskKiB, rec.DiskKiB)
	r.in, r.out = cmp.Or(rec.BytesIn, r.in), cmp.Or(rec.BytesOut, r.out)
	j.used.grow(r.usage)
	for _, p := range rec.Problems {
		a.problem(fmt.Errorf("job %s on %s: %s", j.id, r.lease.name, p))
	}
	switch {
	case rec.Held != nil:
		a.close(now, r, rec.Ended)
		j.policy.verdict = nil // of the run; what it says of a held job is asked again
		a.holdJob(now, j, *rec.Held)
	case rec.Evicted || !rec.Status.Ended():
		a.evict(now, r, eviction{at: rec.Ended, code: rec.Code, subcode: rec.Subcode, reason: rec.Reason})
	default:
		a.terminate(now, r, rec)
	}
}

// close adds the run's figures to the job's.
func (a *AP) close(now clock.Instant, r *run, ended time.Time) {
	j := r.job
	r.ended, j.run = true, nil
	if !r.suspended.IsZero() {
		a.unsuspend(ended, r)
	}
	a.usageAttrs(r)
	j.used.add(r, ended)
	j.ad.SetReal("RemoteWallClockTime", j.used.wall.Truncate(time.Second).Seconds())
	j.ad.SetInt("BytesSent", j.used.sent)
	j.ad.SetInt("BytesRecvd", j.used.received)
	j.ad.SetString("LastRemoteHost", r.lease.name)
	j.ad.Delete("RemoteHost")
}
