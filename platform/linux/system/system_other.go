// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/run"
)

// System is the operating system as our programs use it. There is none here:
// New and Visit refuse, so the methods are never reached.
type System struct {
	Self    string
	Census  host.Census
	Spawner host.Spawner
}

// errNoPlatform says what is missing and where it is not.
var errNoPlatform = errs.E("system.New", errs.Unsupported, runtime.GOOS, errors.New("jobs can be run on Linux only"))

// New refuses.
func New(...machine.Scanner) (*System, error) { return nil, errNoPlatform }

// Visit refuses.
func Visit(...machine.Scanner) (*System, error) { return nil, errNoPlatform }

// LocalUniverse refuses.
func LocalUniverse([]string) int {
	fmt.Fprintf(os.Stderr, "condor_starter: %v\n", errNoPlatform)
	return 1
}

// StarterAd refuses.
func StarterAd(_, stderr io.Writer) int {
	fmt.Fprintf(stderr, "condor_starter: %v\n", errNoPlatform)
	return 1
}

// Scanners is never reached.
func (p *System) Scanners() []machine.Scanner { return nil }

// Volume is never reached.
func (p *System) Volume(string, *config.Snapshot) machine.Scanner { return nil }

// Host is never reached.
func (p *System) Host(string, *config.Snapshot) (run.Host, error) { return run.Host{}, errNoPlatform }

// Others is never reached.
func (p *System) Others() (func(string) (*host.Identity, error), host.Access) { return nil, nil }

// ListenControl is never reached.
func (p *System) ListenControl(string) (net.Listener, error) { return nil, errNoPlatform }

// Hooks is never reached.
func (p *System) Hooks(string) *hook.Runner { return nil }

// Running is never reached.
func (p *System) Running(...string) ([]host.Program, error) { return nil, errNoPlatform }

// TerminalWidth knows no terminal.
func (p *System) TerminalWidth(*os.File) (columns int, ok bool) { return 0, false }

// UserNamespace is never reached.
func (p *System) UserNamespace() uint64 { return 0 }

// Lock is never reached.
func (p *System) Lock(string, host.Share, host.Holder) (host.Lock, error) {
	return nil, errNoPlatform
}

// Private is never reached.
func (p *System) Private() host.PrivateDirs { return nil }

// RunBase is never reached but where records of runs are looked for, and there
// are none.
func (p *System) RunBase() (string, error) { return "", errNoPlatform }

// Writable is never reached.
func (p *System) Writable(string) error { return errNoPlatform }

// Volumes is never reached.
func (p *System) Volumes(context.Context, string, *config.Snapshot) (host.Volumes, machine.Scanner, []string, error) {
	return nil, nil, nil, errNoPlatform
}

// Sweep is never reached.
func (p *System) Sweep(string) error { return errNoPlatform }

// Credentials is never reached.
func (p *System) Credentials() (host.PrivateFiles, host.Owners) { return nil, nil }

// Syslog is never reached.
func (p *System) Syslog(string) (io.WriteCloser, error) { return nil, errNoPlatform }

// Usage is never reached.
func (p *System) Usage() (host.Usage, error) { return host.Usage{}, errNoPlatform }

// Kin is never reached.
func (p *System) Kin(string) (func(net.Addr) bool, error) { return nil, errNoPlatform }

// ReadShown is never reached.
func (p *System) ReadShown(string) (func(path string) ([]byte, error), error) {
	return nil, errNoPlatform
}

// Reuse is never reached.
func (p *System) Reuse() func(*net.Dialer) func(error) bool { return nil }

// Named is never reached.
func (p *System) Named(string, string) func(string, *daemon.NamedSocket) (listen.NamedSocket, error) {
	return nil
}

// ActsForAll is never reached.
func (p *System) ActsForAll() bool { return false }
