// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
)

// Interface is one network interface of the machine.
type Interface struct {
	Name  string
	Up    bool
	Addrs []netip.Addr
}

// Interfaces returns those of this machine.
func Interfaces() ([]Interface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, errs.E("endpoint.Interfaces", errs.Broken, "", err)
	}
	var all []Interface
	for _, i := range list {
		out := Interface{Name: i.Name, Up: i.Flags&net.FlagUp != 0}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away meanwhile
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				out.Addrs = append(out.Addrs, p.Addr().Unmap())
			}
		}
		all = append(all, out)
	}
	return all, nil
}

// Pick returns the address of each protocol that a setting such as
// NETWORK_INTERFACE chooses among the machine's: an address itself, or the
// best one among the interfaces whose name or address the pattern matches. An
// address that is not valid means that there is none.
func (n Network) Pick(pattern string, all []Interface) (v4, v6 netip.Addr, err error) {
	literal, lerr := netip.ParseAddr(strings.Trim(pattern, "[]"))
	if lerr == nil {
		literal = literal.Unmap()
		if literal.Is4() && n.IPv4 == Off || literal.Is6() && n.IPv6 == Off {
			return v4, v6, errs.E("endpoint.Pick", errs.Conflict, pattern, errors.New("the protocol of this address is switched off by ENABLE_IPV4 or ENABLE_IPV6"))
		}
	}
	for _, i := range all {
		for _, a := range i.Addrs {
			if lerr == nil && a.WithZone("") != literal || lerr != nil && !matches(pattern, i.Name, a) {
				continue
			}
			// Links of IPv6 need a zone, which no address on the wire has.
			if a.Is4() && n.IPv4 != Off && rank(a, i.Up) > rank(v4, true) {
				v4 = a
			}
			if a.Is6() && n.IPv6 != Off && !a.IsLinkLocalUnicast() && rank(a, i.Up) > rank(v6, true) {
				v6 = a
			}
		}
	}
	if n.IPv6 == Auto && v4.IsValid() && v6.IsLoopback() && !v4.IsLoopback() {
		v6 = netip.Addr{} // a machine without IPv6 has ::1 all the same
	}
	switch {
	case v4.IsValid() || v6.IsValid():
	case lerr == nil:
		return v4, v6, errs.E("endpoint.Pick", errs.NotFound, pattern, errors.New("no interface of this machine has this address"))
	default:
		return v4, v6, errs.E("endpoint.Pick", errs.NotFound, pattern, errors.New("no interface of this machine has a name or address like this"))
	}
	if n.IPv4 == On && !v4.IsValid() || n.IPv6 == On && !v6.IsValid() {
		return v4, v6, errs.E("endpoint.Pick", errs.NotFound, pattern, errors.New("ENABLE_IPV4 or ENABLE_IPV6 is true, and no interface has an address of it"))
	}
	return v4, v6, nil
}

// Source returns the addresses that outgoing connections come from: those that
// NETWORK_INTERFACE chooses where BIND_ALL_INTERFACES is false, and else what
// the system chooses for each.
func (n Network) Source(all []Interface) (listen.Source, error) {
	if n.BindAll {
		return listen.Source{}, nil
	}
	v4, v6, err := n.Pick(n.Interface, all)
	if err != nil {
		return listen.Source{}, errs.E("endpoint.Source", errs.Other, "NETWORK_INTERFACE", err)
	}
	return listen.Source{V4: v4, V6: v6}, nil
}

// Outgoing is Source with the interfaces of this machine.
func (n Network) Outgoing() (listen.Source, error) {
	if n.BindAll {
		return listen.Source{}, nil
	}
	all, err := Interfaces()
	if err != nil {
		return listen.Source{}, err
	}
	return n.Source(all)
}

// matches reports whether one of several patterns matches an interface.
func matches(patterns, name string, a netip.Addr) bool {
	for p := range strings.FieldsFuncSeq(patterns, func(r rune) bool { return r == ',' || r == ' ' }) {
		for _, s := range []string{name, a.WithZone("").String()} {
			if ok, err := path.Match(strings.ToLower(p), strings.ToLower(s)); err == nil && ok {
				return true
			}
		}
	}
	return false
}

// rank orders addresses by how far they are seen: the wider the better.
func rank(a netip.Addr, up bool) int {
	r := 0
	switch {
	case !a.IsValid():
		return 0
	case a.IsLoopback():
		r = 1
	case a.IsLinkLocalUnicast():
		r = 2
	case a.IsPrivate():
		r = 3
	default:
		r = 4
	}
	if up {
		r += 4
	}
	return r
}

// Resolve returns the first address of a host.
func Resolve(ctx context.Context, host string) (netip.Addr, error) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	return all[0].Unmap(), nil
}

// Local reports whether an address is of this machine.
func Local(a netip.Addr) bool {
	if a = a.Unmap(); a.IsLoopback() {
		return true
	}
	all, err := Interfaces()
	if err != nil {
		return false
	}
	for _, i := range all {
		if slices.Contains(i.Addrs, a) {
			return true
		}
	}
	return false
}
