// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
)

// CommandPort is where a daemon is reached, its command port: behind a shared port, or at ports of its
// own, directly or through brokers. It keeps its address, and the file that
// shows it, up to date. The exported fields are set before Open.
type CommandPort struct {
	Network   endpoint.Network
	Inherit   Inherit
	Subsystem string // as "STARTD"
	PID       int
	Tag       uint16 // by chance; part of the id behind a shared port
	Port      int    // 0 takes any
	Server    *listen.Server
	Machine   Machine

	// Broker opens a connection to a broker for command.CCBRegister, under a
	// session that is not kept; Dial is listen.Dialer's.
	Broker func(ctx context.Context, address string) (*cedar.Conn, error)
	Dial   func(ctx context.Context, to cedar.Sinful) (net.Conn, error)
	// File shows where we are. Super is what tools of administrators read
	// first, for a socket that is never busy with others: every connection here
	// has a goroutine of its own, so it shows the same.
	File, Super AddressFile
	// Changed is called with the public address whenever it is another one. It must
	// not wait.
	Changed func(public cedar.Sinful)
	Log     *slog.Logger

	sockets    endpoint.Sockets
	refreshing sync.Mutex // one at a time, so that the latest address stays
	at         address
}

// Machine is what a command port has to know of the machine it is on.
type Machine struct {
	// Named makes the named socket of an endpoint, or takes over the one that
	// the parent made. Nil is a system without them: then there is no shared
	// port.
	Named func(id string, inherited *NamedSocket) (listen.NamedSocket, error)
	// Interfaces and Resolve tell about its interfaces and names of hosts.
	Interfaces func() ([]endpoint.Interface, error)
	Resolve    func(ctx context.Context, host string) (netip.Addr, error)
	// ReadFile reads the ad of the shared port.
	ReadFile func(path string) ([]byte, error)
}

// address is where a daemon is reached now.
type address struct {
	mu     sync.Mutex
	reach  endpoint.Reach
	public cedar.Sinful
	local  cedar.Sinful
	known  bool // public is an address for others
}

// Open opens the sockets. After it the daemon can be reached, though behind a
// shared port or a broker it may take a while until the address is known.
func (c *CommandPort) Open(ctx context.Context) error {
	c.sockets = endpoint.Sockets{
		Network: c.Network, Server: c.Server, Name: c.Name, Brokers: c.Network.Brokers, Broker: c.Broker, Dial: c.Dial, Registered: c.refresh, Log: c.Log,
	}
	if !c.Network.SharedPort || c.Machine.Named == nil {
		return c.openOwn(ctx)
	}
	why := c.noSharedPort(ctx)
	if why == nil {
		err := c.openShared()
		// A daemon that is not root may have no right to the directory of the sockets.
		// HTCondor's takes a port of its own then, too.
		if !errors.Is(err, fs.ErrPermission) || c.Inherit.Endpoint != nil {
			return err
		}
		why = err
	}
	c.Log.Info("no shared port is used, and a port of our own is taken", "why", why)
	return c.openOwn(ctx)
}

// sharedPortDial is how long a shared port has to take a connection.
const sharedPortDial = 2 * time.Second

// noSharedPort says why there is no shared port to hand connections over, nil if
// there is one or may soon be. Under a condor_master that starts one it is
// waited for. Without condor_master none starts later: either its ad is there
// and a shared port listens where it says, or there never will be one. HTCondor,
// which waits for an ad forever, is no example here: USE_SHARED_PORT is true by
// default, so a startd that is started by hand could not be reached.
func (c *CommandPort) noSharedPort(ctx context.Context) error {
	if c.Inherit.Endpoint != nil || c.Inherit.ParentAddress != "" {
		return nil
	}
	ad, err := c.Machine.ReadFile(c.Network.PortAd)
	if err != nil {
		return err
	}
	public, others, err := listen.PortAddress(ad, listen.NewID(c.Subsystem, c.PID, c.Tag, 0))
	if err != nil {
		return errs.E("daemon.CommandPort", errs.Invalid, c.Network.PortAd, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sharedPortDial)
	defer cancel()
	for _, at := range append(others, public) {
		var nc net.Conn
		if nc, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(at.Host, strconv.Itoa(at.Port))); err == nil {
			_ = nc.Close()
			return nil
		}
		var silent net.Error
		if errors.As(err, &silent) && silent.Timeout() {
			return nil // a firewall may be there
		}
	}
	return errs.E("daemon.CommandPort", errs.NotFound, c.Network.PortAd, fmt.Errorf("nobody listens where it says: %w", err))
}

func (c *CommandPort) openShared() error {
	id := listen.NewID(c.Subsystem, c.PID, c.Tag, 0)
	inherited := c.Inherit.Endpoint
	if inherited != nil {
		id = inherited.ID()
	}
	if !listen.ValidID(id) {
		return errs.E("daemon.CommandPort", errs.Invalid, InheritVariable, fmt.Errorf("the id of the shared port endpoint is %.40q; want letters, digits, '.', '_' and '-'", id))
	}
	first, err := c.Machine.Named(id, inherited)
	if err != nil {
		return err
	}
	c.sockets.Share(id, first, func() (listen.NamedSocket, error) { return c.Machine.Named(id, nil) })
	host := netip.IPv6Loopback()
	if all, err := c.Machine.Interfaces(); err == nil {
		if v4, v6, err := c.Network.Pick(c.Network.Interface, all); err == nil {
			if host = v6; v4.IsValid() {
				host = v4
			}
		}
	}
	c.set(listen.LocalAddress(host, id, c.Network.Alias), cedar.Sinful{}, false)
	return nil
}

