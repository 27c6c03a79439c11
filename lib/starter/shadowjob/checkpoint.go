// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Checkpoint sends the state of the job, which is started again if the startd still
// wants that. A checkpoint that failed in a way which may pass stops nothing: the
// next one may succeed.
func (j *Job) Checkpoint(ctx context.Context, e job.Ending) (job.Saved, error) {
	j.conv.executionExited()
	number := j.nextCheckpoint()
	ad := j.condition(e.State, words[job.Exited]).exit().ad()
	j.account.saved(e.Usage)
	ad.SetInt("CheckpointNumber", int64(number))
	ad.SetInt("JobLastCheckpointTime", e.Ended.Unix())
	ad.SetInt("NewlyCommittedTime", int64(e.Ended.Sub(e.Started).Seconds()))
	j.Report(protocol.TransferOutStart{})
	var got transfer.Stats
	plan, err := j.mover.checkpointPlan(number, e.Before)
	if err == nil {
		got, err = j.upload(ctx, plan, ofCheckpoint)
	}
	sent := job.Saved{Sent: job.Sent{Files: got.Files, Bytes: got.Total()}}
	defer func() { j.Report(protocol.TransferOutDone{Files: got.Files, Bytes: got.Total()}) }()
	if neverSaved(err) {
		j.conv.log.Warn("the checkpoint was not saved, and the job is held", "checkpoint", number, "err", err)
		return sent, job.HeldFor(&protocol.Hold{Code: int(reason.FailedToCheckpoint), Subcode: -1, Reason: "Starter failed to upload checkpoint"})
	}
	sent.Problem = errors.Join(err, j.tellCheckpoint(ctx, number, ad, err))
	if !j.wantedAgain(ctx) {
		sent.Leave = &job.Eviction{
			Asked: job.AskedByStarter, Code: int(reason.SuccessfulCheckpoint),
			Reason: "Rescheduling self-checkpoint job after checkpoint upload because reactivating the claim would have failed.",
		}
		return sent, nil
	}
	err = j.streamAgain(ctx)
	var stream *streamError
	switch {
	case err == nil:
	case errors.Is(err, shadow.ErrLost):
		return sent, job.ErrAway
	case errors.As(err, &stream):
		return sent, job.HeldFor(stream.hold())
	default:
		sent.Leave = &job.Eviction{Asked: job.AskedByStarter, Code: int(reason.StarterError), Reason: err.Error()}
	}
	sent.Piped = j.piped()
	return sent, nil
}

// streamAgain opens the streams of the run that follows: those of the run before
// have ended with it.
func (j *Job) streamAgain(ctx context.Context) error {
	before := j.streaming()
	var opened *streams
	if j.place.Job.Streams() {
		if err := before.settled(ctx); err != nil {
			return err
		}
		var err error
		if opened, err = j.openStreams(ctx, shadow.StreamAppend); err != nil {
			return err
		}
	}
	j.stream(opened)
	before.close()
	return nil
}

// neverSaved reports whether another attempt to save the state would fail as this
// one did. Which codes a failure has matters only for output.
func neverSaved(err error) bool {
	var f *transfer.WireFailure
	return errors.As(err, &f) && !f.Retry
}

// nextCheckpoint numbers an attempt to save the state: those that fail count as
// well, for they may leave files at their destination.
func (j *Job) nextCheckpoint() int {
	number, ok := j.checkpointNo, j.checkpointNo > 0
	if n, has := j.place.Job.Ad.EvalInt("CheckpointNumber", nil); !ok && has {
		number = int(n) + 1
	}
	j.checkpointNo = number + 1
	return number
}

// tellCheckpoint tells whether a checkpoint was saved; failed is why it was not. The
// shadow clears away one that was not, and after one that was those that are too old.
func (j *Job) tellCheckpoint(ctx context.Context, number int, ad *classad.Ad, failed error) error {
	event := classad.NewAd()
	event.SetInt("CheckpointNumber", int64(number))
	if failed != nil {
		j.conv.log.Warn("the checkpoint was not saved; the next one may be", "checkpoint", number)
		event.SetString("EventType", "FailedCheckpoint")
		return j.conv.caller.Notify(ctx, event)
	}
	event.SetString("EventType", "SuccessfulCheckpoint")
	return errors.Join(j.conv.caller.RegisterJob(ctx, ad), j.conv.caller.Notify(ctx, event))
}

// verify compares a checkpoint that came back from a URL with its manifest. The
// shadow is told of one that is not what was stored, by its number: it clears it
// away, and the job goes on elsewhere from the one before.
func (j *Job) verify(ctx context.Context) error {
	p := j.place
	if !p.Job.Moves || p.Job.Text("CheckpointDestination") == "" {
		return nil
	}
	err := p.AsUser(func() error { return transfer.VerifyCheckpoint(ctx, p.Box.Root()) })
	var bad *transfer.CheckpointError
	if j.ending.corrupt = errors.As(err, &bad); !j.ending.corrupt {
		return err
	}
	j.conv.log.Warn("the job does not start from a checkpoint that is not what was stored", "checkpoint", bad.Number, "err", err)
	// The shadow ends the activation when it hears of this, and counts what it sent
	// only if it has seen the end of that.
	j.mover.input.await(ctx)
	j.mover.input = nil
	j.mover.awaitChild(ctx, inward)
	if bad.Number >= 0 {
		event := classad.NewAd()
		event.SetString("EventType", "InvalidCheckpointDownload")
		event.SetInt("CheckpointNumber", int64(bad.Number))
		if nerr := j.conv.caller.Notify(ctx, event); nerr != nil {
			return nerr
		}
	}
	return err
}

// wantedAgain asks the startd whether the job may go on
// (CHECK_REACTIVATE_AFTER_CHECKPOINT, true unless it is set). A startd that does
// not answer does not mind.
func (j *Job) wantedAgain(ctx context.Context) bool {
	plan := j.Plan.Shadow
	if !j.Plan.Settings.Pool.Reactivate {
		return true
	}
	address, err := cedar.ParseSinful(plan.Address)
	if err != nil {
		return true
	}
	id, err := claim.ParseID(plan.Claim.Reveal())
	if err != nil {
		return true
	}
	if _, known := j.conv.sessions.Get(id.Public); !known {
		if _, err := j.conv.sessions.AddExecuteSide(id, plan.Address); err != nil {
			return true
		}
	}
	conn, _, err := j.conv.client.Command(ctx, address, command.ReactivateClaimCheck, security.Options{Session: id.Public})
	if err != nil {
		j.conv.log.Warn("the startd was not asked whether the job may go on", "err", err)
		return true
	}
	defer func() { _ = conn.Close() }()
	defer conn.Bind(ctx)()
	conn.PutSecret(plan.Claim)
	if err := conn.EndMessage(); err != nil {
		return true
	}
	ad, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		return true
	}
	start, said := ad.EvalBool("Start", nil)
	return start || !said
}
