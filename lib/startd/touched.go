// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/machine"
)

// keyboardSampler is a Sampler that knows, besides what it measures, when this
// machine's condor_kbdd last reported a key or the mouse.
type keyboardSampler struct {
	machine.Sampler
	clock clock.Clock
	last  atomic.Int64 // boot time in nanoseconds, 0 for never
}

// touch notes that a user is there now. It may be called from any goroutine.
func (w *keyboardSampler) touch() { w.last.Store(int64(max(w.clock.Now().Boot, 1))) }

// Sample implements machine.Sampler.
func (w *keyboardSampler) Sample(ctx context.Context) (machine.Sample, error) {
	s, err := w.Sampler.Sample(ctx)
	last := w.last.Load()
	if last == 0 {
		return s, err
	}
	idle := max(0, w.clock.Now().Boot-time.Duration(last))
	if !s.HasConsole || s.ConsoleIdle > idle {
		s.HasConsole, s.ConsoleIdle = true, idle
	}
	s.KeyboardIdle = min(s.KeyboardIdle, s.ConsoleIdle)
	return s, err
}