func (c *CommandPort) openOwn(ctx context.Context) error {
	all, err := c.Machine.Interfaces()
	if err != nil {
		return err
	}
	r := endpoint.Reach{}
	if r.V4, r.V6, err = c.Network.Pick(c.Network.Interface, all); err != nil {
		return err
	}
	if p := c.Network.PrivateInterface; p != "" {
		v4, v6, err := c.Network.Pick(p, all)
		if err != nil {
			return err
		}
		if r.Private = v6; v4.IsValid() {
			r.Private = v4
		}
	}
	if f := c.Network.Forwarding; f != "" {
		if r.Forward, err = c.Machine.Resolve(ctx, f); err != nil {
			return errs.E("daemon.CommandPort", errs.NotFound, "TCP_FORWARDING_HOST", err)
		}
	}
	datagrams := c.Network.Datagrams && c.Server.Datagrams != nil
	listeners, packets, err := inherited(c.Inherit.Commands, datagrams)
	if err != nil {
		return err
	}
	if len(listeners) == 0 {
		closeAll(packets) // without a port for connections they are useless: our address will show another port
	}
	if len(listeners) > 0 {
		c.sockets.Take(listeners, packets)
	} else if err := c.sockets.Listen(ctx, c.Port, r.V4, r.V6, datagrams); err != nil {
		return err
	}
	r.UDP, r.Port = c.sockets.Datagrams(), c.sockets.Port()
	c.at.mu.Lock()
	c.at.reach = r
	c.at.mu.Unlock()
	c.refresh()
	return nil
}

// inherited takes over the command sockets that the parent made. Those for
// datagrams are closed if none are taken.
func inherited(sockets []Socket, datagrams bool) ([]net.Listener, []net.PacketConn, error) {
	var all []net.Listener
	var packets []net.PacketConn
	var failed []error
	for _, s := range sockets {
		f := os.NewFile(uintptr(s.Descriptor), "inherited command socket")
		if f == nil {
			failed = append(failed, fmt.Errorf("%d is no descriptor", s.Descriptor))
			continue
		}
		var err error
		switch { // each takes a copy
		case s.Kind == Stream:
			var l net.Listener
			if l, err = net.FileListener(f); err == nil {
				all = append(all, l)
			}
		case datagrams:
			var p net.PacketConn
			if p, err = net.FilePacketConn(f); err == nil {
				packets = append(packets, p)
			}
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("descriptor %d: %w", s.Descriptor, err))
		}
		_ = f.Close()
	}
	if len(failed) > 0 {
		closeAll(all)
		closeAll(packets)
		return nil, nil, errs.E("daemon.CommandPort", errs.Broken, InheritVariable, errors.Join(failed...))
	}
	return all, packets, nil
}

func closeAll[C io.Closer](all []C) {
	for _, c := range all {
		_ = c.Close()
	}
}

// Serve serves what comes in until ctx ends, and then removes the address file.
// It returns the first error of a socket, or nil.
func (c *CommandPort) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	if id, ok := c.sockets.SharedPort(); ok {
		w := &listen.PortWatch{
			ID: id, Log: c.Log,
			Read:    func() ([]byte, error) { return c.Machine.ReadFile(c.Network.PortAd) },
			Changed: func(public cedar.Sinful, _ []cedar.Sinful) { c.set(public, public, true) },
		}
		wg.Go(func() { w.Run(ctx) })
	}
	err := c.sockets.Serve(ctx)
	cancel()
	wg.Wait()
	return errors.Join(err, c.File.Remove(c.Local()), c.Super.Remove(c.Local()))
}

// Name says who we are, for the logs of others: "STARTD <address>".
func (c *CommandPort) Name() string {
	if public, ok := c.Public(); ok {
		return c.Subsystem + " " + public.String()
	}
	return c.Subsystem + " " + c.Local().String()
}

// Public returns the address for other daemons. It returns false as long
// as there is none.
func (c *CommandPort) Public() (cedar.Sinful, bool) {
	c.at.mu.Lock()
	defer c.at.mu.Unlock()
	return c.at.public, c.at.known
}

// Local returns the address for tools on this machine.
func (c *CommandPort) Local() cedar.Sinful {
	c.at.mu.Lock()
	defer c.at.mu.Unlock()
	return c.at.local
}

// refresh works out the address of own ports.
func (c *CommandPort) refresh() {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	c.at.mu.Lock()
	r := c.at.reach
	c.at.mu.Unlock()
	r.Contacts = c.sockets.Contacts()
	c.set(c.Network.Local(r), c.Network.Public(r), true)
}

// set takes over addresses, writes the file and tells of a change.
func (c *CommandPort) set(local, public cedar.Sinful, known bool) {
	c.at.mu.Lock()
	changed := known && (!c.at.known || c.at.public.String() != public.String())
	moved := c.at.local.String() != local.String()
	c.at.local, c.at.public, c.at.known = local, public, known
	c.at.mu.Unlock()
	if moved {
		if err := errors.Join(c.File.Write(local), c.Super.Write(local)); err != nil {
			c.Log.Error("could not write the address file", "err", err)
		}
	}
	if changed {
		c.Log.Info("address", "addr", public.String())
		if c.Changed != nil {
			c.Changed(public)
		}
	}
}
