// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// wildcard reports whether text fits a pattern, without regard to case. A
// pattern has one '*' for anything, or a second one as its last character;
// any other '*' stands for itself. This is how the field's lists match, not a
// glob.
func wildcard(pattern, text string) bool {
	pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	start, rest, ok := strings.Cut(pattern, "*")
	if !ok {
		return pattern == text
	}
	tail, ok := strings.CutPrefix(text, start)
	if !ok {
		return false
	}
	if inner, ok := strings.CutSuffix(rest, "*"); ok {
		return strings.Contains(tail, inner)
	}
	return strings.HasSuffix(tail, rest)
}

// network is a set of addresses: a prefix, everything, or those of this host.
type network struct {
	prefix netip.Prefix
	all    bool
	local  bool
}

// localIPs is the word for the addresses of this host in a list.
const localIPs = "{:local_ips:}"

// parseNetwork reads an address, "a.b.c.d/n", "a.b.c.d/m.m.m.m", "a.b.*",
// "2001:db8::/32", "2001:db8:*" or "*". It returns false for what is a host
// name.
func parseNetwork(text string) (network, bool) {
	switch {
	case text == "*", text == "*/*":
		return network{all: true}, true
	case strings.EqualFold(text, localIPs):
		return network{local: true}, true
	}
	if base, mask, ok := strings.Cut(text, "/"); ok {
		return parseMasked(base, mask)
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if strings.ContainsRune(text, ':') {
		return parseV6(text)
	}
	return parseV4(text)
}

func parseMasked(base, mask string) (network, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(base, "["), "]"))
	if err != nil || addr.Zone() != "" {
		return network{}, false
	}
	length, err := strconv.ParseUint(mask, 10, 8)
	if err != nil {
		m, err := netip.ParseAddr(mask)
		if err != nil || !m.Is4() || !addr.Is4() {
			return network{}, false
		}
		b := m.As4()
		word := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
		if length = uint64(bits.LeadingZeros32(^word)); word<<length != 0 {
			return network{}, false // ones behind zeros
		}
	}
	if int(length) > addr.BitLen() {
		return network{}, false
	}
	if addr.Is4In6() { // peers' addresses have the short form
		const mapped = 96
		if length < mapped {
			return network{}, false
		}
		addr, length = addr.Unmap(), length-mapped
	}
	return network{prefix: netip.PrefixFrom(addr, int(length)).Masked()}, true
}

// parseV4 reads one to four numbers; fewer than four stand for all addresses
// that begin with them, with or without ".*" behind.
func parseV4(text string) (network, bool) {
	if len(text) > len("255.255.255.255") {
		return network{}, false
	}
	if t, ok := strings.CutSuffix(text, "*"); ok {
		text = t
	}
	text = strings.TrimSuffix(text, ".")
	var b [4]byte
	n := 0
	for part := range strings.SplitSeq(text, ".") {
		v, err := strconv.ParseUint(part, 10, 8)
		if err != nil || n == len(b) {
			return network{}, false
		}
		b[n] = byte(v)
		n++
	}
	return network{prefix: netip.PrefixFrom(netip.AddrFrom4(b), 8*n)}, true
}

// parseV6 reads an address, or the leading groups of one with ":*" behind.
func parseV6(text string) (network, bool) {
	groups, ok := strings.CutSuffix(text, ":*")
	if !ok {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return network{}, false
		}
		if addr.Is4In6() {
			return network{prefix: netip.PrefixFrom(addr.Unmap(), 32)}, true
		}
		return network{prefix: netip.PrefixFrom(addr, 128)}, true
	}
	if strings.Contains(groups, "::") || strings.ContainsRune(groups, '*') {
		return network{}, false
	}
	addr, err := netip.ParseAddr(groups + "::")
	if err != nil {
		return network{}, false
	}
	return network{prefix: netip.PrefixFrom(addr, 16*(1+strings.Count(groups, ":")))}, true
}

// contains reports whether an address is in the network; local tells the
// addresses of this host.
func (n network) contains(addr netip.Addr, local func(netip.Addr) bool) bool {
	switch {
	case n.all:
		return true
	case n.local:
		return addr.IsLoopback() || local != nil && local(addr)
	}
	return n.prefix.Contains(addr)
}
