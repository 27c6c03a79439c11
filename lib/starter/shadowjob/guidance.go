// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

const (
	mostGuidance = 8                // questions about one failure
	mostInput    = 4                // times that input is fetched
	askAgain     = 20 * time.Second // where a shadow does not say how long to wait
	longestWait  = 5 * time.Minute
)

// fetchAgain asks the shadow what to do about input that did not come and
// reports whether to fetch it once more. Nothing else that it may command
// starts a job without its input.
func (v *conversation) fetchAgain(ctx context.Context) bool {
	if !v.caller.AtLeast(24, 5, 0) {
		return false
	}
	request := classad.NewAd()
	request.SetString("RequestType", "JobEnvironment")
	for range mostGuidance {
		v.log.Info("Requesting guidance from the shadow about JobEnvironment...")
		n, ad, err := v.caller.Guidance(ctx, request)
		if err != nil {
			v.log.Info("Problem requesting guidance from AP; carrying on.", "err", err)
			return false
		}
		if n != 0 {
			v.log.Info(fmt.Sprintf("Problem requesting guidance from AP (%d); carrying on.", n))
			return false
		}
		command, ok := ad.EvalString("Command", nil)
		if !ok {
			v.log.Info("Received guidance but didn't understand it; carrying on.")
			return false
		}
		v.log.Info(fmt.Sprintf("Received the following guidance: '%.100s'", command))
		switch command {
		case "RetryTransfer":
			v.log.Info("Retrying transfer as guided...")
			return true
		case "RunDiagnostic":
			which, ok := ad.EvalString("Diagnostic", nil)
			if !ok {
				v.log.Info("Received guidance 'RunDiagnostic', but could not find a diagnostic to run; carrying on, instead.")
				return false
			}
			v.log.Info(fmt.Sprintf("... diagnostic '%.100s' not registered in param table: this starter runs none", which))
			result := classad.NewAd()
			result.SetString("EventType", "DiagnosticResult")
			result.SetString("Diagnostic", which)
			result.SetString("Result", "Error - Unregistered") // none can be run here
			if v.caller.Notify(ctx, result) != nil {
				return false
			}
		case "RetryReqest": // as it is spelled
			wait := askAgain
			if n, ok := ad.EvalInt("RetryDelay", nil); ok && n >= 0 && n <= int64(longestWait/time.Second) {
				wait = time.Duration(n) * time.Second
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return false
			}
		case "Abort":
			v.log.Info("Aborting job as guided...")
			return false
		case "CarryOn":
			v.log.Info("Carrying on according to guidance...")
			return false
		default:
			v.log.Info(fmt.Sprintf("Guidance '%.100s' unknown, carrying on.", command))
			return false
		}
	}
	return false
}
