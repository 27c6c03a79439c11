// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestFakeKeepsScalesApart(t *testing.T) {
	t.Parallel()
	f := NewFake(time.Unix(1_800_000_000, 0))
	a := f.Now()
	b := f.Advance(90 * time.Second)
	if got := b.Sub(a); got != 90*time.Second {
		t.Errorf("Sub = %v", got)
	}
	if got := b.Jump(a); got != 0 {
		t.Errorf("no jump happened, Jump = %v", got)
	}
	c := f.JumpWall(-2 * time.Hour)
	if c.Sub(b) != 0 {
		t.Error("a wall jump must not move boot time")
	}
	if got := c.Jump(a); got != -2*time.Hour {
		t.Errorf("Jump = %v, want -2h", got)
	}
	if (Instant{}).IsZero() != true || a.IsZero() {
		t.Error("IsZero")
	}
}

func TestSystemAdvances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := System()
		a := c.Now()
		<-time.After(3 * time.Second)
		b := c.Now()
		if b.Sub(a) != 3*time.Second || b.Jump(a) != 0 {
			t.Errorf("Sub %v, Jump %v", b.Sub(a), b.Jump(a))
		}
	})
}
