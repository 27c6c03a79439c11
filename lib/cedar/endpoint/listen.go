// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// Listen opens the command sockets, one for each protocol, on the same port
// where that is possible. port 0 takes one from In, or any.
func (n Network) Listen(ctx context.Context, port int, v4, v6 netip.Addr) ([]net.Listener, error) {
	var hosts []netip.Addr
	for _, a := range []netip.Addr{v4, v6} {
		switch {
		case !a.IsValid():
		case !n.BindAll:
			hosts = append(hosts, a)
		case a.Is4():
			hosts = append(hosts, netip.IPv4Unspecified())
		default:
			hosts = append(hosts, netip.IPv6Unspecified())
		}
	}
	if len(hosts) == 0 {
		return nil, errs.E("endpoint.Listen", errs.Invalid, "", errors.New("no address to listen at"))
	}
	ports := []int{port}
	if port == 0 && n.In.Low > 0 {
		ports = ports[:0]
		for i, first := 0, rand.IntN(n.In.High-n.In.Low+1); i <= n.In.High-n.In.Low; i++ {
			ports = append(ports, n.In.Low+(first+i)%(n.In.High-n.In.Low+1))
		}
	}
	var last error
	for _, p := range ports {
		all, err := listenAt(ctx, hosts, p)
		if err == nil {
			return all, nil
		}
		last = err
		var sys *os.SyscallError
		if !errors.As(err, &sys) || sys.Syscall != "bind" {
			break
		}
	}
	if len(ports) > 1 {
		return nil, errs.E("endpoint.Listen", errs.Exhausted, fmt.Sprintf("ports %d to %d", n.In.Low, n.In.High), last)
	}
	return nil, errs.E("endpoint.Listen", errs.Conflict, "port "+strconv.Itoa(port), last)
}

// ListenDatagrams opens a socket for datagrams beside each of the command
// sockets that Listen opened, at the same address and port.
func (n Network) ListenDatagrams(ctx context.Context, beside []net.Listener) ([]net.PacketConn, error) {
	var all []net.PacketConn
	var lc net.ListenConfig
	for _, l := range beside {
		at, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		network := "udp4"
		if at.AddrPort().Addr().Unmap().Is6() {
			network = "udp6"
		}
		p, err := lc.ListenPacket(ctx, network, at.String())
		if err != nil {
			for _, o := range all {
				_ = o.Close()
			}
			return nil, errs.E("endpoint.Listen", errs.Conflict, at.String(), err)
		}
		all = append(all, p)
	}
	return all, nil
}

func listenAt(ctx context.Context, hosts []netip.Addr, port int) ([]net.Listener, error) {
	var all []net.Listener
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // no peer asks for it, and each starter would pay for the socket
	for _, h := range hosts {
		network := "tcp4"
		if h.Is6() {
			network = "tcp6"
		}
		l, err := lc.Listen(ctx, network, netip.AddrPortFrom(h, uint16(port)).String())
		if err != nil {
			for _, o := range all {
				_ = o.Close()
			}
			return nil, err
		}
		all = append(all, l)
		port = l.Addr().(*net.TCPAddr).Port
	}
	return all, nil
}

// Return opens sockets of a process that has no command socket, for a daemon
// behind a broker to connect to, and returns their address. resolve is Resolve,
// for TCP_FORWARDING_HOST.
func (n Network) Return(ctx context.Context, all []Interface, resolve func(ctx context.Context, host string) (netip.Addr, error)) ([]net.Listener, cedar.Sinful, error) {
	var r Reach
	var err error
	if r.V4, r.V6, err = n.Pick(n.Interface, all); err != nil {
		return nil, cedar.Sinful{}, errs.E("endpoint.Return", errs.Other, "NETWORK_INTERFACE", err)
	}
	if n.Forwarding != "" {
		if r.Forward, err = resolve(ctx, n.Forwarding); err != nil {
			return nil, cedar.Sinful{}, errs.E("endpoint.Return", errs.NotFound, "TCP_FORWARDING_HOST", err)
		}
	}
	listeners, err := n.Listen(ctx, 0, r.V4, r.V6)
	if err != nil {
		return nil, cedar.Sinful{}, err
	}
	if t, ok := listeners[0].Addr().(*net.TCPAddr); ok {
		r.Port = t.Port
	}
	return listeners, n.Public(r), nil
}
