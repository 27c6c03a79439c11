// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net"
	"net/netip"
	"path"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// Interface is one network interface that is up.
type Interface struct {
	Name            string
	HardwareAddress string // 00:16:3e:5e:6c:00; "" where there is none
	Addresses       []netip.Prefix
	Wake            Wake
}

// Wake is what the card of an interface says about waking the machine.
type Wake struct {
	Supported, Enabled WakeModes
	// Err is why the card does not tell: of kind Unsupported where it cannot
	// wake anything, Denied where the privilege to ask is missing. Both modes
	// are zero then.
	Err error
}

// WakeModes is a set of what may wake a machine.
type WakeModes uint8

// The modes, in the order in which HTCondor lists them.
const (
	WakePhysical WakeModes = 1 << iota
	WakeUnicast
	WakeMulticast
	WakeBroadcast
	WakeARP
	WakeMagic
	WakeMagicSecure
)

// String returns the modes by HTCondor's words, or NONE.
func (m WakeModes) String() string {
	var words []string
	for i, word := range [...]string{"Physical Packet", "UniCast Packet", "MultiCast Packet", "BroadCast Packet",
		"ARP Packet", "Magic Packet", "Secure Magic Packet"} {
		if m&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	if words == nil {
		return "NONE"
	}
	return strings.Join(words, ",")
}

// ChooseAddress sets IPv4, IPv6 and Network by a value of NETWORK_INTERFACE: a
// list of names of interfaces and addresses, in which * and ? stand for other
// characters. Of each family it takes the address that most of the world can
// reach: public before private before loopback, the first of its kind.
// Addresses that are valid on one link only, and the IPv6 loopback, are never
// chosen. It reports whether any address is left. An address written in full
// needs no interface: it may be that of a router before the machine.
func (inv *Inventory) ChooseAddress(pattern string) bool {
	patterns := strings.FieldsFunc(strings.ToLower(pattern), func(r rune) bool { return strings.ContainsRune(", \t", r) })
	inv.IPv4, inv.IPv6, inv.Network = "", "", nil
	var best4, best6 netip.Addr
	take := func(a netip.Addr, on *Interface) {
		best := &best6
		if a.Is4() {
			best = &best4
		}
		if r := reach(a); r == 0 || best.IsValid() && r <= reach(*best) {
			return
		}
		*best = a
		if a.Is4() {
			inv.Network = on
		}
	}
	for i := range inv.Interfaces {
		on := &inv.Interfaces[i]
		named := matches(patterns, strings.ToLower(on.Name))
		for _, p := range on.Addresses {
			if a := p.Addr().Unmap(); named || matches(patterns, a.WithZone("").String()) {
				take(a, on)
			}
		}
	}
	for _, p := range patterns {
		a, err := netip.ParseAddr(p)
		if err == nil && !a.IsUnspecified() && (a.Is4() && !best4.IsValid() || a.Is6() && !best6.IsValid()) {
			take(a.Unmap(), nil)
		}
	}
	if best4.IsValid() {
		inv.IPv4 = best4.String()
	}
	if best6.IsValid() {
		inv.IPv6 = best6.WithZone("").String()
	}
	return best4.IsValid() || best6.IsValid()
}

func matches(patterns []string, word string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, word); ok && err == nil {
			return true
		}
	}
	return false
}

// reach ranks an address by how much of the world can reach it; 0 is never
// advertised.
func reach(a netip.Addr) int {
	switch {
	case a.IsGlobalUnicast() && !a.IsPrivate():
		return 3
	case a.IsPrivate():
		return 2
	case a.IsLoopback() && a.Is4():
		return 1
	}
	return 0
}

// preferInterface applies NETWORK_INTERFACE.
func (inv *Inventory) preferInterface(snap *config.Snapshot) (changed bool, err error) {
	s, ok := given(snap, "NETWORK_INTERFACE")
	if !ok || !inv.Known("Interfaces") {
		return false, nil
	}
	was4, was6 := inv.IPv4, inv.IPv6
	if !inv.ChooseAddress(s.Value) {
		return false, &config.Problem{File: s.Origin.File, Line: s.Origin.Line, Column: s.Origin.Column, EndLine: s.Origin.EndLine,
			Knob: "NETWORK_INTERFACE", Value: s.Value, Message: "names no address of this machine",
			Want: "an interface or address of: " + inv.interfaces(), Class: config.BadValue}
	}
	for _, field := range [...]string{"IPv4", "IPv6"} {
		delete(inv.Facts, field)
	}
	source := "NETWORK_INTERFACE " + s.Origin.String()
	if inv.IPv4 != "" {
		inv.Learn(source, "IPv4")
	}
	if inv.IPv6 != "" {
		inv.Learn(source, "IPv6")
	}
	return inv.IPv4 != was4 || inv.IPv6 != was6, nil
}

// maxListed bounds how many interfaces a message names.
const maxListed = 12

func (inv *Inventory) interfaces() string {
	var words []string
	for _, i := range inv.Interfaces {
		if len(words) == maxListed {
			words = append(words, "…")
			break
		}
		word := i.Name
		for _, p := range i.Addresses {
			word += " " + p.Addr().String()
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// publishNetwork writes what is needed to wake the machine: the attributes of
// the interface that has the advertised IPv4 address, since that is where a
// wake-up packet goes.
func (inv *Inventory) publishNetwork(ad *classad.Ad) {
	for _, name := range [...]string{"HardwareAddress", "SubnetMask", "IsWakeOnLanSupported", "IsWakeOnLanEnabled", "IsWakeAble",
		"WakeOnLanSupportedFlags", "WakeOnLanEnabledFlags"} {
		ad.Delete(name)
	}
	on := inv.Network
	if on == nil {
		return
	}
	if on.HardwareAddress != "" {
		ad.SetString("HardwareAddress", on.HardwareAddress)
	}
	for _, p := range on.Addresses {
		if p.Addr().Unmap().String() == inv.IPv4 {
			ad.SetString("SubnetMask", net.IP(net.CIDRMask(p.Bits(), 32)).String())
		}
	}
	ad.SetBool("IsWakeOnLanSupported", on.Wake.Supported&WakeMagic != 0)
	ad.SetBool("IsWakeOnLanEnabled", on.Wake.Enabled&WakeMagic != 0)
	ad.SetBool("IsWakeAble", on.Wake.Supported&on.Wake.Enabled != 0)
	ad.SetString("WakeOnLanSupportedFlags", on.Wake.Supported.String())
	ad.SetString("WakeOnLanEnabledFlags", on.Wake.Enabled.String())
}
