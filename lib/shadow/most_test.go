// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/shadow"
)

// An answer is no longer than its kind can be: a shadow is not trusted with the
// starter's memory. What is longer ends the conversation before it was read.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	long := classad.NewAd()
	for _, name := range []string{"A", "B", "C"} {
		long.SetString(name, strings.Repeat("x", 4<<20))
	}
	ad := func(c *cedar.Conn) { c.PutInt(0); c.PutAd(long, cedar.AdOptions{}) }
	text := func(n int) func(*cedar.Conn) {
		return func(c *cedar.Conn) { c.PutInt(0); c.PutString(strings.Repeat("x", n)) }
	}
	data := func(n int) func(*cedar.Conn) {
		return func(c *cedar.Conn) { c.PutInt(int64(n)); c.PutBytes(make([]byte, n)) }
	}
	creds := func(c *cedar.Conn) {
		for range 3 {
			c.PutInt(1)
			c.PutAd(long, cedar.AdOptions{})
		}
		c.PutInt(0)
	}
	read := func(n int) func(context.Context, *shadow.Caller) error {
		return func(ctx context.Context, c *shadow.Caller) error { _, err := c.Read(ctx, 3, n); return err }
	}
	for _, tt := range []struct {
		name string
		call func(context.Context, *shadow.Caller) error
		put  func(*cedar.Conn)
		long bool
	}{
		{"a job ad", func(ctx context.Context, c *shadow.Caller) error { _, err := c.JobInfo(ctx); return err }, ad, true},
		{"an attribute", func(ctx context.Context, c *shadow.Caller) error { _, err := c.JobAttr(ctx, "A"); return err }, text(5 << 20), true},
		{"a usual attribute", func(ctx context.Context, c *shadow.Caller) error { _, err := c.JobAttr(ctx, "A"); return err }, text(1 << 10), false},
		{"credentials", func(ctx context.Context, c *shadow.Caller) error { _, err := c.Creds(ctx, false); return err }, creds, true},
		{"a number", func(ctx context.Context, c *shadow.Caller) error { return c.BeginExecution(ctx) }, data(1 << 20), true},
		{"more than was asked for", read(1 << 10), data(1 << 20), true},
		{"as much as was asked for", read(2 << 20), data(2 << 20), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			starter, peer := pair(t)
			caller := shadow.New(starter, shadow.Options{})
			go func() { // the message is cut off where it is too long
				if _, err := peer.Rest(); err == nil && peer.EndOfMessage() == nil {
					tt.put(peer)
					_ = peer.EndMessage()
				}
			}()
			err := tt.call(t.Context(), caller)
			if tt.long != (err != nil && errors.Is(err, shadow.ErrLost) && strings.Contains(err.Error(), "message of more than")) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Between two calls a shadow has hardly anything to say, also when the last answer
// could be long.
func TestNothingLongBetweenCalls(t *testing.T) {
	t.Parallel()
	starter, peer := pair(t)
	caller := shadow.New(starter, shadow.Options{})
	go func() {
		answering(t, peer, func(c *cedar.Conn) { c.PutInt(2 << 20); c.PutBytes(make([]byte, 2<<20)) })
		peer.PutBytes(make([]byte, 2<<20))
		_ = peer.EndMessage()
	}()
	if _, err := caller.Read(t.Context(), 3, 2<<20); err != nil {
		t.Fatal(err)
	}
	<-caller.Lost()
	if err := caller.Cause(); err == nil || !strings.Contains(err.Error(), "message of more than 65536") {
		t.Error(err)
	}
}
