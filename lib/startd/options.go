// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"io"
	"net"
	"os"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
)

// Platform is the operating system as the daemon needs it: all that it can do.
type Platform interface {
	Detector
	JobHost
	Owners
	Sockets
	Records
	SystemLog
	Meter
}

// Detector finds out what the machine has.
type Detector interface {
	Scanners() []machine.Scanner
	// Volume looks at the file system of EXECUTE, Programs at what can run jobs.
	Volume(execute string, snap *config.Snapshot) machine.Scanner
	Programs(snap *config.Snapshot) machine.Scanner
}

// JobHost is where jobs run.
type JobHost interface {
	Host(execute string, snap *config.Snapshot) (run.Host, error)
	// Sweep clears an EXECUTE directory of what dead starters left.
	Sweep(execute string) error
	// Volumes opens what jobs get file systems of their own from, and removes those
	// that an earlier life left; nil where they get none. space is the scanner of
	// its disk, in place of Volume, and said is for the log.
	Volumes(ctx context.Context, execute string, snap *config.Snapshot) (v host.Volumes, space machine.Scanner, said []string, err error)
}

// Owners tells whose files and sockets are, and reads what is ours.
type Owners interface {
	// Credentials reads our secrets and tells whose a directory is; Owners is
	// nil where the system has no such thing.
	Credentials() (host.PrivateFiles, host.Owners)
	// Kin is security.Client's, where ids is CONDOR_IDS; nil where the system
	// cannot tell. It fails for ids that are no uid.gid.
	Kin(ids string) (func(net.Addr) bool, error)
	// ReadShown makes what reads the files in which daemons of this machine show
	// where they are, and refuses those that may be anybody else's; ids is
	// CONDOR_IDS.
	ReadShown(ids string) (func(path string) ([]byte, error), error)
}

// Sockets makes the sockets that are not the same on every system.
type Sockets interface {
	// ListenControl makes a control socket, to which every user may connect.
	ListenControl(path string) (net.Listener, error)
	// Reuse is listen.Dialer's; nil where the system has no such thing.
	Reuse() func(*net.Dialer) (lingers func(error) bool)
	// Named makes the named socket of a shared port endpoint; nil without.
	Named(cookie, dir string) func(id string, inherited *daemon.NamedSocket) (listen.NamedSocket, error)
}

// Records keeps what tells one run from another on this machine.
type Records interface {
	// Lock is a host.Locker.
	Lock(path string, share host.Share, me host.Holder) (host.Lock, error)
	// RunBase is where the user of this process keeps the records of what it
	// runs, and Private opens it.
	RunBase() (string, error)
	Private() host.PrivateDirs
}

// SystemLog is the log that all programs of the machine share.
type SystemLog interface {
	// Syslog is that log for a program of this name; Unsupported where there is
	// none.
	Syslog(tag string) (io.WriteCloser, error)
}

// Meter measures the daemon itself.
type Meter interface {
	// Usage measures the calling process.
	Usage() (host.Usage, error)
}

// Options say which daemon this is. All but Launcher, Reboot, Port, Name, Out and
// StarterLog are required.
type Options struct {
	Platform Platform
	// Load reads the configuration for a machine; inv is what was detected,
	// and later what was set over the wire, to be read after all else. With an
	// error it returns what could be read, nil for nothing.
	// It ends the programs that it runs when ctx ends.
	Load func(ctx context.Context, inv *machine.Inventory, later []config.Text) (*config.Snapshot, error)
	// Env is the environment, and System who runs the process.
	Env     []string
	System  authn.System
	Version string // ours, as "0.1"
	PID     int

	// StarterPath and StarterArgs are the program of a starter, where STARTER
	// names no other.
	StarterPath string
	StarterArgs []string
	// Launcher is run.Options'; nil for starters as they are.
	Launcher func(own run.Launcher) run.Launcher
	// Programs is the directory of our own programs.
	Programs string

	// Reboot runs STARTD_REBOOT_COMMAND and waits for it; nil refuses to.
	Reboot func(ctx context.Context, command string) error

	Port int    // -p: 0 for any
	Name string // -n: STARTD_NAME, "" for what the configuration says
	// Early takes what is to be said before it is known where the log is; nil drops
	// it.
	Early io.Writer
	// Out takes the log instead of the file STARTD_LOG; nil for the file.
	Out io.Writer

	// Signals are those of the system: SIGTERM, SIGQUIT, SIGHUP as orders.
	Signals <-chan Signal
	// StarterLog takes what starters write to standard error; nil for the file
	// StarterLog in LOG.
	StarterLog *os.File
}

// Signal is an order from the system.
type Signal uint8

// The signals.
const (
	Terminate Signal = iota // SIGTERM: gracefully, or peacefully if that was said before
	Quit                    // SIGQUIT: fast
	Hangup                  // SIGHUP: read the configuration again
)

var signalNames = [...]string{"SIGTERM", "SIGQUIT", "SIGHUP"}

// String is the name of the signal.
func (s Signal) String() string {
	if int(s) < len(signalNames) {
		return signalNames[s]
	}
	return "unknown signal"
}
