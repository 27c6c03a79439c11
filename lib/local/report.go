// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter"
)

// Report takes one report of the starter of an activation.
func (a *AP) Report(now clock.Instant, act claim.ActivationID, rep starter.Report) {
	r, ok := a.runs[act]
	if !ok || r.ended {
		return
	}
	j, at := r.job, rep.At
	if at.IsZero() {
		at = now.Wall
	}
	switch rep.Op {
	case starter.OpSandbox:
		r.dir = rep.Dir
	case starter.OpTransferInStart:
		a.log(at, j, eventlog.FileTransfer{Step: eventlog.InputStarted, Host: a.cfg.Address})
	case starter.OpTransferInDone:
		r.in = rep.Bytes
		a.log(at, j, eventlog.FileTransfer{Step: eventlog.InputFinished})
	case starter.OpRunning:
		r.started = at
		j.runs++
		j.ad.SetInt("NumJobStarts", j.runs)
		j.ad.SetInt("JobRunCount", j.runs)
		j.ad.SetInt("JobCurrentStartExecutingDate", at.Unix())
		a.log(at, j, a.executeEvent(r))
		a.changed(Change{Job: j.id, At: at, Status: Running, What: "started", Slot: r.lease.name})
	case starter.OpUsage:
		a.usage(at, r, rep)
	case starter.OpSuspended:
		r.suspended = at
		a.setStatus(j, Suspended, now)
		n, _ := j.ad.EvalInt("TotalSuspensions", nil)
		j.ad.SetInt("TotalSuspensions", n+1)
		j.ad.SetInt("LastSuspensionTime", at.Unix())
		a.log(at, j, eventlog.Suspended{Processes: rep.Count})
		a.changed(Change{Job: j.id, At: at, Status: Suspended, What: "suspended", Slot: r.lease.name})
	case starter.OpContinued:
		a.unsuspend(at, r)
		a.setStatus(j, Running, now)
		a.changed(Change{Job: j.id, At: at, Status: Running, What: "continued", Slot: r.lease.name})
	case starter.OpTransferOutStart:
		a.setStatus(j, Transferring, now)
		a.log(at, j, eventlog.FileTransfer{Step: eventlog.OutputStarted})
	case starter.OpTransferOutDone:
		r.out = rep.Bytes
		a.log(at, j, eventlog.FileTransfer{Step: eventlog.OutputFinished})
	case starter.OpHeld:
		if rep.Hold != nil {
			// The starter's own words reach the log at once; the hold
			// follows when the starter has ended.
			a.log(at, j, eventlog.RemoteError{
				Daemon: "starter", Host: r.lease.name, Text: strings.TrimPrefix(rep.Hold.Reason, "Error from "+r.lease.name+": "),
				ReasonCode: rep.Hold.Code, ReasonSubcode: rep.Hold.Subcode,
			})
		}
	case starter.OpEnded:
		if rep.Record != nil {
			a.ended(now, r, *rep.Record)
		}
	}
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
func (a *AP) usage(at time.Time, r *run, rep starter.Report) {
	if rep.Usage == nil {
		return
	}
	j := r.job
	r.usage, r.diskKiB = *rep.Usage, max(r.diskKiB, rep.DiskKiB)
	j.imageKiB = max(j.imageKiB, r.usage.ImageSizeKiB)
	j.rssKiB = max(j.rssKiB, r.usage.RSSKiB, r.usage.PeakRSSKiB)
	a.usageAttrs(r)
	if j.imageKiB <= r.imageKiB {
		return
	}
	r.imageKiB = j.imageKiB
	a.log(at, j, eventlog.ImageSize{Size: j.imageKiB, MemoryUsage: (j.rssKiB + 1023) / 1024, ResidentSetSize: j.rssKiB, ProportionalSetSize: -1})
}

func (a *AP) usageAttrs(r *run) {
	ad := r.job.ad
	ad.SetInt("ImageSize", r.job.imageKiB)
	ad.SetInt("ResidentSetSize", r.job.rssKiB)
	ad.SetInt("DiskUsage", r.diskKiB)
	ad.SetReal("RemoteUserCpu", (r.job.userCPU + r.usage.UserCPU).Truncate(time.Second).Seconds())
	ad.SetReal("RemoteSysCpu", (r.job.sysCPU + r.usage.SysCPU).Truncate(time.Second).Seconds())
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
func (a *AP) ended(now clock.Instant, r *run, rec starter.ExitRecord) {
	j := r.job
	r.usage, r.diskKiB = rec.Usage, max(r.diskKiB, rec.DiskKiB)
	r.in, r.out = cmp.Or(rec.BytesIn, r.in), cmp.Or(rec.BytesOut, r.out)
	j.imageKiB = max(j.imageKiB, r.usage.ImageSizeKiB)
	j.rssKiB = max(j.rssKiB, r.usage.PeakRSSKiB)
	for _, p := range rec.Problems {
		a.problem(fmt.Errorf("job %s on %s: %s", j.id, r.lease.name, p))
	}
	switch {
	case rec.Held != nil:
		a.close(now, r, rec.Ended)
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
	j.userCPU += r.usage.UserCPU
	j.sysCPU += r.usage.SysCPU
	j.sent += r.out
	j.recv += r.in
	j.wall += r.wall(ended)
	j.ad.SetReal("RemoteWallClockTime", j.wall.Truncate(time.Second).Seconds())
	j.ad.SetInt("BytesSent", j.sent)
	j.ad.SetInt("BytesRecvd", j.recv)
	j.ad.SetString("LastRemoteHost", r.lease.name)
	j.ad.Delete("RemoteHost")
}

// eviction is how a run ended without the job having ended.
type eviction struct {
	at            time.Time
	code, subcode int
	reason        string
	crashed       bool // nobody knows what became of the job
}

func (a *AP) evict(now clock.Instant, r *run, e eviction) {
	j := r.job
	if e.at.IsZero() {
		e.at = now.Wall
	}
	j.refused = ""
	if e.crashed {
		e.code = cmp.Or(e.code, int(reason.StarterError))
		j.crashes++
		j.retry = now.Add(backoff(j.crashes))
		j.refused = "it is tried again later: " + e.reason
	}
	a.close(now, r, e.at)
	held := e.code == int(reason.StartdHeldJob)
	if held {
		a.log(e.at, j, eventlog.RemoteError{
			Daemon: "starter", Host: r.lease.name, Text: e.reason, ReasonCode: e.code, ReasonSubcode: e.subcode,
		})
	}
	a.log(e.at, j, eventlog.Evicted{
		ReasonCode: e.code, ReasonSubcode: e.subcode, Reason: e.reason, Remote: r.remote(),
		Sent: r.out, Received: r.in, Resources: r.table(e.at, now),
	})
	if held {
		// The policy of the machine does not want it run again.
		a.holdJob(now, j, starter.Hold{Code: e.code, Subcode: e.subcode, Reason: "Error from " + r.lease.name + ": " + e.reason})
		return
	}
	a.setStatus(j, Idle, now)
	a.requeue(j)
	a.changed(Change{Job: j.id, At: e.at, Status: Idle, What: "evicted", Slot: r.lease.name, Detail: e.reason, Wall: r.wall(e.at)})
}

// The time a job waits after its starter crashed doubles from the one to the
// other: whatever kills starters must not be fed with them.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

func backoff(crashes int) time.Duration {
	return min(firstRetry<<min(crashes-1, 16), lastRetry)
}

// terminate ends a run whose job ended by itself. OnExitHold and OnExitRemove
// of the job decide what becomes of it.
func (a *AP) terminate(now clock.Instant, r *run, rec starter.ExitRecord) {
	j := r.job
	a.close(now, r, rec.Ended)
	j.exit, j.crashes = rec.Status, 0
	j.ad.SetBool("ExitBySignal", rec.Status.Signal != 0)
	if rec.Status.Signal != 0 {
		j.ad.SetInt("ExitSignal", int64(rec.Status.Signal))
		j.ad.Delete("ExitCode")
	} else {
		j.ad.SetInt("ExitCode", int64(rec.Status.Code))
		j.ad.Delete("ExitSignal")
	}
	if v, defined := j.ad.EvalBool("OnExitHold", a.env(now)); defined && v {
		text := "The job attribute OnExitHold expression '" + exprText(j.ad, "OnExitHold") + "' evaluated to TRUE"
		if s, ok := j.ad.EvalString("OnExitHoldReason", a.env(now)); ok && s != "" {
			text = s
		}
		sub, _ := j.ad.EvalInt("OnExitHoldSubCode", a.env(now))
		a.holdJob(now, j, starter.Hold{Code: int(reason.JobPolicy), Subcode: int(sub), Reason: text})
		return
	}
	exit := eventlog.Exit{Signal: rec.Status.Signal, Status: rec.Status.Code}
	if rec.Status.Core {
		exit.CoreFile = filepath.Join(jobDir(j.ad), fmt.Sprintf("core.%d.%d", j.id.Cluster, j.id.Proc))
	}
	if v, defined := j.ad.EvalBool("OnExitRemove", a.env(now)); defined && !v {
		text := "The job attribute OnExitRemove expression '" + exprText(j.ad, "OnExitRemove") + "' evaluated to FALSE"
		a.log(rec.Ended, j, eventlog.Evicted{
			Requeued: &exit, Remote: r.remote(), Sent: r.out, Received: r.in, Reason: text, Resources: r.table(rec.Ended, now),
		})
		a.setStatus(j, Idle, now)
		a.requeue(j)
		a.changed(Change{Job: j.id, At: rec.Ended, Status: Idle, What: "evicted", Slot: r.lease.name, Detail: text, Wall: r.wall(rec.Ended)})
		return
	}
	a.log(rec.Ended, j, eventlog.Terminated{
		Exit: exit, Remote: r.remote(), TotalRemote: eventlog.Usage{User: j.userCPU, System: j.sysCPU},
		Sent: r.out, Received: r.in, TotalSent: j.sent, TotalReceived: j.recv, Resources: r.table(rec.Ended, now),
	})
	a.setStatus(j, Completed, now)
	if !rec.Status.Success() {
		a.counts.Failed++
	}
	j.ad.SetInt("CompletionDate", rec.Ended.Unix())
	c := Change{
		Job: j.id, At: rec.Ended, Status: Completed, What: "completed", Slot: r.lease.name, Detail: rec.Status.String(),
		Wall: r.wall(rec.Ended), ExitCode: rec.Status.Code, ExitSignal: rec.Status.Signal,
	}
	if out, ok := j.ad.EvalString("Out", nil); ok && out != "" && out != "/dev/null" {
		if !filepath.IsAbs(out) {
			out = filepath.Join(jobDir(j.ad), out)
		}
		c.Output = out
	}
	a.changed(c)
}

func (a *AP) holdJob(now clock.Instant, j *job, h starter.Hold) {
	j.hold = &h
	a.setStatus(j, Held, now)
	j.ad.SetString("HoldReason", h.Reason)
	j.ad.SetInt("HoldReasonCode", int64(h.Code))
	j.ad.SetInt("HoldReasonSubCode", int64(h.Subcode))
	a.log(now.Wall, j, eventlog.Held{Reason: h.Reason, ReasonCode: h.Code, ReasonSubcode: h.Subcode})
	a.changed(Change{Job: j.id, At: now.Wall, Status: Held, What: "held", Detail: fmt.Sprintf("%s (code %d subcode %d)", h.Reason, h.Code, h.Subcode)})
}

func exprText(ad *classad.Ad, name string) string {
	if e, ok := ad.Lookup(name); ok {
		return e.Text(classad.Old)
	}
	return ""
}

func jobDir(ad *classad.Ad) string {
	s, _ := ad.EvalString("Iwd", nil)
	return s
}
