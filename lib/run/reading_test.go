// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/machine"
)

// owned is a machine that its user begins to use at an instant.
type owned struct {
	clock clock.Clock
	back  clock.Instant
	takes time.Duration // of a reading
	read  atomic.Int32
}

func (o *owned) Sample(context.Context) (machine.Sample, error) {
	o.read.Add(1)
	taken := time.NewTimer(o.takes)
	<-taken.C
	s := machine.Sample{At: o.clock.Now(), KeyboardIdle: time.Hour, Fresh: machine.AllReadings}
	if s.At.Boot >= o.back.Boot {
		s.LoadAvg = 9
	}
	return s, nil
}

func (*owned) Close() error { return nil }

// bubble is the clock of a synctest bubble.
type bubble struct{ began time.Time }

func (b bubble) Now() clock.Instant {
	now := time.Now()
	return clock.Instant{Wall: now, Boot: time.Hour + now.Sub(b.began)}
}

// The policy is asked about the machine as it is at that look, not as it was at the
// look before: a user who comes back waits for one interval at most. A reading that
// takes long holds nothing up.
func TestPolicyIsAskedOfTheLatestReading(t *testing.T) {
	t.Parallel()
	const look = 20 * time.Second
	for _, tt := range []struct {
		name   string
		takes  time.Duration
		within time.Duration
	}{
		{"a machine that answers", 30 * time.Millisecond, look + time.Second},
		{"a reading that takes its time", 4 * time.Second, 2*look + time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				at := bubble{time.Now()}
				m := &owned{clock: at, takes: tt.takes, back: at.Now().Add(95 * time.Second)}
				var moved atomic.Int64
				l := newLaboratory(t, "UPDATE_INTERVAL = 20\nIS_OWNER = TotalLoadAvg > 5\n", nil, func(o *Options) {
					o.Host.Clock, o.Host.Sampler = at, m
					o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
				})
				n := l.node
				l.node = nil // closed here
				orders := make(chan ep.Manner, 1)
				n.o.Serve = &Serve{Orders: orders}
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer n.close()
					_, _ = n.loop(t.Context())
				}()
				for range 200 {
					time.Sleep(time.Second)
					n.mail.post(func(now clock.Instant) {
						if v := n.eng.Views(); moved.Load() == 0 {
							for s := range v {
								if s.Pair.State.String() == "Owner" && now.Boot > m.back.Boot {
									moved.Store(int64(now.Sub(m.back)))
								}
							}
						}
					})
				}
				orders <- ep.Fast
				<-done
				if took := time.Duration(moved.Load()); took == 0 || took > tt.within {
					t.Errorf("the slot is its owner's after %v, want %v at most; %d readings", took, tt.within, m.read.Load())
				}
			})
		})
	}
}
