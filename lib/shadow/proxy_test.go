// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/delegation/delegationtest"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// A shadow delegates in two messages each way: what is asked for, and until when,
// then the request; and the conversation goes on.
func TestProxy(t *testing.T) {
	t.Parallel()
	starter, peer := pair(t)
	caller := shadow.New(starter, shadow.Options{})
	defer caller.End()
	s := shadowtest.New(shadowtest.Job{Proxy: delegationtest.New(t, "alice")})
	go func() { _, _ = s.Serve(t.Context(), peer) }()
	until := time.Unix(1_900_000_000, 0)
	for i, u := range []time.Time{until, {}} {
		file, err := caller.Proxy(t.Context(), "/home/alice/x509up", u)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tls.X509KeyPair(file, file); err != nil {
			t.Error(err)
		}
		call, err := s.Wait(t.Context(), shadow.CallGetProxy, i)
		if err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		if !u.IsZero() {
			want = u.Unix()
		}
		if r := call.Request; r.Texts[0] != "/home/alice/x509up" || r.Ints[0] != want {
			t.Errorf("asked for %q until %d, want %d", r.Texts[0], r.Ints[0], want)
		}
	}
	if err := caller.BeginExecution(t.Context()); err != nil {
		t.Error(err)
	}
}

// A shadow that has nothing to delegate says so, and goes.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	starter, peer := pair(t)
	caller := shadow.New(starter, shadow.Options{})
	s := shadowtest.New(shadowtest.Job{})
	go func() { _, _ = s.Serve(t.Context(), peer) }()
	if file, err := caller.Proxy(t.Context(), "/p", time.Time{}); err == nil || file != nil || !strings.Contains(err.Error(), "has no proxy") {
		t.Errorf("%d bytes, %v", len(file), err)
	}
	<-caller.Lost()
	if _, err := caller.Proxy(t.Context(), "/p", time.Time{}); !errors.Is(err, shadow.ErrLost) {
		t.Error(err)
	}
}
