// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
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
func (s *afar) fetchAgain(ctx context.Context) bool {
	if !s.caller.AtLeast(24, 5, 0) {
		return false
	}
	request := classad.NewAd()
	request.SetString("RequestType", "JobEnvironment")
	for range mostGuidance {
		n, ad, err := s.caller.Guidance(ctx, request)
		if err != nil || n != 0 {
			return false
		}
		command, _ := ad.EvalString("Command", nil)
		s.log.Info("the shadow was asked about the failed transfer", "command", command)
		switch command {
		case "RetryTransfer":
			return true
		case "RunDiagnostic":
			which, _ := ad.EvalString("Diagnostic", nil)
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
		default: // Abort, CarryOn: it has failed
			return false
		}
	}
	return false
}
