// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// Ports is a range of ports, both ends included; the zero value is any port.
type Ports struct{ Low, High int }

// Dialer connects to daemons in all the ways in which an address can say that
// they are reached. Its fields are set before the first use.
type Dialer struct {
	// Name says who we are, in the logs of shared ports and brokers, as
	// "STARTD <address>".
	Name func() string
	// PrivateNetwork is the name of the network we are in; addresses of the
	// same network are reached through their private address.
	PrivateNetwork string
	// Ports are those outgoing connections come from, and Source the local
	// addresses.
	Ports  Ports
	Source Source
	// Reuse has a dialer take ports of the range at which earlier connections
	// still linger (SO_REUSEADDR), and returns what tells whether connecting
	// failed because the lingering one was to the same end. Nil leaves such
	// ports alone.
	Reuse func(*net.Dialer) (lingers func(error) bool)
	// Attempt bounds one attempt to connect; 20 s if it is 0.
	Attempt time.Duration
	// Connect opens a connection to "host:port"; nil is a net.Dialer that
	// follows Ports and Source.
	Connect func(ctx context.Context, hostport string) (net.Conn, error)
	// Reverse asks brokers for reversed connections; nil leaves addresses
	// behind brokers out of reach.
	Reverse *Reverser
}

// Source is where outgoing connections come from: a local address for each
// protocol. The zero value leaves the choice to the system; with only one of
// them nothing is reached over the other protocol.
type Source struct{ V4, V6 netip.Addr }

// any reports whether the system chooses.
func (s Source) any() bool { return !s.V4.IsValid() && !s.V6.IsValid() }

