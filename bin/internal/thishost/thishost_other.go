// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package thishost

import (
	"errors"
	"io"
	"net"
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

// Platform is the operating system as our programs use it. There is none here:
// New and Visit refuse, so the methods are never reached.
type Platform struct {
	Self    string
	Census  host.Census
	Spawner host.Spawner
}

// errNoPlatform says what is missing and where it is not.
var errNoPlatform = errs.E("thishost.New", errs.Unsupported, runtime.GOOS, errors.New("jobs can be run on Linux only"))

// New refuses.
func New() (*Platform, error) { return nil, errNoPlatform }

// Visit refuses.
func Visit() (*Platform, error) { return nil, errNoPlatform }

// Scanners is never reached.
func (p *Platform) Scanners() []machine.Scanner { return nil }

// Volume is never reached.
func (p *Platform) Volume(string, *config.Snapshot) machine.Scanner { return nil }

// Host is never reached.
func (p *Platform) Host(string, *config.Snapshot) (run.Host, error) { return run.Host{}, errNoPlatform }

// Others is never reached.
func (p *Platform) Others() (func(string) (*host.Identity, error), host.Access) { return nil, nil }

// Hooks is never reached.
func (p *Platform) Hooks(string) *hook.Runner { return nil }

// UserNamespace is never reached.
func (p *Platform) UserNamespace() uint64 { return 0 }

// Lock is never reached.
func (p *Platform) Lock(string, host.Share, host.Holder) (host.Lock, error) {
	return nil, errNoPlatform
}

// Private is never reached.
func (p *Platform) Private() host.PrivateDirs { return nil }

// RunBase is never reached but where records of runs are looked for, and there
// are none.
func (p *Platform) RunBase() (string, error) { return "", errNoPlatform }

// Sweep is never reached.
func (p *Platform) Sweep(string) error { return errNoPlatform }

// Credentials is never reached.
func (p *Platform) Credentials() (host.PrivateFiles, host.Owners) { return nil, nil }

// Syslog is never reached.
func (p *Platform) Syslog(string) (io.WriteCloser, error) { return nil, errNoPlatform }

// ListenControl is never reached.
func (p *Platform) ListenControl(string) (net.Listener, error) { return nil, errNoPlatform }

// Usage is never reached.
func (p *Platform) Usage() (host.Usage, error) { return host.Usage{}, errNoPlatform }

// Kin is never reached.
func (p *Platform) Kin(string) (func(net.Addr) bool, error) { return nil, errNoPlatform }

// ReadShown is never reached.
func (p *Platform) ReadShown(string) (func(path string) ([]byte, error), error) {
	return nil, errNoPlatform
}

// Reuse is never reached.
func (p *Platform) Reuse() func(*net.Dialer) func(error) bool { return nil }

// Named is never reached.
func (p *Platform) Named(string, string) func(string, *daemon.NamedSocket) (listen.NamedSocket, error) {
	return nil
}

// ActsForAll is never reached.
func (p *Platform) ActsForAll() bool { return false }
