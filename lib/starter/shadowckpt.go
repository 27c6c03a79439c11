// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"io/fs"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// promised is the ending that attributes with a prefix name: ...ExitCode, or
// ...ExitSignal where ...ExitBySignal is true. said tells whether any does.
func promised(ad *classad.Ad, prefix string) (status host.ExitStatus, said bool) {
	code, haveCode := ad.EvalInt(prefix+"ExitCode", nil)
	signal, haveSignal := ad.EvalInt(prefix+"ExitSignal", nil)
	if by, _ := ad.EvalBool(prefix+"ExitBySignal", nil); by {
		return host.ExitStatus{Signal: int(signal)}, haveCode || haveSignal
	}
	return host.ExitStatus{Exited: true, Code: int(code)}, haveCode || haveSignal
}

// as reports whether two processes ended in the same way.
func as(a, b host.ExitStatus) bool {
	return a.Exited == b.Exited && a.Code == b.Code && a.Signal == b.Signal
}

// checkpoints reports whether the job exits to have its state saved.
func (j *job) checkpoints() bool {
	yes, _ := j.ad.EvalBool("WantFTOnCheckpoint", nil)
	return yes
}

// saving reports whether the job has exited to have its state saved and to be
// started again.
func (s *shadowJob) saving(a *activation) bool {
	if a.life.evicted != nil || a.life.hold != nil || !a.job.checkpoints() || !a.job.transfer {
		return false
	}
	want, _ := promised(a.job.ad, "SuccessCheckpoint")
	return as(a.record.Status, want)
}

// checkpoint sends the state of the job, and starts it again if the startd
// still wants that. A checkpoint that failed in a way which may pass stops
// nothing: the next one may succeed.
func (s *shadowJob) checkpoint(a *activation) {
	s.executionExited()
	number := s.nextCheckpoint()
	ad := s.condition(a, "Exited").exit().ad()
	s.spent = s.spent.plus(a.record.Usage)
	a.record.Usage = host.Usage{}
	ad.SetInt("CheckpointNumber", int64(number))
	ad.SetInt("JobLastCheckpointTime", a.exitAt.Unix())
	ad.SetInt("NewlyCommittedTime", int64(a.exitAt.Sub(a.record.Started).Seconds()))
	plan, err := s.checkpointPlan(number)
	a.say(protocol.TransferOutStart{})
	a.beside(func(ctx context.Context) func() []duty {
		var sent transfer.Stats
		if err == nil {
			sent, err = s.upload(ctx, plan, ofCheckpoint)
		}
		lost, wanted := neverSaved(err), true
		if !lost {
			err = errors.Join(err, s.tellCheckpoint(ctx, number, ad, err == nil))
			wanted = s.wantedAgain(ctx)
		}
		// The streams of the run before have ended with it.
		var opened *streams
		var broken error
		if !lost && wanted && a.job.streams() {
			if broken = s.streams.settled(ctx); broken == nil {
				opened, broken = s.openStreams(ctx, shadow.StreamAppend)
			}
		}
		return func() []duty {
			a.record.BytesOut += sent.Total()
			a.say(protocol.TransferOutDone{Files: sent.Files, Bytes: sent.Total()})
			if lost {
				s.log.Warn("the checkpoint was not saved, and the job is held", "checkpoint", number, "err", err)
				return a.life.finished(&protocol.Hold{Code: int(reason.FailedToCheckpoint), Subcode: -1, Reason: "Starter failed to upload checkpoint"})
			}
			a.problem(err)
			if !wanted {
				a.life.evicted = &eviction{
					asked: "starter", code: int(reason.SuccessfulCheckpoint),
					reason: "Rescheduling self-checkpoint job after checkpoint upload because reactivating the claim would have failed.",
				}
				return a.life.finished(nil)
			}
			return s.again(opened, broken)
		}
	})
}

// neverSaved reports whether another attempt to save the state would fail as this
// one did. Which codes a failure has matters only for output.
func neverSaved(err error) bool {
	var f *transfer.WireFailure
	return errors.As(err, &f) && !f.Retry
}

// nextCheckpoint numbers an attempt to save the state: those that fail count as
// well, for they may leave files at their destination.
func (s *shadowJob) nextCheckpoint() int {
	number, ok := s.checkpointNo, s.checkpointNo > 0
	if n, has := s.a.job.ad.EvalInt("CheckpointNumber", nil); !ok && has {
		number = int(n) + 1
	}
	s.checkpointNo = number + 1
	return number
}

// checkpointPlan says what is saved: what transfer_checkpoint_files lists, else
// transfer_output_files, else what is new or changed.
func (s *shadowJob) checkpointPlan(number int) (transfer.SendPlan, error) {
	ending := s.ending()
	ending.Occasion, ending.Number = transfer.AtCheckpoint, number
	if err := s.findChanged(&ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return transfer.SendPlan{}, err
	}
	return transfer.PlanOutput(s.a.job.ad, ending)
}

