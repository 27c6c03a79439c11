// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/policy"
)

// ShutdownView is what can be seen of the end of the EP while it goes on.
type ShutdownView struct {
	Manner Manner
	// Jobs are those whose programs still run, Retiring how many of them may go
	// on for their retirement time before they are asked to end, and Sending the
	// jobs that have ended and whose output is on its way.
	Jobs, Retiring, Sending int
	// Left is how long the last of Jobs may take, longer than a year if it may
	// stay as long as it likes. A job that does not end then is killed.
	Left time.Duration
}

// Shutdown returns how far the end of the EP is; false if it goes on.
func (e *Engine) Shutdown() (ShutdownView, bool) {
	s := &e.shutdown
	if !s.begun {
		return ShutdownView{}, false
	}
	v := ShutdownView{Manner: s.manner}
	for _, sl := range e.slots.all {
		a := sl.act
		switch {
		case a == nil || a.Phase == claim.Ended:
			continue
		case a.limits.outputMoved != 0:
			v.Sending++
			continue
		}
		v.Jobs++
		if a.Phase >= claim.Vacating {
			v.Left = max(v.Left, a.limits.soft-e.now.Boot, a.limits.hard-e.now.Boot)
			continue
		}
		v.Retiring++
		look := e.policyView(sl) // the vacate time is the end of the retirement, where that is longer
		v.Left = max(v.Left, policy.RetirementLeft(look), policy.MaxVacate(look))
	}
	if s.until != 0 {
		v.Left = min(v.Left, s.until-e.now.Boot)
	}
	return v, true
}
