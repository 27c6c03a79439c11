// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
)

// Resolver looks names and addresses up; [net.Resolver] is one.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) ([]string, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// HostNames looks up the names of peers for lists that have names of hosts.
// The owner of an address can give it any name, so only a name that leads back
// to the address counts. What was found is kept for a while. It is safe for
// concurrent use.
type HostNames struct {
	Resolver Resolver
	Clock    clock.Clock
	Timeout  time.Duration // for all look-ups of one address; 0 = 5 s

	mu    sync.Mutex
	found map[netip.Addr]hostNames
}

type hostNames struct {
	names []string
	until time.Duration
}

const (
	namesKept  = 5 * time.Minute
	noNames    = 30 * time.Second // for addresses without a name
	maxHosts   = 10_000
	maxAliases = 16
)

// Of returns the names of an address, without a final dot.
func (h *HostNames) Of(addr netip.Addr) []string { return h.Within(context.Background(), addr) }

// Within is Of, and ends with ctx: then there are no names. Its caller must
// hold no lock, for a server of names that belongs to a peer may take the
// whole Timeout.
func (h *HostNames) Within(ctx context.Context, addr netip.Addr) []string {
	addr = addr.Unmap().WithZone("")
	now := h.Clock.Now().Boot
	h.mu.Lock()
	known, ok := h.found[addr]
	h.mu.Unlock()
	if ok && now < known.until {
		return known.names
	}
	names := h.look(ctx, addr)
	if ctx.Err() != nil {
		return names // nothing was found out that holds for the next who asks
	}
	keep := namesKept
	if len(names) == 0 {
		keep = noNames
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.found == nil || len(h.found) >= maxHosts {
		h.found = map[netip.Addr]hostNames{}
	}
	h.found[addr] = hostNames{names, now + keep}
	return names
}

func (h *HostNames) look(ctx context.Context, addr netip.Addr) []string {
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	candidates, err := h.Resolver.LookupAddr(ctx, addr.String())
	if err != nil {
		return nil
	}
	var names []string
	for _, name := range candidates[:min(len(candidates), maxAliases)] {
		back, err := h.Resolver.LookupNetIP(ctx, "ip", name)
		if err == nil && slices.ContainsFunc(back, func(a netip.Addr) bool { return a.Unmap() == addr }) {
			names = append(names, strings.TrimSuffix(name, "."))
		}
	}
	return names
}

// Addresses returns the addresses of a host in a list, for [Hosts.Lookup]; none if
// ctx ends before they are found.
func (h *HostNames) Addresses(ctx context.Context, name string) []netip.Addr {
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addrs, err := h.Resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil
	}
	return addrs
}
