// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"net"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/launch"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/role"
)

// Launcher begins activations. That of a run starts a process for each, by
// launch.Launcher; see Options.Launcher. Implementations are safe for concurrent
// use.
type Launcher interface {
	// Launch gives a plan to a starter and returns as soon as the plan is on its
	// way. An error means that no starter holds it; it counts as the machine's
	// fault. ctx bounds Launch itself, not the starter. The plan is the launcher's,
	// and so is nc, the connection of the job's shadow, nil for a job of this
	// machine's own: it is closed here whatever happens.
	Launch(ctx context.Context, plan *protocol.Plan, nc net.Conn) (Starter, error)
	// Close gives up what is kept for later. Starters that hold a plan go on. It
	// may be called again.
	Close()
}

// Starter is one activation under way. *launch.Handle is one; what it says of
// each method holds for others too. Methods are safe for concurrent use.
type Starter interface {
	Process
	Conversation
}

// Process is what a starter is to the machine.
type Process interface {
	// Proc names the starter's process, for logs and ads; one that has none of
	// its own names this program's.
	Proc() host.ProcID
	// Exited is closed, after Reports, when nothing of the activation is left.
	Exited() <-chan struct{}
	// Exit tells how it exited, and what was wrong, once Exited is closed.
	Exit() (host.ExitStatus, error)
	// Kill ends it at once, with all that is below it.
	Kill() error
}

// Conversation is what is said between a startd and a starter.
type Conversation interface {
	// Reports is read until it is closed. The last report of an activation that
	// came to its end is protocol.Ended.
	Reports() <-chan protocol.Told
	// Heard says that a report was dealt with, and all before it: nobody needs to
	// hear them again.
	Heard(report uint64)
	// Send hands over an order and does not wait for it to be obeyed. NotFound
	// is a starter that is gone. A protocol.SlotAd takes the place of one that waits.
	Send(protocol.Order) error
}

// processes launches each starter as a process of its own.
type processes struct{ *launch.Launcher }

// Launch implements Launcher.
func (p processes) Launch(ctx context.Context, plan *protocol.Plan, nc net.Conn) (Starter, error) {
	h, err := p.Launcher.Launch(ctx, plan, nc)
	if err != nil {
		return nil, err // not an interface that holds a nil
	}
	return h, nil
}

// newLauncher is the launcher of a run, and our own below it. ownUsers has starters begin
// in a user namespace.
func newLauncher(o Options, ownUsers bool) (l Launcher, own processes) {
	own = processes{launch.NewLauncher(launch.Spec{
		Spawner: o.Host.Spawner, Census: o.Host.Census, Private: o.Host.Private, Path: o.StarterPath, Args: o.StarterArgs, Env: role.Of(o.StarterEnv, o.Self),
		Stderr: o.StarterLog, Standby: o.Standby, Log: o.Log, Channel: o.Host.Channel,
		OwnMounts: o.Host.Volumes != nil && o.Host.Volumes.Hidden(), Mounter: o.Host.Mounter,
		OwnUsers: ownUsers,
	})}
	if o.Launcher == nil {
		return own, own
	}
	return both{o.Launcher(own), own}, own
}

// both closes the launcher that was put in place of our own, then that.
type both struct {
	Launcher
	own Launcher
}

// Close implements Launcher.
func (b both) Close() {
	b.Launcher.Close()
	b.own.Close()
}
