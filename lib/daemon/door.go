// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
)

// Door is where a daemon is reached: behind a shared port, or at ports of its
// own, directly or through brokers. It keeps its address, and the file that
// shows it, up to date. The exported fields are set before Open.
type Door struct {
	Network   Network
	Inherit   Inherit
	Subsystem string // as "STARTD"
	PID       int
	Tag       uint16 // by chance; part of the id behind a shared port
	Port      int    // 0 takes any
	Server    *listen.Server

	// Named makes the named socket of an endpoint, or takes over the one that
	// the parent made. Nil is a system without them: then there is no shared
	// port.
	Named func(id string, inherited *NamedSocket) (listen.NamedSocket, error)
	// Interfaces and Resolve tell about the machine and names of hosts.
	Interfaces func() ([]Interface, error)
	Resolve    func(ctx context.Context, host string) (netip.Addr, error)
	// ReadFile reads the ad of the shared port.
	ReadFile func(path string) ([]byte, error)
	// Broker opens a connection to a broker for command.CCBRegister, under a
	// session that is not kept; Dial is listen.Dialer's.
	Broker func(ctx context.Context, address string) (*cedar.Conn, error)
	Dial   func(ctx context.Context, to cedar.Sinful) (net.Conn, error)
	// File shows where we are. Super is what tools of administrators read
	// first, for a socket that is never busy with others: every connection here
	// has a goroutine of its own, so it shows the same.
	File, Super AddressFile
	// Changed is told the public address whenever it is another one. It must
	// not wait.
	Changed func(public cedar.Sinful)
	Log     *slog.Logger

	endpoint  *listen.Endpoint
	listeners []net.Listener
	packets   []net.PacketConn
	contacts  listen.Contacts

	refreshing sync.Mutex // one at a time, so that the latest address stays

	mu     sync.Mutex
	reach  Reach
	public cedar.Sinful
	local  cedar.Sinful
	known  bool // public is an address for others
}

// Open opens the sockets. After it the daemon can be reached, though behind a
// shared port or a broker it may take a while until the address is known.
func (d *Door) Open(ctx context.Context) error {
	if !d.Network.SharedPort || d.Named == nil {
		return d.openOwn(ctx)
	}
	why := d.noSharedPort(ctx)
	if why == nil {
		err := d.openShared()
		// Who is not root may have no right to the directory of the sockets. The
		// original takes a port of its own then, too.
		if !errors.Is(err, fs.ErrPermission) || d.Inherit.Endpoint != nil {
			return err
		}
		why = err
	}
	d.Log.Info("no shared port is used, and a port of our own is taken", "why", why)
	return d.openOwn(ctx)
}

// sharedPortDial is how long a shared port has to take a connection.
const sharedPortDial = 2 * time.Second

// noSharedPort says why there is no shared port to hand connections over, nil if
// there is one or may soon be. Under a condor_master that starts one it is
// waited for. Without condor_master nobody starts one later: either its ad is
// there and somebody listens where it says, or it never will. The original,
// which waits for an ad forever, is no example here: USE_SHARED_PORT is true by
// default, so a startd that is started by hand could not be reached.
func (d *Door) noSharedPort(ctx context.Context) error {
	if d.Inherit.Endpoint != nil || d.Inherit.ParentAddress != "" {
		return nil
	}
	ad, err := d.ReadFile(d.Network.PortAd)
	if err != nil {
		return err
	}
	public, others, err := listen.PortAddress(ad, listen.NewID(d.Subsystem, d.PID, d.Tag, 0))
	if err != nil {
		return errs.E("daemon.Door", errs.Invalid, d.Network.PortAd, err)
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
	return errs.E("daemon.Door", errs.NotFound, d.Network.PortAd, fmt.Errorf("nobody listens where it says: %w", err))
}

func (d *Door) openShared() error {
	id := listen.NewID(d.Subsystem, d.PID, d.Tag, 0)
	inherited := d.Inherit.Endpoint
	if inherited != nil {
		id = inherited.ID()
	}
	if !listen.ValidID(id) {
		return errs.E("daemon.Door", errs.Invalid, InheritVariable, fmt.Errorf("the id of the shared port endpoint is %.40q; want letters, digits, '.', '_' and '-'", id))
	}
	first, err := d.Named(id, inherited)
	if err != nil {
		return err
	}
	d.endpoint = &listen.Endpoint{ID: id, Server: d.Server, Log: d.Log, Open: func() (listen.NamedSocket, error) {
		if l := first; l != nil {
			first = nil
			return l, nil
		}
		return d.Named(id, nil)
	}}
	host := netip.IPv6Loopback()
	if all, err := d.Interfaces(); err == nil {
		if v4, v6, err := d.Network.Pick(d.Network.Interface, all); err == nil {
			if host = v6; v4.IsValid() {
				host = v4
			}
		}
	}
	d.set(listen.LocalAddress(host, id, d.Network.Alias), cedar.Sinful{}, false)
	return nil
}

func (d *Door) openOwn(ctx context.Context) error {
	all, err := d.Interfaces()
	if err != nil {
		return err
	}
	r := Reach{}
	if r.V4, r.V6, err = d.Network.Pick(d.Network.Interface, all); err != nil {
		return err
	}
	if p := d.Network.PrivateInterface; p != "" {
		v4, v6, err := d.Network.Pick(p, all)
		if err != nil {
			return err
		}
		if r.Private = v6; v4.IsValid() {
			r.Private = v4
		}
	}
	if f := d.Network.Forwarding; f != "" {
		if r.Forward, err = d.Resolve(ctx, f); err != nil {
			return errs.E("daemon.Door", errs.NotFound, "TCP_FORWARDING_HOST", err)
		}
	}
	datagrams := d.Network.Datagrams && d.Server.Datagrams != nil
	if d.listeners, d.packets, err = inherited(d.Inherit.Commands, datagrams); err != nil {
		return err
	}
	if len(d.listeners) == 0 {
		if err := d.listen(ctx, r, datagrams); err != nil {
			return err
		}
	}
	r.UDP = len(d.packets) > 0
	if t, ok := d.listeners[0].Addr().(*net.TCPAddr); ok {
		r.Port = t.Port
	}
	d.mu.Lock()
	d.reach = r
	d.mu.Unlock()
	d.refresh()
	return nil
}

// portTries is how often a port is taken by chance until it is free for
// datagrams, too.
const portTries = 10

// listen opens the command sockets: for connections and, at the same port, for
// datagrams.
func (d *Door) listen(ctx context.Context, r Reach, datagrams bool) error {
	for try := 1; ; try++ {
		all, err := d.Network.Listen(ctx, d.Port, r.V4, r.V6)
		if err != nil {
			return err
		}
		d.listeners = all
		if !datagrams {
			return nil
		}
		if d.packets, err = d.Network.ListenDatagrams(ctx, all); err == nil {
			return nil
		}
		for _, l := range all {
			_ = l.Close()
		}
		if d.Port != 0 || try == portTries {
			return err
		}
	}
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
		for _, l := range all {
			_ = l.Close()
		}
		for _, p := range packets {
			_ = p.Close()
		}
		return nil, nil, errs.E("daemon.Door", errs.Broken, InheritVariable, errors.Join(failed...))
	}
	return all, packets, nil
}

