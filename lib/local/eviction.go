// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// eviction is how a run ended without the job having ended.
type eviction struct {
	at            time.Time
	code, subcode int
	reason        string
	crashed       bool // the starter did not say what became of the job
}

func (a *AP) evict(now clock.Instant, r *run, e eviction) {
	j := r.job
	if e.at.IsZero() {
		e.at = now.Wall
	}
	j.wait.refused = ""
	if e.crashed {
		e.code = cmp.Or(e.code, int(reason.StarterError))
		j.restart.crashed(now)
		j.wait.refused = "it is tried again later: " + e.reason
	}
	a.close(now, r, e.at)
	if v := j.policy.verdict; v != nil {
		j.policy.verdict = nil
		if v.Action != jobpolicy.Vacate {
			a.carryOut(now, j, *v)
			return
		}
		e.code, e.subcode, e.reason = int(v.Code), v.Subcode, v.Why
	}
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
		a.holdJob(now, j, protocol.Hold{Code: e.code, Subcode: e.subcode, Reason: "Error from " + r.lease.name + ": " + e.reason})
		return
	}
	a.setStatus(j, Idle, now)
	a.requeue(j)
	a.changed(Change{Job: j.id, At: e.at, Status: Idle, What: "evicted", Slot: r.lease.name, Detail: e.reason, Wall: r.wall(e.at)})
	a.slowDown(now, r)
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

// terminate ends a run whose job ended by itself. The job's policy decides what
// becomes of it.
func (a *AP) terminate(now clock.Instant, r *run, rec protocol.ExitRecord) {
	j := r.job
	a.close(now, r, rec.Ended)
	j.exit, j.restart.crashes, j.policy.verdict = rec.Status, 0, nil
	j.ad.SetBool("ExitBySignal", rec.Status.Signal != 0)
	if rec.Status.Signal != 0 {
		j.ad.SetInt("ExitSignal", int64(rec.Status.Signal))
		j.ad.Delete("ExitCode")
	} else {
		j.ad.SetInt("ExitCode", int64(rec.Status.Code))
		j.ad.Delete("ExitSignal")
	}
	jobpolicy.Ended(j.ad)
	v := a.cfg.System.Exit(j.ad, a.env(now))
	if v.Action == jobpolicy.Hold {
		a.carryOut(now, j, v)
		return
	}
	exit := eventlog.Exit{Signal: rec.Status.Signal, Status: rec.Status.Code}
	if rec.Status.Core {
		exit.CoreFile = filepath.Join(jobDir(j.ad), fmt.Sprintf("core.%d.%d", j.id.Cluster, j.id.Proc))
	}
	if v.Action == jobpolicy.Stay {
		a.log(rec.Ended, j, eventlog.Evicted{
			Requeued: &exit, Remote: r.remote(), Sent: r.out, Received: r.in, Reason: v.Why, Resources: r.table(rec.Ended, now),
		})
		a.setStatus(j, Idle, now)
		a.requeue(j)
		a.changed(Change{Job: j.id, At: rec.Ended, Status: Idle, What: "evicted", Slot: r.lease.name, Detail: v.Why, Wall: r.wall(rec.Ended)})
		a.slowDown(now, r)
		return
	}
	a.log(rec.Ended, j, eventlog.Terminated{
		Exit: exit, Remote: r.remote(), TotalRemote: eventlog.Usage{User: j.used.userCPU, System: j.used.sysCPU},
		Sent: r.out, Received: r.in, TotalSent: j.used.sent, TotalReceived: j.used.received, Resources: r.table(rec.Ended, now),
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

func jobDir(ad *classad.Ad) string {
	s, _ := ad.EvalString("Iwd", nil)
	return s
}
