// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

var _ interface {
	host.Spawner
	host.Census
} = (*Machine)(nil)

// A suspended process does not get older, and a killed one is gone at once
// with its children.
func TestProcessTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New()
		m.Install("/bin/sleep", func(p *Process) host.ExitStatus {
			p.Fork(2)
			if sig := p.Sleep(time.Hour); sig != 0 {
				return host.ExitStatus{Signal: sig}
			}
			return host.ExitStatus{Exited: true, Code: 3}
		})
		began := time.Now()
		f, err := m.Spawn(host.SpawnSpec{Path: "/bin/sleep"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		if n, err := f.Suspend(); n != 3 || err != nil {
			t.Errorf("Suspend: %d, %v", n, err)
		}
		time.Sleep(10 * time.Hour)
		if f.Status().Ended() || !m.Alive(f.Main()) {
			t.Error("it ended while it was suspended")
		}
		if err := f.Continue(); err != nil {
			t.Error(err)
		}
		<-f.Done()
		if took := time.Since(began); took != 11*time.Hour || f.Status() != (host.ExitStatus{Exited: true, Code: 3}) || f.Alone() {
			t.Errorf("it took %v and %v, alone %v", took, f.Status(), f.Alone())
		}
		if left, err := f.Close(); left != 2 || err != nil {
			t.Errorf("Close: %d, %v", left, err)
		}

		g, err := m.Spawn(host.SpawnSpec{Path: "/bin/sleep"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n, err := m.KillRemains(host.Remains{Main: g.Main()}); n != 3 || err != nil {
			t.Errorf("KillRemains: %d, %v", n, err)
		}
		<-g.Done()
		if g.Status().Signal != SIGKILL || m.Alive(g.Main()) || !g.Alone() {
			t.Errorf("%v", g.Status())
		}
	})
}

func TestSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New()
		m.Install("/x", func(p *Process) host.ExitStatus {
			for {
				if sig := p.Sleep(time.Hour); sig == 10 || sig == SIGKILL {
					return host.ExitStatus{Signal: sig}
				}
			}
		})
		f, err := m.Spawn(host.SpawnSpec{Path: "/x"})
		if err != nil {
			t.Fatal(err)
		}
		for _, sig := range []int{SIGTERM, 10} {
			if err := f.Signal(sig); err != nil {
				t.Error(err)
			}
		}
		<-f.Done()
		if got := m.Families()[0].Received(); f.Status().Signal != 10 || !cmp.Equal(got, []int{SIGTERM, 10}) {
			t.Errorf("%v after signals %v", f.Status(), got)
		}
		if _, err := m.Spawn(host.SpawnSpec{Path: "/nothing"}); !errs.Is(err, errs.NotFound) {
			t.Errorf("%v", err)
		}
	})
}
