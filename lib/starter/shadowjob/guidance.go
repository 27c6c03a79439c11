// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// A starter asks its shadow for guidance (call 305 of the shadow, since 24.5) at
// moments where the access point may know more than the job's ad says. The request
// is an ad: RequestType names the moment, ContextAd says what has become of the
// command before. The answer is a number (0: here is a command; -1: unknown
// request; -2: malformed request) and an ad with Command and what belongs to it.
//
// "JobSetup" is asked before input is fetched; see setup.go. "JobEnvironment" is
// asked when input has come or has not. Of input that did not come a shadow says
// RunDiagnostic with Diagnostic = "send_ep_logs" and then Abort, or RetryTransfer;
// in HTCondor's own tests it says anything. These commands exist:
//
//	CarryOn        do what would be done without a shadow: leave
//	Abort          leave, without the job having run
//	StartJob       start the job with the files that there are
//	RetryTransfer  fetch the input again
//	RetryReqest    (so it is spelled) ask again after RetryDelay seconds, 20 if it says none
//	RunDiagnostic  run the Diagnostic of that name, tell its result with
//	               event_notification (EventType = "DiagnosticResult"), ask again
//	DoJobSetup     ask about JobSetup with JobEnvironmentReady = true, then ask again
//
// What a shadow says is bounded: at most mostGuidance commands that take no time
// about one failure, and no wait is longer than longestWait.
//
// HTCondor's starter also asks about JobEnvironment when the input did come. A shadow
// answers StartJob then, or DoJobSetup if it was to bring common files meanwhile,
// which only those of 25.0 and 25.1 were. This starter spares every job that question.

const (
	mostGuidance = 8                // questions about one failure
	mostInput    = 4                // times that input is fetched
	askAgain     = 20 * time.Second // where a shadow does not say how long to wait
	longestWait  = 5 * time.Minute
)

// What is asked about.
const (
	aboutSetup       = "JobSetup"
	aboutEnvironment = "JobEnvironment"
)

// verdict is what becomes of a job whose input did not come.
type verdict uint8

const (
	leave  verdict = iota
	again          // fetch it once more
	begins         // start the job as it is
)

// guided reports whether the shadow can be asked for guidance.
func (j *Job) guided() bool {
	return !j.Plan.Settings.Pool.Guidance.Silent && j.conv.caller.AtLeast(24, 5, 0)
}

// guidance asks what to do. The command is "" if there is none.
func (v *conversation) guidance(ctx context.Context, about string, request *classad.Ad) (command string, ad *classad.Ad) {
	request.SetString("RequestType", about)
	v.log.Info("Requesting guidance from the shadow about " + about + "...")
	n, ad, err := v.caller.Guidance(ctx, request)
	if err != nil {
		v.log.Info("Problem requesting guidance from AP; carrying on.", "err", err)
		return "", nil
	}
	if n != 0 {
		v.log.Info(fmt.Sprintf("Problem requesting guidance from AP (%d); carrying on.", n))
		return "", nil
	}
	command, ok := ad.EvalString("Command", nil)
	if !ok {
		v.log.Info("Received guidance but didn't understand it; carrying on.")
		return "", nil
	}
	v.log.Info(fmt.Sprintf("Received the following guidance: '%.100s'", command))
	return command, ad
}

// pauses waits as long as a RetryReqest says, and reports whether ctx lasts.
func pauses(ctx context.Context, ad *classad.Ad) bool {
	wait := askAgain
	if n, ok := ad.EvalInt("RetryDelay", nil); ok && n >= 0 && n <= int64(longestWait/time.Second) {
		wait = time.Duration(n) * time.Second
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// guideInput asks the shadow what to do about input that did not come. ready says
// that the shadow could begin another transfer: one that is asked for it before
// gives itself up.
func (j *Job) guideInput(ctx context.Context, ready bool) verdict {
	v := j.conv
	if !j.guided() {
		return leave
	}
	for range mostGuidance {
		command, ad := v.guidance(ctx, aboutEnvironment, classad.NewAd())
		switch command {
		case "":
			return leave
		case "StartJob":
			v.log.Info("Starting job as guided...")
			return begins
		case "RetryTransfer":
			if !ready {
				v.log.Info("The input cannot be fetched again; carrying on.")
				return leave
			}
			v.log.Info("Retrying transfer as guided...")
			return again
		case "RunDiagnostic":
			which, ok := ad.EvalString("Diagnostic", nil)
			if !ok {
				v.log.Info("Received guidance 'RunDiagnostic', but could not find a diagnostic to run; carrying on, instead.")
				return leave
			}
			v.log.Info(fmt.Sprintf("Running diagnostic '%.100s' as guided...", which))
			if v.caller.Notify(ctx, j.diagnose(ctx, which)) != nil {
				return leave
			}
		case "RetryReqest":
			if !pauses(ctx, ad) {
				return leave
			}
		case "Abort":
			v.log.Info("Aborting job as guided...")
			return leave
		case "CarryOn":
			v.log.Info("Carrying on according to guidance...")
			return leave
		default:
			v.log.Info(fmt.Sprintf("Guidance '%.100s' unknown, carrying on.", command))
			return leave
		}
	}
	return leave
}