// toward returns the addresses from which a target may be dialled: the one of
// its protocol, or for a name all there are.
func (s Source) toward(hostport string) ([]netip.Addr, error) {
	var all []netip.Addr
	to, err := netip.ParseAddrPort(hostport)
	for _, a := range [...]netip.Addr{s.V4, s.V6} {
		if a.IsValid() && (err != nil || a.Is4() == to.Addr().Unmap().Is4()) {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no address of this protocol is ours to come from: BIND_ALL_INTERFACES is false, and NETWORK_INTERFACE has none")
	}
	return all, nil
}

// near returns what an address is for a peer in a network: inside it is
// reached directly.
func near(to cedar.Sinful, network string) cedar.Sinful {
	if to.PrivNet == "" || to.PrivNet != network {
		return to
	}
	if to.PrivAddr != nil {
		return *to.PrivAddr
	}
	to.CCB = nil
	return to
}

// noDeadline is what a shared port is sent for a context without deadline.
const noDeadline = -1

// Dial connects to a daemon and returns a connection on which the command
// protocol is next, as if it had gone there directly: it is a security.Dialer.
// ctx bounds it; the error is of kind Transient when the daemon could not be
// reached.
func (d *Dialer) Dial(ctx context.Context, to cedar.Sinful) (net.Conn, error) {
	to = near(to, d.PrivateNetwork)
	if to.SockID != "" && !ValidID(to.SockID) {
		return nil, errs.E("listen.Dial", errs.Invalid, to.HostPort(), fmt.Errorf("sock is %.40q; want letters, digits, '.', '_' and '-'", to.SockID))
	}
	if to.SockID == SharedPortSelf {
		return nil, errs.E("listen.Dial", errs.Unsupported, to.HostPort(), errors.New("the shared port itself takes no commands of ours"))
	}
	var nc net.Conn
	var err error
	switch {
	case len(to.CCB) == 0:
		nc, err = d.reach(ctx, to)
	case d.Reverse == nil:
		err = errs.E("listen.Dial", errs.Unsupported, to.HostPort(), errors.New("it is behind a broker, and nothing here asks brokers"))
	default:
		// Behind a shared port it is that one which is registered, and which
		// is asked for the daemon on the connection that it opens.
		nc, err = d.Reverse.connect(ctx, to.CCB)
	}
	if err != nil {
		return nil, err
	}
	if to.SockID != "" {
		if err := d.through(ctx, nc, to.SockID); err != nil {
			_ = nc.Close()
			return nil, err
		}
	}
	return nc, nil
}

// Post opens a socket for datagrams to a daemon, from Source but from any port:
// it is a security.Dialer, too. That it succeeds does not say that there is
// anybody.
func (d *Dialer) Post(ctx context.Context, to cedar.Sinful) (net.Conn, error) {
	to = near(to, d.PrivateNetwork)
	var all []error
	for _, hp := range targetsOf(to) {
		sources := []netip.Addr{{}}
		if !d.Source.any() {
			var err error
			if sources, err = d.Source.toward(hp); err != nil {
				all = append(all, err)
				continue
			}
		}
		for _, source := range sources {
			dialer := net.Dialer{}
			if source.IsValid() {
				dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
			}
			nc, err := dialer.DialContext(ctx, "udp", hp)
			if err == nil {
				return nc, nil
			}
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		all = append(all, errors.New("the address has neither host nor port"))
	}
	return nil, errs.E("listen.Post", errs.Transient, to.HostPort(), errors.Join(all...))
}

// through asks a shared port for the daemon that id stands for. Nothing is
// answered. The stream that says it is not used further: the daemon never sees
// these bytes, so they must not count for the digests of the conversation.
func (d *Dialer) through(ctx context.Context, nc net.Conn, id string) error {
	left := int64(noDeadline)
	if at, ok := ctx.Deadline(); ok {
		left = max(1, int64(time.Until(at)/time.Second))
	}
	conn := cedar.NewConn(nc, cedar.Limits{})
	release := conn.Bind(ctx)
	defer release()
	conn.PutInt(SharedPortConnect)
	conn.PutString(id)
	conn.PutString(d.name())
	conn.PutInt(left)
	conn.PutInt(0)
	return conn.EndMessage()
}

func (d *Dialer) name() string {
	if d.Name == nil {
		return ""
	}
	return d.Name()
}

// reach opens a connection to the first of the addresses that answers.
func (d *Dialer) reach(ctx context.Context, to cedar.Sinful) (net.Conn, error) {
	targets := targetsOf(to)
	if len(targets) == 0 {
		return nil, errs.E("listen.Dial", errs.Invalid, to.HostPort(), errors.New("the address has neither host nor port"))
	}
	if to.Port == 0 && to.SockID != "" && len(to.Addrs) == 0 {
		return nil, errs.E("listen.Dial", errs.Unsupported, to.HostPort(), errors.New("it has no port, only a named socket of its own machine"))
	}
	var all []error
	for i, hp := range targets {
		nc, err := d.attempt(ctx, hp, len(targets)-i)
		if err == nil {
			return nc, nil
		}
		all = append(all, err)
		if ctx.Err() != nil {
			break
		}
	}
	kind := errs.Transient
	if ctx.Err() != nil {
		kind = errs.Expired
	}
	return nil, errs.E("listen.Dial", kind, to.HostPort(), errors.Join(all...))
}

// attempt connects within its share of what time is left.
func (d *Dialer) attempt(ctx context.Context, hostport string, shares int) (net.Conn, error) {
	limit := d.Attempt
	if limit <= 0 {
		limit = 20 * time.Second
	}
	if at, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(at)/time.Duration(shares))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if d.Connect != nil {
		return d.Connect(ctx, hostport)
	}
	return d.connect(ctx, hostport)
}

// connect is net.Dialer with ports from a range and the addresses that are
// ours to come from.
func (d *Dialer) connect(ctx context.Context, hostport string) (net.Conn, error) {
	if d.Source.any() {
		return d.from(ctx, hostport, netip.Addr{})
	}
	sources, err := d.Source.toward(hostport)
	if err != nil {
		return nil, err
	}
	var all []error
	for _, source := range sources {
		nc, err := d.from(ctx, hostport, source)
		if err == nil {
			return nc, nil
		}
		all = append(all, err)
	}
	return nil, errors.Join(all...)
}

// from connects from a port of the range at one address, or at any.
func (d *Dialer) from(ctx context.Context, hostport string, source netip.Addr) (net.Conn, error) {
	dialer := net.Dialer{KeepAlive: time.Minute}
	if d.Ports.Low <= 0 {
		if source.IsValid() {
			dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
		}
		return dialer.DialContext(ctx, "tcp", hostport)
	}
	n := d.Ports.High - d.Ports.Low + 1
	if n < 1 || d.Ports.High > 65535 {
		return nil, fmt.Errorf("ports %d to %d are no range", d.Ports.Low, d.Ports.High)
	}
	lingers := func(error) bool { return false }
	if d.Reuse != nil {
		lingers = d.Reuse(&dialer)
	}
	first := rand.IntN(n)
	for i := range n {
		local := &net.TCPAddr{Port: d.Ports.Low + (first+i)%n}
		if source.IsValid() {
			local.IP = source.AsSlice()
		}
		dialer.LocalAddr = local
		nc, err := dialer.DialContext(ctx, "tcp", hostport)
		if err == nil || !portTaken(err) && !lingers(err) {
			return nc, err
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free", d.Ports.Low, d.Ports.High)
}

// portTaken reports whether a connection failed because our own end could not
// have its port.
func portTaken(err error) bool {
	var sys *os.SyscallError
	return errors.As(err, &sys) && sys.Syscall == "bind"
}

// targetsOf returns what may be dialled for an address, in order: the list of
// all its addresses if there is one, and else its host.
func targetsOf(to cedar.Sinful) []string {
	if len(to.Addrs) > 0 {
		all := make([]string, 0, min(len(to.Addrs), maxTargets))
		for _, a := range to.Addrs[:min(len(to.Addrs), maxTargets)] {
			all = append(all, a.String())
		}
		return all
	}
	if to.Host == "" || to.Port < 0 {
		return nil
	}
	return []string{net.JoinHostPort(to.Host, strconv.Itoa(to.Port))}
}

// maxTargets bounds how many addresses of one daemon are tried.
const maxTargets = 16
