// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
)

// mute is a name server that does not answer.
type mute struct{}

func (mute) LookupAddr(ctx context.Context, _ string) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (mute) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The goroutine that owns the engine does not wait for the names of hosts that
// a new configuration lets in; of several configurations the last one counts.
func TestReconfiguredDoesNotWait(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("test.conf", "ALLOW_READ = submit.example\n", config.Options{Subsystem: "STARTD", Facts: map[string]string{"FULL_HOSTNAME": "ep.example"}})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemonState{names: &security.HostNames{Resolver: mute{}, Clock: clock.System(), Timeout: time.Hour}, taken: make(chan *config.Snapshot, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)

		d.reconfigured(d.snap)
		d.reconfigured(s)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the engine's goroutine waits for a name server")
	}
	if got := <-d.taken; got != s {
		t.Error("another configuration than the last one is put in force")
	}
}