// Serve serves what comes through the door until ctx ends, and then removes
// the address file. It returns the first error of a socket, or nil.
func (d *Door) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	run := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				once.Do(func() { first = err })
				cancel()
			}
		})
	}
	if d.endpoint != nil {
		run(d.endpoint.Serve)
		w := &listen.PortWatch{
			ID: d.endpoint.ID, Log: d.Log,
			Read:    func() ([]byte, error) { return d.ReadFile(d.Network.PortAd) },
			Changed: func(public cedar.Sinful, _ []cedar.Sinful) { d.set(public, public, true) },
		}
		wg.Go(func() { w.Run(ctx) })
	}
	for _, l := range d.listeners {
		run(func(ctx context.Context) error { return d.Server.Serve(ctx, l) })
	}
	for _, p := range d.packets {
		run(func(ctx context.Context) error { return d.Server.ServePackets(ctx, p) })
	}
	if d.endpoint == nil {
		for i, address := range d.Network.Brokers {
			b := d.broker(i, address)
			wg.Go(func() { b.Run(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(first, d.File.Remove(d.Local()), d.Super.Remove(d.Local()))
}

func (d *Door) broker(n int, address string) *listen.Broker {
	return &listen.Broker{
		Address: address,
		Open:    func(ctx context.Context) (*cedar.Conn, error) { return d.Broker(ctx, address) },
		Dial:    d.Dial,
		Serve:   d.Server.ServeConn,
		Name:    d.Name,

		PrivateNetwork: d.Network.PrivateName,

		Heartbeat: d.Network.Heartbeat, Reconnect: d.Network.Reconnect, Log: d.Log,
		Registered: func(ccbid string) {
			d.contacts.Set(n, ccbid)
			d.refresh()
		},
	}
}

// Name says who we are, for the logs of others: "STARTD <address>".
func (d *Door) Name() string {
	if public, ok := d.Public(); ok {
		return d.Subsystem + " " + public.String()
	}
	return d.Subsystem + " " + d.Local().String()
}

// Public returns the address that others are told. It returns false as long
// as there is none.
func (d *Door) Public() (cedar.Sinful, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.public, d.known
}

// Local returns the address for tools on this machine.
func (d *Door) Local() cedar.Sinful {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.local
}

// refresh works out the address of own ports.
func (d *Door) refresh() {
	d.refreshing.Lock()
	defer d.refreshing.Unlock()
	d.mu.Lock()
	r := d.reach
	d.mu.Unlock()
	r.Contacts = d.contacts.Brokers()
	d.set(d.Network.Local(r), d.Network.Public(r), true)
}

// set takes over addresses, writes the file and tells of a change.
func (d *Door) set(local, public cedar.Sinful, known bool) {
	d.mu.Lock()
	changed := known && (!d.known || d.public.String() != public.String())
	moved := d.local.String() != local.String()
	d.local, d.public, d.known = local, public, known
	d.mu.Unlock()
	if moved {
		if err := errors.Join(d.File.Write(local), d.Super.Write(local)); err != nil {
			d.Log.Error("could not write the address file", "err", err)
		}
	}
	if changed {
		d.Log.Info("address", "addr", public.String())
		if d.Changed != nil {
			d.Changed(public)
		}
	}
}
