// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package localjob

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Config is what a job of the embedded access point needs of its starter.
type Config struct {
	Plan *protocol.Plan
	// Submit is with whose rights the files of the submit side are dealt with; nil
	// where they are those of the job's user.
	Submit transfer.SubmitSide
	AsUser func(f func() error) error
	// Files is what the job's files are asked beyond Go's library, for Chirp. Its
	// Errno is filled in.
	Files       chirp.System
	Errno       host.Errno
	Acknowledge func(net.Conn) // as chirp.Config's
	Log         *slog.Logger
	Report      job.Report
	Progress    func(bytes int64) // is told of output that moves
	// Secrets are asked for when the job needs one; nil where there are none.
	Secrets func() Secrets
}

// Job is a job of the embedded access point.
type Job struct {
	Config
	place  *job.Place
	submit *chirp.Local // what the job reaches by Chirp; nil without
	chirp  *job.Chirp
	creds  *job.Renewing
	// reported is the text of the delayed attributes as they were told last.
	reported string
	log      userLog
}

// New makes a job.
func New(c Config) *Job { return &Job{Config: c} }

// holds says why the job is held.
func (j *Job) holds() job.Holds { return job.Holds{Slot: j.Plan.SlotFullName, Errno: j.Errno} }

// Learn reads the ad that came with the plan.
func (j *Job) Learn(context.Context) (job.Learned, error) {
	ad, err := classad.ParseAd(j.Plan.JobAd, classad.Old)
	return job.Learned{Ad: ad}, err
}

// Read says how the job runs here, where its access point is.
func (j *Job) Read(ad *classad.Ad, scratch, _ string) (*job.Job, error) {
	files := runner.InPlace
	if j.Plan.Submit.InPlace {
		return job.Read(ad, j.Plan.Submit.Iwd, scratch, files)
	}
	if transfer.Wanted(ad) || j.Submit != nil && transfer.IfNeeded(ad) {
		files = runner.Moved
	}
	iwd := j.Plan.Submit.Iwd
	if iwd == "" {
		// A job that was fetched may name no directory, or one below where its starter
		// works.
		named, _ := ad.EvalString("Iwd", nil)
		if iwd = job.Under(scratch, named); named == "" {
			ad.SetString("Iwd", iwd)
		}
	}
	return job.Read(ad, iwd, scratch, files)
}

// Bring copies the input.
func (j *Job) Bring(ctx context.Context, p *job.Place) (job.Brought, error) {
	j.place = p
	if err := j.openUserLog(); err != nil {
		return job.Brought{}, job.HeldFor(j.holds().Broken(fmt.Errorf("StarterUserLog: %w", err)))
	}
	got, hold := j.openChirp()
	if hold != nil {
		return got, job.HeldFor(hold)
	}
	if err := j.openCreds(&got); err != nil {
		return got, job.HeldFor(j.holds().Broken(err))
	}
	if !p.Job.Moves {
		return got, j.awaitStart(ctx) // nothing to bring
	}
	in, err := transfer.InputOf(p.Job.Ad, p.Job.Iwd)
	in.Submit = j.Submit
	j.Report(protocol.TransferInStart{})
	if err == nil && len(in.Items) > 0 {
		err = p.AsUser(func() error {
			r, err := in.CopyIn(ctx, p.Box.Root())
			got.Files, got.Bytes = r.Files, r.Bytes
			return err
		})
	}
	j.Report(protocol.TransferInDone{Files: got.Files, Bytes: got.Bytes})
	if err != nil {
		return got, job.HeldFor(j.holds().Input(err))
	}
	return got, j.awaitStart(ctx)
}

// awaitStart waits for the job's DeferralTime. One that has missed it is held.
func (j *Job) awaitStart(ctx context.Context) error {
	wait, missed := job.Deferral(j.place.Job.Ad, time.Now())
	switch {
	case missed:
		return job.HeldFor(&protocol.Hold{Code: int(reason.MissedDeferredTime), Reason: "Job missed deferred execution time"})
	case wait == 0:
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Changed is an update: the access point is told what the job set for the next
// one. Send tells the rest when the job has ended.
func (j *Job) Changed(s job.State) {
	if s.Moment == job.Runs || s.Moment == job.Suspended {
		j.tellDelayed()
	}
	j.logState(s)
}

// Send copies the output, and logs how the job ended.
func (j *Job) Send(ctx context.Context, e job.Ending) (sent job.Sent, err error) {
	defer func() {
		if err == nil {
			j.logEnd(e.State)
		}
	}()
	j.tellDelayed()
	if e.Wanted == job.Nothing {
		return sent, nil
	}
	p := j.place
	out, err := p.Job.Outputs(p.Box.Scratch(), e.Wanted)
	out.Progress, out.Submit, out.Guarded = j.Progress, j.Submit, j.Plan.Submit.Own
	j.Report(protocol.TransferOutStart{})
	if err == nil {
		err = p.AsUser(func() error {
			r, err := out.CopyOut(ctx, p.Box.Root(), e.Before)
			sent = job.Sent{Files: r.Files, Bytes: r.Bytes}
			return err
		})
	}
	j.Report(protocol.TransferOutDone{Files: sent.Files, Bytes: sent.Bytes})
	if err != nil {
		return sent, job.HeldFor(j.holds().Output(err))
	}
	return sent, nil
}

// Meet does nothing.
func (*Job) Meet(context.Context, *job.Place) error { return nil }

// Warned has a text written into the job's event log.
func (j *Job) Warned(text string) { j.Report(protocol.Event{Text: text}) }

// Measured is what is known of the job's processes.
func (j *Job) Measured(s job.State) *classad.Ad {
	ad := classad.NewAd()
	s.Publish(ad, job.Words[s.Moment])
	ad.SetInt("ResidentSetSize", s.Usage.RSSKiB)
	ad.SetInt("DiskUsage", s.Disk.KiB)
	return ad
}

// Close ends Chirp, and that tokens are renewed.
func (j *Job) Close(context.Context) {
	j.creds.Close()
	j.chirp.Close()
	if j.submit != nil {
		j.submit.Shut()
	}
}

// Nobody hears the rest: the reports are all there is.

// Starting logs that the job begins.
func (j *Job) Starting([]string) { j.logEvent(eventlog.Execute{Host: j.log.address}) }

// Executed does nothing.
func (*Job) Executed() {}

// Held logs it. The startd has it from the last report.
func (j *Job) Held(h protocol.Hold) { j.logError(h) }

// Rejoined is never called.
func (*Job) Rejoined() {}

// Lease is 0: nobody is waited for.
func (*Job) Lease() time.Duration { return 0 }

// Connected is true: the access point cannot be away.
func (*Job) Connected() bool { return true }

// Checkpoint is never called: nobody keeps the state of a job.
func (*Job) Checkpoint(context.Context, job.Ending) (job.Saved, error) { return job.Saved{}, nil }

// Tell does nothing.
func (*Job) Tell(context.Context, job.End) error { return nil }

// Total is the usage of the one run there is.
func (*Job) Total(u host.Usage) host.Usage { return u }
