// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/netip"

	"github.com/execpoint/execpoint/lib/cedar"
)

// Reach is where a daemon with sockets of its own can be reached.
type Reach struct {
	Port     int
	V4, V6   netip.Addr // of the machine, as Pick chose them
	Private  netip.Addr // as Pick chose it for PrivateInterface; may be not valid
	Forward  netip.Addr // what Forwarding stands for; may be not valid
	UDP      bool       // a datagram socket listens too
	Contacts []cedar.Broker
}

// Public returns the address for others: in ads, claim ids and
// registrations.
func (n Network) Public(r Reach) cedar.Sinful {
	s := n.plain(r, r.Forward)
	s.NoUDP = !r.UDP || n.Forwarding != ""
	if r.Private.IsValid() && n.PrivateName != "" && r.Private != n.primary(r, r.Forward) {
		p := n.plain(Reach{Port: r.Port, V4: only4(r.Private), V6: only6(r.Private)}, netip.Addr{})
		p.Addrs, p.Alias = nil, ""
		s.PrivAddr, s.PrivNet = &p, n.PrivateName
	}
	if len(r.Contacts) > 0 {
		s.CCB, s.PrivNet = r.Contacts, n.PrivateName
	}
	return s
}

// Local returns the address for tools on this machine, which the address file
// shows: the private one if there is one, and never the one of a host that
// only forwards.
func (n Network) Local(r Reach) cedar.Sinful {
	if r.Private.IsValid() {
		s := n.plain(Reach{Port: r.Port, V4: only4(r.Private), V6: only6(r.Private)}, netip.Addr{})
		s.Addrs = n.plain(r, netip.Addr{}).Addrs
		s.Alias = ""
		return s
	}
	s := n.plain(r, netip.Addr{})
	if f := r.Forward; f.IsValid() {
		s.Host = n.primary(r, f).String()
	}
	return s
}

// plain is the address of the sockets, with forward in place of that of its
// protocol.
func (n Network) plain(r Reach, forward netip.Addr) cedar.Sinful {
	s := cedar.Sinful{Host: n.primary(r, forward).String(), Port: r.Port, Alias: n.Alias}
	order := []netip.Addr{r.V4, r.V6}
	if !n.IPv4First {
		order = []netip.Addr{r.V6, r.V4}
	}
	for _, a := range order {
		if !a.IsValid() {
			continue
		}
		if forward.IsValid() && forward.Is4() == a.Is4() {
			a = forward
		}
		s.Addrs = append(s.Addrs, netip.AddrPortFrom(a, uint16(r.Port)))
	}
	return s
}

// primary is the address in front: old peers know no other, and are of IPv4.
func (n Network) primary(r Reach, forward netip.Addr) netip.Addr {
	switch {
	case forward.IsValid():
		return forward
	case r.V4.IsValid():
		return r.V4
	}
	return r.V6
}

func only4(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	return netip.Addr{}
}

func only6(a netip.Addr) netip.Addr {
	if a.Is6() {
		return a
	}
	return netip.Addr{}
}
