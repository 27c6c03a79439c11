// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Place is where a job is on this machine, and with whose rights its files are dealt
// with.
type Place struct {
	Job  *Job
	Box  *sandbox.Sandbox
	User *host.Identity // nil is the user of this process
	// AsUser calls f, whose dealings with files are then those of the job's user.
	AsUser    func(f func() error) error
	MachineAd string // the slot's, as the job may read it
	// Marker is the variable by which the job's processes are told from others.
	Marker string
}

// WriteAds writes what the job may read of itself and its slot.
func (p *Place) WriteAds() error {
	return p.Box.WriteAds(p.Job.ForSandbox(p.Box.Scratch()).Text(classad.Old), p.MachineAd)
}

// Learned is what is known of a job to begin with.
type Learned struct {
	Ad   *classad.Ad
	User *host.Identity // whom it runs as; nil: as the plan says
	// Lost is closed when the conversation with the access point breaks; nil where
	// there is none.
	Lost <-chan struct{}
}

// Brought is a job whose input is there.
type Brought struct {
	Files int
	Bytes int64
	// Chirp is the path of the file by which the job reaches its access point, and
	// Creds that of the directory with its credentials; "" for none.
	Chirp, Creds string
	Tickets      string // path of its ticket cache of Kerberos; "" for none
	// Piped are standard files of the job that lead to its access point; nil for
	// others. They are the source's.
	Piped [3]*os.File
	// Problem is what went wrong and keeps the job from nothing that it asked for;
	// nil for none.
	Problem error
}

// Moment is when something is told of a job.
type Moment uint8

// What a State tells of.
const (
	Runs         Moment = iota // it runs, or goes on
	Suspended                  // it is suspended
	Exited                     // its main process has ended
	ScriptFailed               // a program before or after it has, and it is to be held
)

// State is how a job is at one moment.
type State struct {
	Moment  Moment
	Again   bool       // it is no news: only the state is told
	Usage   host.Usage // of its present run
	Disk    sandbox.Usage
	Started time.Time // the present run; zero before the first
	Ended   time.Time
	Status  host.ExitStatus
	Main    host.ProcID // zero before the first run
	Grouped bool        // it has a control group
	// Scripts is how the programs before and after the job have ended.
	Scripts []*classad.Ad
	Metered *classad.Ad // what monitors say that the job uses; nil for nothing
	Evicted *Eviction   // nil unless it was told to leave
}

// Eviction is why a job leaves.
type Eviction struct {
	Asked, Reason string
	Code, Subcode int
	Hard          bool // at once
}

// Ending is a job that has ended, and whose output is sent or whose state saved.
type Ending struct {
	State
	Wanted Wanted
	// Final says that the job does not come back.
	Final bool
	// Before is what was in the scratch directory when the job began.
	Before transfer.Listing
}

// Sent is what was sent of a job.
type Sent struct {
	Files int
	Bytes int64
}

// Saved is a job whose state was saved, or was not in a way that stops nothing.
type Saved struct {
	Sent
	Problem error     // nil for none
	Leave   *Eviction // why the job does not go on here; nil if it does
	Piped   [3]*os.File
}

// End is how a job's stay came to its end.
type End struct {
	State
	Ran  bool
	Hold *protocol.Hold // it is to be held
}

// Report tells the startd something.
type Report func(protocol.Report)

// Apart calls f with the rights of the starter, and waits for its end: who calls it
// may have those of the job's user alone.
func Apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// ownHandler is a log that is written with the rights of the starter.
type ownHandler struct{ slog.Handler }

func (h ownHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	Apart(func() { err = h.Handler.Handle(ctx, r) })
	return err
}

func (h ownHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return ownHandler{h.Handler.WithAttrs(attrs)}
}

func (h ownHandler) WithGroup(name string) slog.Handler {
	return ownHandler{h.Handler.WithGroup(name)}
}

// OwnLog is log for those who have the rights of the job's user.
func OwnLog(log *slog.Logger) *slog.Logger { return slog.New(ownHandler{log.Handler()}) }

// AskedByStarter is Eviction.Asked where the starter itself ends a job.
const AskedByStarter = "starter"
