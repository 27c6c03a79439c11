// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/machine"
)

// measured gives the same reading again and again.
type measured struct{ s machine.Sample }

func (m measured) Sample(context.Context) (machine.Sample, error) { return m.s, nil }
func (measured) Close() error                                     { return nil }

func TestTouched(t *testing.T) {
	t.Parallel()
	now := clock.NewFake(time.Unix(1_800_000_000, 0))
	now.Advance(time.Hour)
	w := &keyboardSampler{Sampler: measured{machine.Sample{KeyboardIdle: 10 * time.Minute}}, clock: now}
	look := func(keyboard, console time.Duration, has bool) {
		t.Helper()
		s, err := w.Sample(t.Context())
		if err != nil || s.KeyboardIdle != keyboard || s.ConsoleIdle != console || s.HasConsole != has {
			t.Errorf("keyboard %v, console %v (%v), %v; want %v, %v (%v)", s.KeyboardIdle, s.ConsoleIdle, s.HasConsole, err, keyboard, console, has)
		}
	}
	look(10*time.Minute, 0, false)
	w.touch()
	look(0, 0, true)
	now.Advance(time.Minute)
	look(time.Minute, time.Minute, true)
	now.Advance(time.Hour)
	look(10*time.Minute, time.Hour+time.Minute, true)
	// The console itself was used later.
	w.Sampler = measured{machine.Sample{KeyboardIdle: time.Second, ConsoleIdle: time.Minute, HasConsole: true}}
	look(time.Second, time.Minute, true)
}
