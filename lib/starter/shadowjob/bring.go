// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Bring introduces the starter, brings the input and waits until the job may
// start.
func (j *Job) Bring(ctx context.Context, p *job.Place) (job.Brought, error) {
	j.place, j.mover.place = p, p
	if p.Job.Moves {
		j.Report(protocol.TransferInStart{})
	}
	moved, err := j.bring(ctx)
	if p.Job.Moves {
		j.Report(protocol.TransferInDone{Files: moved.files, Bytes: moved.bytes})
	}
	return job.Brought{Files: moved.files, Bytes: moved.bytes, Chirp: j.chirp.Config(), Creds: j.mover.creds, Piped: j.piped()}, notBrought(err)
}

func (j *Job) bring(ctx context.Context) (moved carried, err error) {
	of := j.place.Job
	if !j.met {
		if err := j.introduce(ctx); err != nil {
			return moved, err
		}
	}
	if err := j.openCreds(ctx); err != nil {
		return moved, err
	}
	if of.Moves {
		if moved, err = j.receive(ctx); err != nil {
			return moved, err
		}
	}
	if err := j.verify(ctx); err != nil {
		return moved, err
	}
	if err := j.mover.manifestIn(); err != nil {
		return moved, err
	}
	chirps := j.Plan.Settings.Chirp
	j.chirp, err = j.place.OpenChirp(chirp.Config{
		Remote: j.conv.caller, Allow: chirp.AllowFrom(of.Ad, chirps), Settings: chirps, Log: j.Log, Acknowledge: j.Acknowledge,
	})
	if err != nil {
		return moved, err
	}
	missed, err := j.conv.awaitStart(ctx, of.Ad)
	if err != nil {
		return moved, err
	}
	if missed {
		j.ending.missed = true
		return moved, job.HeldFor(&protocol.Hold{Code: int(reason.MissedDeferredTime), Reason: "The job missed its time to start"})
	}
	kind := shadow.StreamOut
	if of.KeepsStd() {
		kind = shadow.StreamAppend
	}
	opened, err := j.openStreams(ctx, kind)
	j.stream(opened)
	return moved, err
}

// Meet introduces the starter before the input is brought.
func (j *Job) Meet(ctx context.Context, p *job.Place) error {
	j.place, j.mover.place, j.met = p, p, true
	return notBrought(j.introduce(ctx))
}

// introduce makes the starter and the shadow known to each other.
func (j *Job) introduce(ctx context.Context) error {
	j.reached.await(ctx)
	info := starterInfo(j.Plan.Shadow, j.Plan.Settings.Pool, j.Plan.SlotFullName, j.reached.address(), j.place.Box.Scratch(), j.machine, j.place.Job.Ad)
	j.visits.introduced(info)
	full := info.Clone()
	full.SetValue("SlotAd", classad.AdValue(j.machine))
	if err := j.conv.caller.RegisterStarter(ctx, full); err != nil {
		return err
	}
	if err := j.share(ctx); err != nil {
		return err
	}
	return j.conv.caller.RegisterJob(ctx, provisioned(j.machine))
}

// share has the shadow share the session with which files are moved.
func (j *Job) share(ctx context.Context) error {
	session, err := j.conv.share(ctx)
	if err == nil && session != "" {
		j.mover.session(session)
	}
	return err
}

// receive brings the input, again if the shadow wants that after a failure.
func (j *Job) receive(ctx context.Context) (carried, error) {
	for n := 1; ; n++ {
		got, ready, err := j.mover.fetch(ctx)
		switch {
		case err == nil || !ready:
			return got, err
		case n < mostInput && j.conv.fetchAgain(ctx):
			continue
		}
		j.unready(ctx)
		return got, err
	}
}

// unready sends what there is of a job whose input did not come: the files for
// failures. They are worth nothing more than to be tried once.
func (j *Job) unready(ctx context.Context) {
	plan, err := j.mover.failedPlan()
	if err == nil {
		_, err = j.upload(ctx, plan, ofOutput)
	}
	if err != nil {
		j.conv.log.Info("the files for failures were not sent", "err", err)
	}
	ad := classad.NewAd()
	ad.SetBool("ExecuteDirWasEncrypted", false)
	j.conv.register(ad)
}

// upload sends files when all that was to be told or streamed before has reached
// the shadow.
func (j *Job) upload(ctx context.Context, plan transfer.SendPlan, which uploading) (transfer.Stats, error) {
	if err := j.conv.queue.settled(ctx); err != nil {
		return transfer.Stats{}, err
	}
	if err := j.streaming().settled(ctx); err != nil {
		return transfer.Stats{}, err
	}
	if !j.conv.caller.Connected() {
		return transfer.Stats{}, shadow.ErrLost
	}
	return j.mover.upload(ctx, plan, which)
}