// tellCheckpoint tells whether a checkpoint was saved. The shadow clears away one
// that was not, and after one that was those that are too old.
func (s *shadowJob) tellCheckpoint(ctx context.Context, number int, ad *classad.Ad, saved bool) error {
	event := classad.NewAd()
	event.SetInt("CheckpointNumber", int64(number))
	if !saved {
		s.log.Warn("the checkpoint was not saved; the next one may be", "checkpoint", number)
		event.SetString("EventType", "FailedCheckpoint")
		return s.caller.Notify(ctx, event)
	}
	event.SetString("EventType", "SuccessfulCheckpoint")
	return errors.Join(s.caller.RegisterJob(ctx, ad), s.caller.Notify(ctx, event))
}

// again starts the job once more with the streams opened, unless broken is why
// they could not be.
func (s *shadowJob) again(opened *streams, broken error) []duty {
	a := s.a
	var stream *streamError
	switch {
	case broken == nil:
		s.streams.close()
		s.streams = opened
		return a.life.again()
	case errors.Is(broken, shadow.ErrLost):
		return a.life.unheard(dutyOutput, connection(s.caller.Connected()))
	case errors.As(broken, &stream):
		return a.life.finished(stream.hold())
	case a.life.evicted == nil:
		a.life.evicted = &eviction{asked: "starter", code: int(reason.StarterError), reason: broken.Error()}
	}
	return a.life.finished(nil)
}

// verify compares a checkpoint that came back from a URL with its manifest. The
// shadow is told of one that is not what was stored, by its number: it clears it
// away, and the job goes on elsewhere from the one before.
func (s *shadowJob) verify(ctx context.Context) error {
	a := s.a
	if !a.job.transfer || a.job.text("CheckpointDestination") == "" {
		return nil
	}
	err := a.asUser(func() error { return transfer.VerifyCheckpoint(ctx, a.box.Root()) })
	var bad *transfer.CheckpointError
	if s.corrupt = errors.As(err, &bad); !s.corrupt {
		return err
	}
	s.log.Warn("the job does not start from a checkpoint that is not what was stored", "checkpoint", bad.Number, "err", err)
	// The shadow ends the activation when it hears of this, and counts what it sent
	// only if it has seen the end of that.
	s.input.await(ctx)
	s.input = nil
	s.reaped(ctx, inward)
	if bad.Number >= 0 {
		event := classad.NewAd()
		event.SetString("EventType", "InvalidCheckpointDownload")
		event.SetInt("CheckpointNumber", int64(bad.Number))
		if nerr := s.caller.Notify(ctx, event); nerr != nil {
			return nerr
		}
	}
	return err
}

// wantedAgain asks the startd whether the job may go on
// (CHECK_REACTIVATE_AFTER_CHECKPOINT, true unless it is set). A startd that does
// not answer does not mind.
func (s *shadowJob) wantedAgain(ctx context.Context) bool {
	if !s.set.Reactivate {
		return true
	}
	address, err := cedar.ParseSinful(s.plan.Address)
	if err != nil {
		return true
	}
	id, err := claim.ParseID(s.plan.Claim.Reveal())
	if err != nil {
		return true
	}
	if _, known := s.sessions.Get(id.Public); !known {
		if _, err := s.sessions.AddExecuteSide(id, s.plan.Address); err != nil {
			return true
		}
	}
	conn, _, err := s.client.Command(ctx, address, command.ReactivateClaimCheck, security.Options{Session: id.Public})
	if err != nil {
		s.log.Warn("the startd was not asked whether the job may go on", "err", err)
		return true
	}
	defer func() { _ = conn.Close() }()
	defer conn.Bind(ctx)()
	conn.PutSecret(s.plan.Claim)
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

func (s *shadowJob) total(u host.Usage) host.Usage { return s.spent.and(u) }

// usedBefore adds what earlier runs of the job have used.
type usedBefore struct{ host.Usage }

func (u usedBefore) plus(v host.Usage) usedBefore {
	u.UserCPU += v.UserCPU
	u.SysCPU += v.SysCPU
	u.ImageSizeKiB = max(u.ImageSizeKiB, v.ImageSizeKiB)
	u.PeakRSSKiB = max(u.PeakRSSKiB, v.PeakRSSKiB)
	u.BlockReads += v.BlockReads
	u.BlockWrites += v.BlockWrites
	u.BlockReadBytes += v.BlockReadBytes
	u.BlockWriteBytes += v.BlockWriteBytes
	return u
}

// and is what the job has used together with its present run.
func (u usedBefore) and(v host.Usage) host.Usage {
	sum := u.plus(v).Usage
	sum.RSSKiB, sum.Procs, sum.OOMKills = v.RSSKiB, v.Procs, v.OOMKills
	return sum
}
