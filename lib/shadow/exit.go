// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// remoteError is the number of the event by which a starter complains.
const remoteError = 21

// HoldEvent is the event that puts the job on hold, or has it started again
// elsewhere: the shadow holds the job if code is from 1 to 999 and subcode is
// above -1000. The code 0 is no code, and the job is started again. After it
// the shadow ends the activation.
func HoldEvent(text string, code, subcode int) *classad.Ad {
	ad := classad.NewAd()
	ad.SetInt("EventTypeNumber", remoteError)
	ad.SetString("MyType", "RemoteErrorEvent")
	ad.SetString("Daemon", "starter")
	if text = OneLine(text); text != "" {
		ad.SetString("ErrorMsg", text)
	}
	if code != 0 {
		ad.SetInt("HoldReasonCode", int64(code))
		ad.SetInt("HoldReasonSubCode", int64(subcode))
	}
	return ad
}

// WarningEvent is the event that puts a text into the job's log, as the complaint of a
// starter that goes on: the shadow does nothing else about it.
func WarningEvent(text string) *classad.Ad {
	ad := HoldEvent(text, 0, 0)
	ad.SetBool("CriticalError", false)
	return ad
}

// OneLine returns a text as it may stand in an ad and in the job's log: a line
// break is a blank, and control characters are gone.
func OneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f:
			return -1
		}
		return r
	}, text))
}

// ExitReason says why a job is over for the starter.
type ExitReason int

// The reasons of the field's exit codes. Those that a starter gives to
// JobExit are Exited, Killed, CoreDumped, ShouldRequeue, NotStarted and
// MissedDeferralTime.
const (
	Exited                 ExitReason = 100 // by itself, with a code or by a signal
	Checkpointed           ExitReason = 101
	Killed                 ExitReason = 102 // hold or removal was asked for
	CoreDumped             ExitReason = 103
	NoMemory               ExitReason = 105
	ShouldRequeue          ExitReason = 107 // evicted
	NotStarted             ExitReason = 108
	BadStatus              ExitReason = 109
	ExecFailed             ExitReason = 110
	ShouldHold             ExitReason = 112
	ShouldRemove           ExitReason = 113
	MissedDeferralTime     ExitReason = 114
	ExitedAndClaimClosing  ExitReason = 115
	ReconnectFailed        ExitReason = 116
	CommonTransferRequeued ExitReason = 117
	CommonTransferHeld     ExitReason = 118
	MappingFailed          ExitReason = 119
)

// String returns the field's name of the reason.
func (r ExitReason) String() string {
	switch r {
	case Exited:
		return "JOB_EXITED"
	case Checkpointed:
		return "JOB_CKPTED"
	case Killed:
		return "JOB_KILLED"
	case CoreDumped:
		return "JOB_COREDUMPED"
	case NoMemory:
		return "JOB_NO_MEM"
	case ShouldRequeue:
		return "JOB_SHOULD_REQUEUE"
	case NotStarted:
		return "JOB_NOT_STARTED"
	case BadStatus:
		return "JOB_BAD_STATUS"
	case ExecFailed:
		return "JOB_EXEC_FAILED"
	case ShouldHold:
		return "JOB_SHOULD_HOLD"
	case ShouldRemove:
		return "JOB_SHOULD_REMOVE"
	case MissedDeferralTime:
		return "JOB_MISSED_DEFERRAL_TIME"
	case ExitedAndClaimClosing:
		return "JOB_EXITED_AND_CLAIM_CLOSING"
	case ReconnectFailed:
		return "JOB_RECONNECT_FAILED"
	case CommonTransferRequeued:
		return "JOB_CXFER_FAILED_REQUEUE"
	case CommonTransferHeld:
		return "JOB_CXFER_FAILED_HOLD"
	case MappingFailed:
		return "JOB_MAPPING_FAILED"
	}
	return "unknown reason"
}

// NoStatus is the wait status of a job that has none.
const NoStatus = -1

// WaitStatus is the wait status of a process that ended by a signal, or with a
// code if signal is 0.
func WaitStatus(code, signal int) int {
	if signal != 0 {
		return signal & 0x7f
	}
	return code & 0xff << 8
}
