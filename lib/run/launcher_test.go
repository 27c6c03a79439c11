// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// noSpawner cannot start a process.
type noSpawner struct{}

func (noSpawner) Spawn(host.SpawnSpec) (host.Family, error) {
	return nil, errors.New("no processes here")
}

// other is a launcher in the place of our own.
type other struct{ closed int }

func (*other) Launch(context.Context, *protocol.Plan, net.Conn) (Starter, error) {
	return nil, errors.New("another launcher")
}
func (o *other) Close() { o.closed++ }

// TestLauncher uses our launcher, and one that was put in its place: then both are
// closed.
func TestLauncher(t *testing.T) {
	t.Parallel()
	o := Options{Host: Host{Spawner: noSpawner{}}, Starters: Starters{StarterPath: "/nonexistent"}}
	l, _ := newLauncher(o, false)
	// What failed is nil, not an interface that holds a nil.
	if s, err := l.Launch(t.Context(), &protocol.Plan{}, nil); s != nil || !errs.Is(err, errs.Broken) {
		t.Errorf("%v, %v", s, err)
	}
	l.Close()
	in, own := &other{}, Launcher(nil)
	o.Launcher = func(l Launcher) Launcher {
		own = l
		return in
	}
	l, _ = newLauncher(o, false)
	if _, err := l.Launch(t.Context(), &protocol.Plan{}, nil); err == nil || err.Error() != "another launcher" {
		t.Error(err)
	}
	if _, err := own.Launch(t.Context(), &protocol.Plan{}, nil); !errs.Is(err, errs.Broken) {
		t.Errorf("our own is not what was given: %v", err)
	}
	l.Close()
	l.Close()
	if in.closed != 2 {
		t.Errorf("the other was closed %d times", in.closed)
	}
}
