// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"slices"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// mostTries is how often output is sent again after a failure that may pass.
const mostTries = 4

// Connected reports whether a shadow is there.
func (j *Job) Connected() bool { return j.conv.caller.Connected() }

// Send sends the output.
func (j *Job) Send(ctx context.Context, e job.Ending) (job.Sent, error) {
	if e.Wanted == job.Nothing {
		return job.Sent{}, nil
	}
	j.Report(protocol.TransferOutStart{})
	plan, err := j.mover.outputPlan(e)
	var got transfer.Stats
	if err == nil {
		got, err = j.upload(ctx, plan, ofOutput)
	}
	sent := job.Sent{Files: got.Files, Bytes: got.Total()}
	j.Report(protocol.TransferOutDone{Files: sent.Files, Bytes: sent.Bytes})
	var f *transfer.WireFailure
	var stream *streamError
	switch {
	case err == nil:
		j.mu.Lock()
		defer j.mu.Unlock()
		j.sent, j.spooled = true, slices.DeleteFunc(got.Spooled, func(name string) bool {
			return name == sandbox.StdoutFile || name == sandbox.StderrFile
		})
		return sent, nil
	case errors.Is(err, context.Canceled):
		return sent, err
	case errors.Is(err, shadow.ErrLost):
		return sent, job.ErrAway
	case errors.As(err, &stream):
		return sent, job.HeldFor(stream.hold())
	case errors.As(err, &f) && f.Retry && j.ending.tries < mostTries:
		j.ending.tries++
		j.conv.log.Warn("the output did not reach the shadow; it is sent again when the shadow asks for the job", "err", err)
		j.conv.caller.Break(err)
		return sent, job.ErrAway
	}
	j.ending.failed = true
	return sent, notSent(err)
}

// Tell tells how it went: that the job is to be held, or that it is over. It is a
// *job.Held if it was found only now that the job is to be held.
func (j *Job) Tell(ctx context.Context, e job.End) error {
	if j.conv.caller == nil {
		return nil
	}
	hold, word := e.Hold, ""
	if e.Ran {
		word = words[job.Exited]
	}
	how := j.condition(e.State, word)
	how.delayed = j.chirp.Delayed()
	if j.ending.failed {
		how = how.exit()
	}
	ad := how.ad()
	if j.ending.missed {
		hold = nil
	}
	if v := e.Evicted; hold == nil && v != nil && v.Asked == job.AskedByStarter && !e.Ran {
		// It could not be set up here. A shadow that is told of an exit before of
		// a beginning takes it for both: event 001, and one more of NumJobStarts.
		hold = &protocol.Hold{Code: v.Code, Subcode: v.Subcode, Reason: v.Reason}
		if j.ending.corrupt {
			hold.Code = 0 // HTCondor sends none, which the shadow takes for StarterError
		}
	}
	urgent := e.Evicted != nil && e.Evicted.Hard
	if urgent {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.Farewell())
		defer cancel()
	}
	// Also a call that cannot be sent, since nobody reads it, ends then.
	defer context.AfterFunc(ctx, func() { j.conv.caller.Break(context.Cause(ctx)) })()
	err := j.conv.queue.settled(ctx)
	lost := false // what the job wrote
	if err == nil && e.Ran && !urgent {
		err = j.streaming().settled(ctx)
		if stream := new(streamError); errors.As(err, &stream) {
			if err = nil; hold == nil && e.Evicted == nil {
				hold, lost = stream.hold(), true
			}
		}
	}
	switch {
	case err != nil:
	case hold != nil:
		err = j.tellHold(ctx, e, *hold, ad)
	default:
		err = j.conv.caller.JobExit(ctx, waitStatus(e.Status), exitReason(e, j.ending), ad)
	}
	switch {
	case errors.Is(err, shadow.ErrLost):
		return job.ErrAway
	case err == nil && lost:
		return job.HeldFor(hold)
	}
	return err
}

// tellHold tells that the job is to be held.
func (j *Job) tellHold(ctx context.Context, e job.End, hold protocol.Hold, ad *classad.Ad) error {
	if !e.Ran {
		j.mover.inputOver(ctx) // else what the job received is missing in the event log
	}
	if j.ending.failed && e.Ran {
		if err := j.conv.caller.JobTermination(ctx, ad); err != nil {
			return err
		}
	}
	return j.conv.sayHold(ctx, hold)
}

// Close ends the conversation, when all is told or ctx ends, and what was opened for
// the job.
func (j *Job) Close(ctx context.Context) {
	j.mover.input.cut()
	j.conv.close(ctx)
	// Those who wait for the shadow see that it is gone.
	j.creds.Close()
	j.streaming().close()
	j.chirp.Close()
	j.reached.close()
}
