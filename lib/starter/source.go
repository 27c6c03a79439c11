// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"log/slog"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/localjob"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/shadowjob"
)

// Fetch gets the job and its input. What takes time is called beside the
// activation and ends with ctx; errors are *job.Held, *job.Unfit, or ctx's.
type Fetch interface {
	// Learn gets the job's ad. It may take time.
	Learn(ctx context.Context) (job.Learned, error)
	// Read reads what the ad says about running it here, below scratch and by a user
	// with that home directory, "" if it is not known.
	Read(ad *classad.Ad, scratch, home string) (*job.Job, error)
	// Bring brings the input, and waits until the job may start. It may take time.
	Bring(ctx context.Context, p *job.Place) (job.Brought, error)
}

// Notify tells who hears how the job fares. Nothing waits.
type Notify interface {
	Starting(env []string) // it is about to be executed
	Executed()             // its program runs and has the standard files, or is none that can
	Changed(s job.State)
	Held(h protocol.Hold) // it has to be held, and leaves for that
	Rejoined()            // who hears it is back
	Lease() time.Duration // how long to wait for who hears it
}

// Hooked serves the hooks of a job.
type Hooked interface {
	// Meet makes the starter known to who hears how the job fares, before a hook runs
	// that comes before the input; Bring does it else. It may take time. Errors are as
	// those of Bring.
	Meet(ctx context.Context, p *job.Place) error
	Warned(text string)               // for the job's event log: it keeps the job from nothing
	Measured(s job.State) *classad.Ad // what an update of the job tells that is so
}

// Deliver brings back what the job left and tells how it went. What may take time
// is called beside the activation and ends with ctx; errors are *job.Held,
// job.ErrAway, or ctx's.
type Deliver interface {
	// Send sends the output. It may take time, unless nothing is wanted.
	Send(ctx context.Context, e job.Ending) (job.Sent, error)
	// Checkpoint saves the state of a job that is to go on. It may take time.
	Checkpoint(ctx context.Context, e job.Ending) (job.Saved, error)
	// Tell tells how it went. It may take time. The error is a *job.Held if the job was
	// found to be held, and who hears it was told so.
	Tell(ctx context.Context, e job.End) error
	Connected() bool                     // who hears it is there
	Total(present host.Usage) host.Usage // what all runs used, the present one included
	Close(ctx context.Context)           // what is left to be told is told until ctx ends
}

// source is where the job comes from: the embedded access point, whose files are on
// this machine, or a shadow.
type source struct {
	Fetch
	Notify
	Hooked
	Deliver
}

// newSource is the source of the job that the plan names.
func (a *activation) newSource() *source {
	if a.local() {
		j := localjob.New(localjob.Config{
			Plan: a.plan, Submit: a.submitSide(), AsUser: a.asUser, Files: a.host.Files, Errno: a.host.Errno, Acknowledge: a.host.Acknowledge,
			Log: orDiscard(a.log), Report: a.say, Progress: a.flow.add,
		})
		return &source{j, j, j, j}
	}
	j := shadowjob.New(shadowjob.Config{
		Plan: a.plan, Machine: a.host.Machine, Accounts: a.host.Accounts, Spawner: a.host.Spawner, Errno: a.host.Errno, Env: a.env,
		Log: orDiscard(a.host.Log), Report: a.say, Progress: a.flow.add, Activation: a,
	})
	return &source{j, j, j, j}
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// local reports whether the job is one of the embedded access point.
func (a *activation) local() bool { return a.plan.Shadow == nil }
