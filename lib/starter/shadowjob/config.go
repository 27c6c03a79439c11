// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reach"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Machine is what jobs of a pool need of the machine, beyond what every job does.
type Machine struct {
	// Socket returns the connection that came with the plan, once; the caller
	// closes it. nil where none can come.
	Socket func() (net.Conn, error)
	// SharedPort makes the named socket id, where a shared port hands on
	// connections, below dir or with condor_master's cookie; nil where there is
	// none.
	SharedPort func(cookie, dir, id string) (listen.NamedSocket, error)
	// Reuse is listen.Dialer's, nil where the system has no such thing.
	Reuse func(*net.Dialer) (lingers func(error) bool)
	// System is what registering with a broker needs of this process. nil knows
	// no method that needs anything.
	System func() authn.System
	// Outside opens a file or directory by its absolute path for this process to
	// read from, with the rights of u, nil being its own; it never leads to what
	// only this process reaches. nil where that cannot be.
	Outside func(u *host.Identity, path string) (*os.File, error)
	// OpenRecords opens the file of FILE_TRANSFER_STATS_LOG, of which each Write is
	// one record; nil where none is written.
	OpenRecords func(path string) (io.Writer, error)
	// Wake has a process of the machine's owner look after its work, by its pid; nil
	// where none can be told.
	Wake func(pid int) error
	// Clock tells the time since boot with that in which the machine slept: the
	// lease of a job goes on meanwhile. nil is clock.System, which cannot.
	Clock clock.Clock
	// Moment is how long a shadow may take to hear how the job ended when the
	// starter has to end at once. 0 is ten seconds.
	Moment time.Duration
}

// hardTell bounds telling the end of a job that was killed: who ordered that
// does not wait for it.
const hardTell = 10 * time.Second

// Farewell is how long a shadow may take that keeps a starter from ending at once.
func (m *Machine) Farewell() time.Duration {
	if m.Moment > 0 {
		return m.Moment
	}
	return hardTell
}

// Config is what a job of a pool is made with.
type Config struct {
	Plan *protocol.Plan
	Machine
	Accounts    job.Accounts
	Spawner     host.Spawner // of plugins
	Errno       host.Errno
	Acknowledge func(net.Conn) // as chirp.Config's
	Env         []string       // the starter's own
	Log         *slog.Logger
	Report      job.Report
	Progress    func(bytes int64) // is told of output that moves
	Activation  Activation
	// Announce has the slots of the machine show a catalog of files that jobs share, an
	// ad in old syntax, and waits until they do. It is called by who does not run what
	// Activation.Do was given.
	Announce func(ctx context.Context, catalog string) error
}

// Activation is what the job's visitors reach of the starter. All but Do are called
// by what Do was given.
type Activation interface {
	// Do has the activation's goroutine do something; the error is that it is over,
	// or ctx's.
	Do(ctx context.Context, what func()) error
	// Busy reports whether the job is at no point where it could be taken up.
	Busy() bool
	// Order has the life take an order.
	Order(o protocol.Order)
	// TakeUp notes that another shadow has the job, after resume has given it the
	// conversation; lost is closed when that breaks.
	TakeUp(resume func() (lost <-chan struct{}))
	// Update tells how the job is.
	Update()
	// Target is the job for those who look at it; running says that its main process
	// lives.
	Target() (t reach.Target, running bool)
}
