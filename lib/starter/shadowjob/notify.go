// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Starting writes the job's environment into its manifest.
func (j *Job) Starting(env []string) { j.mover.manifestEnv(env) }

// Executed tells that the job begins. HTCondor's starter says so before it tries, so
// that a program which the system refuses to execute counts as well; one that the
// machine had no means to start does not.
func (j *Job) Executed() {
	j.streaming().started()
	j.account.begin(j.conv.clock.Now().Wall)
	j.conv.begins()
}

// Changed tells how the job is now.
func (j *Job) Changed(s job.State) {
	switch s.Moment {
	case job.ScriptFailed:
		// As HTCondor does with nothing else: a hold, which comes next, carries no such
		// attributes.
		ad := classad.NewAd()
		ad.SetInt("_condor_JOBINFO_MAXINTERVAL", int64(j.Plan.Settings.Update/time.Second))
		for _, script := range s.Scripts {
			ad.Update(script)
		}
		j.conv.register(ad)
	case job.Exited:
		if !s.Again {
			j.conv.executionExited()
		}
		j.conv.register(j.condition(s, words[s.Moment]).exit().ad())
	default:
		c := j.condition(s, words[s.Moment])
		c.delayed = j.chirp.Delayed()
		j.conv.register(c.ad())
	}
}

// condition is how the job is.
func (j *Job) condition(s job.State, word string) condition {
	set := j.Plan.Settings.Pool
	c := condition{
		State: s, word: word, interval: j.Plan.Settings.Update, address: j.reached.address(), metric: set.MemoryUsage,
		nested: j.conv.caller.AtLeast(25, 3, 0), window: set.Window,
	}
	j.account.measure(&c, j.conv.clock.Now().Wall)
	if p := j.place; p != nil && p.Job.Moves {
		c.moved = true
		c.stdout, c.stderr = p.Box.Written()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sent {
		c.isSpooled, c.spooled = true, strings.Join(j.spooled, ",")
	}
	return c
}

// Total is what all runs of the job used.
func (j *Job) Total(present host.Usage) host.Usage { return j.account.total(present) }

// Held has the shadow hold the job, at once, or as soon as the conversation has begun.
func (j *Job) Held(h protocol.Hold) {
	j.conv.queue.add(func() {
		if <-j.conv.begun; j.conv.caller == nil {
			return
		}
		if err := j.conv.sayHold(context.Background(), h); err != nil {
			j.conv.log.Warn("the shadow was not told to hold the job", "code", h.Code, "subcode", h.Subcode, "err", err)
		}
	})
}

// Warned has the shadow write a text into the job's event log.
func (j *Job) Warned(text string) {
	j.conv.queue.add(func() {
		if err := j.conv.caller.Log(context.Background(), shadow.WarningEvent(text)); err != nil {
			j.conv.log.Warn("the shadow was not told of a warning", "text", text, "err", err)
		}
	})
}

// Measured is what an update tells the shadow.
func (j *Job) Measured(s job.State) *classad.Ad { return j.condition(s, words[s.Moment]).ad() }

// Lease is what is left of the job's lease.
func (j *Job) Lease() time.Duration {
	length := time.Duration(0)
	if j.place != nil {
		length = shadow.LeaseLength(j.place.Job.Ad)
	}
	return shadow.Lease{Length: length, Contact: j.conv.caller.Contact()}.Left(j.conv.clock.Now())
}

// Rejoined gets to know the shadow that took the job up again, before anything
// else is told.
func (j *Job) Rejoined() {
	j.conv.queue.add(func() {
		if err := j.share(context.Background()); err != nil {
			j.conv.log.Warn("the shadow that came back shares no session", "err", err)
		}
	})
	j.conv.queue.add(j.streaming().rejoined)
}
