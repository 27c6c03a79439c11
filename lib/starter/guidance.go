// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

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
func (s *shadowJob) fetchAgain(ctx context.Context) bool {
	if !s.caller.AtLeast(24, 5, 0) {
		return false
	}
	request := classad.NewAd()
	request.SetString("RequestType", "JobEnvironment")
	for range mostGuidance {
		s.log.Info("Requesting guidance from the shadow about JobEnvironment...")
		n, ad, err := s.caller.Guidance(ctx, request)
		if err != nil {
			s.log.Info("Problem requesting guidance from AP; carrying on.", "err", err)
			return false
		}
		if n != 0 {
			s.log.Info(fmt.Sprintf("Problem requesting guidance from AP (%d); carrying on.", n))
			return false
		}
		command, ok := ad.EvalString("Command", nil)
		if !ok {
			s.log.Info("Received guidance but didn't understand it; carrying on.")
			return false
		}
		s.log.Info(fmt.Sprintf("Received the following guidance: '%.100s'", command))
		switch command {
		case "RetryTransfer":
			s.log.Info("Retrying transfer as guided...")
			return true
		case "RunDiagnostic":
			which, ok := ad.EvalString("Diagnostic", nil)
			if !ok {
				s.log.Info("Received guidance 'RunDiagnostic', but could not find a diagnostic to run; carrying on, instead.")
				return false
			}
			s.log.Info(fmt.Sprintf("... diagnostic '%.100s' not registered in param table: this starter runs none", which))
			result := classad.NewAd()
			result.SetString("EventType", "DiagnosticResult")
			result.SetString("Diagnostic", which)
			result.SetString("Result", "Error - Unregistered") // none can be run here
			if s.caller.Notify(ctx, result) != nil {
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
			s.log.Info("Aborting job as guided...")
			return false
		case "CarryOn":
			s.log.Info("Carrying on according to guidance...")
			return false
		default:
			s.log.Info(fmt.Sprintf("Guidance '%.100s' unknown, carrying on.", command))
			return false
		}
	}
	return false
}
