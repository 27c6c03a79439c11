// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/transfer"
)

// quietFamily is a family that ends when it is told to.
type quietFamily struct {
	host.Family
	done chan struct{}
}

func (f quietFamily) Done() <-chan struct{} { return f.done }

// While a plugin runs, who waits for it says so from time to time.
func TestPluginIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := quietFamily{done: make(chan struct{})}
		time.AfterFunc(35*time.Second, func() { close(f.done) })
		n := 0
		if !await(t.Context(), f, transfer.PluginSpec{Waiting: func() { n++ }, Every: 10 * time.Second}) || n != 3 {
			t.Errorf("told %d times", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if await(ctx, quietFamily{done: make(chan struct{})}, transfer.PluginSpec{}) {
			t.Error("a plugin that does not end has ended")
		}
	})
}
