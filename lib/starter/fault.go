// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Error numbers of Linux that speak of the machine and not of the job. The
// first are of a file system, the others of the means to start a process.
var (
	diskErrnos  = []int{errnoIO, errnoNoSpace, errnoReadOnly, errnoStale, errnoQuota}
	spawnErrnos = []int{errnoAgain, errnoNoMemory, errnoSystemFiles, errnoFiles}
)

const (
	errnoIO          = 5
	errnoAgain       = 11
	errnoNoMemory    = 12
	errnoSystemFiles = 23
	errnoFiles       = 24
	errnoNoSpace     = 28
	errnoReadOnly    = 30
	errnoStale       = 116
	errnoQuota       = 122
)

// blame notes a fault of the machine. The first one counts.
func (a *activation) blame(f protocol.Fault) {
	if a.record.Fault == nil && !a.life.ran {
		a.record.Fault = &f
	}
}

// blameFor is blame for an error which may be the machine's: its number tells.
func (a *activation) blameFor(err error) {
	n, _, ok := a.errno(err)
	switch {
	case !ok:
	case slices.Contains(diskErrnos, n):
		a.blame(protocol.Fault{Kind: protocol.FaultExecute, Reason: err.Error(), Doubtful: true})
	case slices.Contains(spawnErrnos, n):
		a.blame(protocol.Fault{Kind: protocol.FaultSpawn, Reason: err.Error(), Doubtful: true})
	}
}

// errno is Host.Errno, where there is one.
func (a *activation) errno(err error) (int, string, bool) {
	if a.host.Errno == nil {
		return 0, "", false
	}
	return a.host.Errno(err)
}

// noSandbox ends an activation whose sandbox could not be made or written. The
// job may be matched again elsewhere; only a full disk holds it, as it does when
// HTCondor's file transfer meets one.
func (a *activation) noSandbox(err error) []duty {
	a.blame(protocol.Fault{Kind: protocol.FaultExecute, Reason: err.Error()})
	n, text, _ := a.errno(err)
	if n != errnoNoSpace && n != errnoQuota {
		return a.unfit(err, int(reason.ScratchDirError))
	}
	h := a.holds.Input(&transfer.Failure{Path: a.plan.Execute, Writing: true, Err: err})
	if a.plan.Shadow != nil {
		// The shadow makes 13 of it, and words of its own. They are these.
		h = &protocol.Hold{Code: transfer.HoldDownload, Subcode: n, Reason: fmt.Sprintf(
			"Failed to transfer files: STARTER - |Error: writing to EXECUTE directory %s: (errno %d) %s", a.plan.Execute, n, text)}
	}
	return a.life.prepared(h)
}

// noProcess ends an activation whose program could not be started, though not
// because of the program.
func (a *activation) noProcess(err error) []duty {
	// A limit may fail for one slot alone, whose control group an earlier job has
	// not left: the second such failure in a row refuses jobs.
	a.blame(protocol.Fault{Kind: protocol.FaultSpawn, Reason: err.Error(), Doubtful: errors.Is(err, host.ErrLimit)})
	return a.unfit(err, int(reason.StarterError))
}

// errMachine marks an error of spawn that is the machine's fault.
var errMachine = errors.New("the machine has no means to start the program")

// unable ends an activation for such an error, or for one of the sandbox.
func (a *activation) unable(err error) []duty {
	if errors.Is(err, errMachine) || errors.Is(err, host.ErrLimit) {
		return a.noProcess(err)
	}
	return a.noSandbox(err)
}

// short says that err kept the program from starting because the machine lacks
// processes, memory or descriptors, or because a limit of the job could not be
// applied; nil if the program is to blame. HTCondor runs a job without the limit that
// its cgroup refuses, and says so in its log: then the job takes what was promised
// to others.
func (a *activation) short(err error) error {
	if errors.Is(err, host.ErrLimit) {
		return errs.E("starter.spawn", errs.Broken, a.plan.Activation, err)
	}
	if n, _, ok := a.errno(err); ok && slices.Contains(spawnErrnos, n) {
		return errs.E("starter.spawn", errs.Exhausted, a.plan.Activation, fmt.Errorf("%w: %w", errMachine, err))
	}
	return nil
}

// blameHold notes that a job is to be held because of what may be the machine's
// fault: its files could not be written to the sandbox.
func (a *activation) blameHold() {
	h := a.life.hold
	if a.plan != nil && a.plan.Volume != nil && h != nil && h.Subcode == errnoNoSpace {
		return // the job has filled what is its own
	}
	if h == nil || a.job == nil || !a.job.Moves || !slices.Contains(diskErrnos, h.Subcode) {
		return
	}
	switch reason.Code(h.Code) {
	case reason.FailedToCreateProcess, reason.UnableToOpenOutput, transfer.HoldDownload:
	case reason.TransferInputError:
		if a.plan.Shadow != nil {
			return // the access point could not read them
		}
	default:
		return
	}
	a.blame(protocol.Fault{Kind: protocol.FaultExecute, Reason: h.Reason, Doubtful: true})
}
