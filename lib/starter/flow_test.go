// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// slowly has the shadow of p take output only when gate is closed. It returns a
// channel that is closed when the shadow has begun.
func (p *pool) slowly(gate chan struct{}) (begun chan struct{}) {
	begun = make(chan struct{})
	first := begun
	f := shadowtest.Files{Rename: func(name string) string {
		if first != nil {
			close(first)
			first = nil
		}
		<-gate
		return name
	}}
	if err := p.files.Add(p.shadow, f); err != nil {
		p.Fatal(err)
	}
	return begun
}

// A job whose program has ended by itself is not evicted by an order to leave at
// once: its output arrives, and the shadow hears that it exited. Output that does
// not move is cut off, and the shadow hears why.
func TestShadowOutputSpared(t *testing.T) {
	t.Parallel()
	for name, moves := range map[string]bool{"output moves": true, "output stands still": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			var begun chan struct{}
			p := newPoolPlan(t, "", writes("result", "42", host.ExitStatus{Exited: true, Code: 7}), func(p *pool, plan *protocol.Plan) {
				plan.Settings = configured(t, "KILLING_TIMEOUT = 1\n")
				if moves {
					plan.Settings = configured(t, "KILLING_TIMEOUT = 3600\n")
				}
				begun = p.slowly(gate)
			})
			<-begun
			p.send(protocol.HardKill{Leave: protocol.Leave{Reason: "Startd was shutdown", Code: int(reason.StartdShutdown)}, OutputLimit: time.Hour},
				protocol.Checkpoint{})
			until[protocol.Refused](p) // which is what becomes of the second order: the first was taken
			if moves {
				close(gate)
			} else {
				defer close(gate)
			}
			rec := p.last()
			end := <-p.ended
			if end.Exit == nil {
				t.Fatalf("the shadow heard %+v", end)
			}
			if moves {
				text, err := os.ReadFile(filepath.Join(p.submit, "result"))
				if rec.Evicted || end.Exit.Ints[1] != int64(shadow.Exited) || end.Exit.Ints[0] != 7<<8 || string(text) != "42" {
					t.Errorf("evicted %v, status %d, exit reason %d, output %q (%v)", rec.Evicted, end.Exit.Ints[0], end.Exit.Ints[1], text, err)
				}
				return
			}
			if why, _ := end.Exit.Ad.EvalString("VacateReason", nil); !rec.Evicted || end.Exit.Ints[1] != int64(shadow.ShouldRequeue) || why != "Startd was shutdown" {
				t.Errorf("evicted %v, exit reason %d, %q", rec.Evicted, end.Exit.Ints[1], why)
			}
		})
	}
}

// Output may go on until its limit is over or it has stood still for half of
// KILLING_TIMEOUT, whichever comes first. Of several limits the first to end counts.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		limits []time.Duration // of the orders, one every 10 s
		moves  time.Duration   // bytes move for so long
		want   time.Duration   // when the output is cut off, to the next look
		said   int             // times the startd hears that output moved
	}{
		{"moves until the limit", []time.Duration{time.Minute}, time.Hour, time.Minute, 12},
		{"stands still", []time.Duration{time.Minute}, 0, 15 * time.Second, 0},
		{"stops moving", []time.Duration{time.Hour}, 20 * time.Second, 35 * time.Second, 4},
		{"a limit that ends earlier", []time.Duration{time.Hour, 20 * time.Second}, time.Hour, 30 * time.Second, 6},
		{"a limit that ends later", []time.Duration{20 * time.Second, time.Hour}, time.Hour, 20 * time.Second, 4},
		{"no limit of the startd's", []time.Duration{0}, time.Hour, 270 * time.Second, 54},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				said := 0
				a := newActivation(Host{}, nil, func(r protocol.Report) {
					if _, ok := r.(protocol.OutputMoved); ok {
						said++
					}
				})
				a.plan = &protocol.Plan{Settings: configured(t, "")}
				a.life = life{phase: finishing, ran: true}
				a.watchOutput()
				defer a.flow.stop()
				began := time.Now()
				for i := 0; a.life.evicted == nil; i++ {
					if i < 2*len(c.limits) && i%2 == 0 {
						a.perform(a.life.ordered(protocol.HardKill{OutputLimit: c.limits[i/2]}))
					}
					<-a.flow.looks.C
					if time.Since(began) <= c.moves {
						a.flow.add(1)
					}
					a.perform(a.lookAtOutput())
				}
				if d := time.Since(began); d != c.want || said != c.said {
					t.Errorf("cut off after %v, want %v; the startd heard %d times that it moved, want %d", d, c.want, said, c.said)
				}
			})
		})
	}
}
