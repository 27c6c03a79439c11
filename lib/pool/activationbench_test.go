// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
)

// BenchmarkActivate is one job under a claim as far as the startd has to do with
// it: ACTIVATE_CLAIM under the session of the claim, the handing over of the
// connection with its state, the word of the starter on it, and the end of the
// job with 413. Starters cost nothing here.
func BenchmarkActivate(b *testing.B) {
	s := newStation(b, stationOptions{text: recordedStatic, quiet: true})
	s.idle()
	id := s.offered("slot1")
	p := s.peer(id)
	p.claim(id, smallJob)
	s.starts(func(e ep.StartStarter, conn *cedar.Conn, _ claim.Secret) {
		conn.PutInt(-63)
		if err := conn.EndMessage(); err != nil {
			b.Error(err)
		}
		s.over(e.Activation)
	})
	b.ReportAllocs()
	for b.Loop() {
		conn, n, _ := p.activate(id.Public, id, jobToRun)
		if n != 1 {
			b.Fatalf("answer %d", n)
		}
		if call, err := conn.Int(); err != nil || call != -63 {
			b.Fatal(call, err)
		}
		if got := p.aboutClaim(413, id.Public, id); got != "Start = true" {
			b.Fatal(got)
		}
		_ = conn.Close()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "activations/s")
}

const manySlots = `
SLOT_TYPE_1 = cpus=1, memory=500, disk=0.4%, swap=0.4%
SLOT_TYPE_1_PARTITIONABLE = false
NUM_SLOTS_TYPE_1 = 200
NUM_CPUS = 200
MEMORY = 200000
DISK = 200000000
`

// Two hundred shadows at once: each gets its own starter, all jobs end, and
// the EP is as it was before.
func TestManyActivations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, stationOptions{text: manySlots, quiet: true})
		s.idle()
		began := make(chan struct{})
		var mu sync.Mutex
		spoke := make(map[claim.ActivationID]bool)
		s.starts(func(e ep.StartStarter, conn *cedar.Conn, _ claim.Secret) {
			<-began // none before all are activated
			conn.PutString(e.Claim.Public)
			if err := conn.EndMessage(); err != nil {
				t.Error(err)
			}
			mu.Lock()
			spoke[e.Activation] = true
			mu.Unlock()
			s.over(e.Activation)
		})
		var ids []claim.ID
		for _, name := range s.slots() {
			slot, _, _ := strings.Cut(name, " ")
			ids = append(ids, s.offered(slot))
		}
		if len(ids) != 200 {
			t.Fatalf("%d slots", len(ids))
		}
		p := s.peer(ids...)
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() {
				p.claim(id, smallJob)
				conn, n, _ := p.activate(id.Public, id, jobToRun)
				defer conn.Close()
				if n != 1 {
					t.Errorf("%s is answered %d", id, n)
					return
				}
				if who, err := conn.String(); err != nil || who != id.Public {
					t.Errorf("the starter of %s, %v, speaks for %s", who, err, id)
				}
				if got := p.aboutClaim(413, id.Public, id); got != "Start = true" {
					t.Errorf("413 is answered %s", got)
				}
				p.aboutClaim(443, id.Public, id)
			})
		}
		synctest.Wait()
		close(began)
		all.Wait()
		synctest.Wait()
		if len(spoke) != 200 {
			t.Errorf("%d starters spoke", len(spoke))
		}
		if n, _ := s.server.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		for _, name := range s.slots() {
			if _, state, _ := strings.Cut(name, " "); state != "Unclaimed/Idle" && state != "Owner/Idle" {
				t.Errorf("at the end %s", name)
			}
		}
	})
}
