// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// volumes is a pool that a test fills.
type volumes struct {
	host.Volumes
	full    atomic.Bool
	mu      sync.Mutex // for stuck and removed, where goroutines of the node use them
	stuck   error
	breaks  bool
	reused  bool // names are
	made    []string
	removed []string
}

func (v *volumes) Make(_ context.Context, slot string, kib int64) (string, error) {
	if v.stuck != nil {
		return "", v.stuck
	}
	v.made = append(v.made, slot)
	return slot + "+1_1", nil
}

func (v *volumes) Remove(_ context.Context, name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.removed = append(v.removed, name)
	return v.stuck
}

// tries is how often one was to be removed.
func (v *volumes) tries() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.removed)
}

// free has the next try work.
func (v *volumes) free() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stuck = nil
}

func (v *volumes) Volume(name string, kib int64) host.Volume {
	return host.Volume{Name: name, Device: "/dev/" + name, LimitKiB: kib, Hidden: true}
}
func (v *volumes) BreakSlots() bool                        { return v.breaks }
func (v *volumes) Unique() bool                            { return !v.reused }
func (v *volumes) Exhausted(context.Context) (bool, error) { return v.full.Load(), nil }

// shared is a log that one goroutine writes and another reads.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func volumeNode(v host.Volumes) (*node, *shared) {
	var log shared
	n := &node{
		o: Options{Host: Host{Volumes: v}, Log: slog.New(slog.NewTextHandler(&log, nil))}, mail: mail{inbox: make(chan func(clock.Instant), 8), done: make(chan struct{})},
		starter: starterSide{live: make(map[claim.ActivationID]*activation)},
	}
	return n, &log
}

// Each activation gets a volume of its slot's disk. One that cannot be removed breaks
// the slot, unless the owner does not want that.
//
// row: S4-082
func TestVolumeOfAnActivation(t *testing.T) {
	t.Parallel()
	n, _ := volumeNode(nil)
	var plan protocol.Plan
	if err := n.giveVolume(ep.StartStarter{}, &plan); err != nil || plan.Volume != nil || first(n.takeVolume(&plan)) != nil {
		t.Errorf("without volumes: %+v, %v", plan.Volume, err)
	}
	v := &volumes{breaks: true}
	n, log := volumeNode(v)
	e := ep.StartStarter{SlotName: "slot1_1", Given: slot.Quantities{DiskKiB: 5000}}
	if err := n.giveVolume(e, &plan); err != nil || *plan.Volume != v.Volume("slot1_1+1_1", 5000) {
		t.Errorf("%+v, %v", plan.Volume, err)
	}
	if why, stays := n.takeVolume(&plan); why != nil || stays || !slices.Equal(v.removed, []string{"slot1_1+1_1"}) {
		t.Errorf("%+v, removed %v", why, v.removed)
	}
	v.stuck = errors.New("in use")
	if why, stays := n.takeVolume(&plan); why == nil || !stays || *why != (slot.BrokenReason{Code: slot.BrokenVolume, Reason: "Could not clean up Logical Volume"}) {
		t.Errorf("%+v", why)
	}
	if !strings.Contains(log.String(), "in use") {
		t.Errorf("the log says %s", log)
	}
	v.breaks = false
	if why, stays := n.takeVolume(&plan); why != nil || !stays {
		t.Errorf("%+v", why)
	}
	if err := n.giveVolume(e, &protocol.Plan{}); err == nil {
		t.Error("a volume that cannot be made is no error")
	}
}

func first(why *slot.BrokenReason, _ bool) *slot.BrokenReason { return why }

// A volume that stays is tried again, at longer and longer intervals.
func TestNextTry(t *testing.T) {
	t.Parallel()
	var got []int
	for tick := 0; len(got) < 9; {
		tick = nextTry(tick)
		got = append(got, tick)
	}
	if want := []int{1, 2, 4, 8, 16, 32, 60, 120, 180}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if a, b := nextTry(1440), nextTry(1380); a != 2880 || b != 1440 {
		t.Errorf("after a day %d, before %d", a, b)
	}
}

// It is tried until it goes, and the engine hears of it.
func TestVolumeThatGoesLater(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		conf   string
		reused bool
		after  time.Duration // until the third try, 0 for none
	}{
		{"", false, 4 * 62 * time.Second},
		{"AGGRESSIVE_CLEANUP_REMINDER = true\nSTARTD_CLEANUP_REMINDER_TIMER_INTERVAL = 5", false, 15 * time.Second},
		{"STARTD_CLEANUP_REMINDER_TIMER_INTERVAL = 0", false, 0},
		{"", true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := &volumes{stuck: errors.New("in use"), reused: tt.reused}
			n, _ := volumeNode(v)
			var err error
			if n.o.Config, err = config.Parse("test", tt.conf, config.Options{Subsystem: "STARTD"}); err != nil {
				t.Fatal(err)
			}
			n.retryVolume("slot1#1", &protocol.Plan{Volume: &host.Volume{Name: "v"}})
			if tt.after == 0 {
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if v.tries() != 0 {
					t.Errorf("%q: tried %d times", tt.conf, v.tries())
				}
				return
			}
			time.Sleep(tt.after - time.Second)
			synctest.Wait()
			if v.tries() != 2 || len(n.mail.inbox) != 0 {
				t.Errorf("%q: tried %d times, %d letters", tt.conf, v.tries(), len(n.mail.inbox))
			}
			v.free()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if v.tries() != 3 || len(n.mail.inbox) != 1 {
				t.Errorf("%q: tried %d times, %d letters", tt.conf, v.tries(), len(n.mail.inbox))
			}
			n.mail.around.Wait()
			close(n.mail.done)
		})
	}
}

// A thin pool may be full for a minute; then the jobs leave, and are not held.
//
// row: S0-090
func TestFullPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &volumes{}
		v.full.Store(true)
		n, log := volumeNode(v)
		a := &activation{}
		n.starter.live["slot1_1#1"] = a
		ctx, cancel := context.WithCancel(t.Context())
		go n.watchPool(ctx)
		time.Sleep(65 * time.Second)
		synctest.Wait()
		if len(n.mail.inbox) != 0 || !strings.Contains(log.String(), "Thin pool used by startd is out of space; writes will be paused until this is resolved.") {
			t.Errorf("after a minute: %d letters, %s", len(n.mail.inbox), log)
		}
		v.full.Store(false) // somebody gave something back
		time.Sleep(10 * time.Second)
		synctest.Wait()
		v.full.Store(true)
		time.Sleep(65 * time.Second)
		synctest.Wait()
		if len(n.mail.inbox) != 0 {
			t.Error("it was not full for a minute")
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		(<-n.mail.inbox)(clock.Instant{})
		if len(a.orders) != 1 {
			t.Fatalf("orders: %v", a.orders)
		}
		if o, ok := a.orders[0].(protocol.HardKill); !ok || o.Manner != protocol.MannerVacate || o.Reason != "Underlying thin pool is out of space and not recovering" {
			t.Errorf("%+v", a.orders[0])
		}
		cancel()
		synctest.Wait()
	})
}
