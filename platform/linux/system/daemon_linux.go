// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"io"
	"net"
	"os"
	"slices"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/listeners"
	"github.com/execpoint/execpoint/platform/linux/proc"
	"github.com/execpoint/execpoint/platform/linux/sharedport"
	"github.com/execpoint/execpoint/platform/linux/syslog"
)

// Credentials reads secrets of this machine and tells whose a directory is. As
// root the directories of FS are made for the peer to give away.
func (p *System) Credentials() (host.PrivateFiles, host.Owners) {
	return account.Private{}, account.Owners{}
}

// Syslog is the system's log.
func (p *System) Syslog(tag string) (io.WriteCloser, error) { return syslog.New(tag), nil }

// ListenControl makes a control socket.
func (p *System) ListenControl(path string) (net.Listener, error) { return linux.ListenControl(path) }

// Usage measures this process.
func (p *System) Usage() (host.Usage, error) { return proc.Myself() }

// Kin tells whether what listens at an address of this machine belongs to root,
// to the account of HTCondor's daemons or to us. ids is CONDOR_IDS, "" for the
// user condor if there is one.
func (p *System) Kin(ids string) (func(net.Addr) bool, error) {
	trusted, err := account.Daemons(ids)
	if err != nil {
		return nil, err
	}
	return func(at net.Addr) bool {
		uids, err := listeners.Users(p.root, at)
		return err == nil && !slices.ContainsFunc(uids, func(uid uint32) bool { return !slices.Contains(trusted, uid) })
	}, nil
}

// ReadShown reads the files in which daemons of this machine show where they
// are: those that root, the account of HTCondor's daemons or we have written, and
// that no other user may write to. ids is as with Kin.
func (p *System) ReadShown(ids string) (func(path string) ([]byte, error), error) {
	trusted, err := account.Daemons(ids)
	if err != nil {
		return nil, err
	}
	return func(path string) ([]byte, error) { return account.ReadOf(trusted, path, daemon.MostAddressFile) }, nil
}

// Reuse lets outgoing connections come from ports at which ended ones linger.
func (p *System) Reuse() func(*net.Dialer) (lingers func(error) bool) {
	return linux.ReuseAddress
}

// Named makes the named socket by which a shared port hands over connections,
// or takes over the one that condor_master made.
func (p *System) Named(cookie, dir string) func(id string, inherited *daemon.NamedSocket) (listen.NamedSocket, error) {
	return func(id string, inherited *daemon.NamedSocket) (listen.NamedSocket, error) {
		if inherited != nil {
			return sharedport.Inherited(inherited.Descriptor, inherited.Name)
		}
		return sharedport.Listen(sharedport.Place{Cookie: cookie, Dir: dir, ID: id})
	}
}

// ActsForAll reports whether this program acts for the whole machine rather
// than for the user who started it.
func (p *System) ActsForAll() bool { return os.Geteuid() == 0 }
