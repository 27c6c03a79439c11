// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"

	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// holdOf is the hold that a failed transfer asks for, nil if it asks for none.
func holdOf(err error) *protocol.Hold {
	var f *transfer.WireFailure
	if !errors.As(err, &f) || f.Retry || !reason.Holds(reason.Code(f.HoldCode), f.HoldSubcode) {
		return nil
	}
	return &protocol.Hold{Code: f.HoldCode, Subcode: f.HoldSubcode, Reason: f.Reason}
}

// requeue is the event by which a job starts again elsewhere after a transfer
// that failed. A subcode that says so itself stays, as that of a plugin which is
// not there (-1001); any other would have the job held.
func requeue(f *transfer.WireFailure) *protocol.Hold {
	h := &protocol.Hold{Code: f.HoldCode, Subcode: f.HoldSubcode, Reason: f.Reason}
	if h.Code == 0 {
		h.Code = int(reason.TransferOutputError)
	}
	if reason.Holds(reason.Code(h.Code), h.Subcode) {
		h.Subcode = -int(reason.VacateBase)
	}
	return h
}

// unfit is a job that cannot be set up here, and leaves with that code.
func unfit(err error, code reason.Code) error {
	return &job.Unfit{Err: err, Eviction: job.Eviction{Reason: err.Error(), Code: int(code)}}
}

// gone is unfit where the shadow is lost for good.
func gone(err error, code reason.Code) error {
	return &job.Unfit{Err: err, Eviction: job.Eviction{Reason: err.Error(), Code: int(code)}, Lost: true}
}

// notBrought says what becomes of a job whose input did not come, or which cannot
// start for another cause.
func notBrought(err error) error {
	var held *job.Held
	var stream *streamError
	var f *transfer.WireFailure
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &held):
		return err
	case errors.Is(err, shadow.ErrLost):
		return gone(err, reason.ReconnectFailed)
	case errors.As(err, &stream):
		return job.HeldFor(stream.hold())
	}
	if h := holdOf(err); h != nil {
		h.Reason = "Failed to transfer files: " + h.Reason
		return job.HeldFor(h)
	}
	if errors.As(err, &f) && !f.Retry && f.HoldCode != 0 { // its subcode says: not here
		h := requeue(f)
		return &job.Unfit{Err: err, Eviction: job.Eviction{Reason: "Failed to transfer files: " + h.Reason, Code: h.Code, Subcode: h.Subcode}}
	}
	return unfit(err, reason.StarterError)
}

// notSent says what becomes of a job whose output was not sent, for good.
func notSent(err error) error {
	h := holdOf(err)
	if h == nil {
		h = &protocol.Hold{Code: int(reason.TransferOutputError), Reason: err.Error()}
		if f := new(transfer.WireFailure); errors.As(err, &f) {
			h = requeue(f)
		}
	}
	return job.HeldFor(h)
}
