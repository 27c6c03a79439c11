// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/config"
)

// Network is what a configuration says about where a daemon listens and how it
// is reached.
type Network struct {
	Interface        string // NETWORK_INTERFACE: address, name or pattern; "*" is the best there is
	PrivateInterface string // PRIVATE_NETWORK_INTERFACE
	PrivateName      string // PRIVATE_NETWORK_NAME
	BindAll          bool   // BIND_ALL_INTERFACES
	Datagrams        bool   // WANT_UDP_COMMAND_SOCKET
	In, Out          listen.Ports
	Reuse            bool   // ALWAYS_REUSEADDR
	Forwarding       string // TCP_FORWARDING_HOST
	Alias            string // HOST_ALIAS
	IPv4, IPv6       Protocol
	IPv4First        bool // ADVERTISE_IPV4_FIRST

	SharedPort bool     // USE_SHARED_PORT, or <SUBSYSTEM>_USE_SHARED_PORT
	PortAd     string   // SHARED_PORT_DAEMON_AD_FILE
	SocketDir  string   // DAEMON_SOCKET_DIR, or $(LOCK)/daemon_sock; for when there is no cookie
	Brokers    []string // CCB_ADDRESS
	NoRelay    bool     // CCB_CLIENT_STREAMING is false
	Heartbeat  time.Duration
	Reconnect  time.Duration
}

// Protocol says whether an internet protocol is used.
type Protocol uint8

// Auto uses the protocol if the machine has an address of it.
const (
	Auto Protocol = iota
	Off
	On
)

// NetworkFrom reads the knobs for a daemon of the subsystem, as "STARTD".
func NetworkFrom(s *config.Snapshot, subsystem string) (Network, error) {
	r := &reader{config.Reader{Snapshot: s}}
	n := Network{
		Interface:        cmp.Or(r.String("NETWORK_INTERFACE"), "*"),
		PrivateInterface: r.String("PRIVATE_NETWORK_INTERFACE"),
		PrivateName:      r.String("PRIVATE_NETWORK_NAME"),
		BindAll:          r.Bool("BIND_ALL_INTERFACES"),
		Datagrams:        r.Bool("WANT_UDP_COMMAND_SOCKET"),
		In:               r.ports("IN_LOWPORT", "IN_HIGHPORT"),
		Out:              r.ports("OUT_LOWPORT", "OUT_HIGHPORT"),
		Reuse:            r.Bool("ALWAYS_REUSEADDR"),
		Forwarding:       r.String("TCP_FORWARDING_HOST"),
		Alias:            r.String("HOST_ALIAS"),
		IPv4:             r.protocol("ENABLE_IPV4"),
		IPv6:             r.protocol("ENABLE_IPV6"),
		IPv4First:        r.Bool("ADVERTISE_IPV4_FIRST"),
		PortAd:           r.String("SHARED_PORT_DAEMON_AD_FILE"),
		SocketDir:        r.String("DAEMON_SOCKET_DIR"),
		Brokers:          r.List("CCB_ADDRESS"),
		NoRelay:          !r.Bool("CCB_CLIENT_STREAMING"),
		Heartbeat:        r.Duration("CCB_HEARTBEAT_INTERVAL"),
		Reconnect:        r.Duration("CCB_RECONNECT_TIME"),
	}
	shared := subsystem + "_USE_SHARED_PORT"
	if r.String(shared) == "" {
		shared = "USE_SHARED_PORT"
	}
	n.SharedPort = r.Bool(shared)
	if n.SocketDir == "" || strings.EqualFold(n.SocketDir, "auto") {
		n.SocketDir = ""
		if lock := r.String("LOCK"); lock != "" {
			n.SocketDir = filepath.Join(lock, "daemon_sock")
		}
	}
	if n.IPv4 == Off && n.IPv6 == Off {
		r.Wrong("ENABLE_IPV6", "switches the last protocol off", "true, or ENABLE_IPV4 true: without either there is no network")
	}
	if err := r.Err(); err != nil {
		return Network{}, err
	}
	return n, nil
}

// reader reads the knobs of a Network.
type reader struct{ config.Reader }

// protocol reads ENABLE_IPV4 or ENABLE_IPV6.
func (r *reader) protocol(name string) Protocol {
	text := r.String(name)
	if text == "" || strings.EqualFold(text, "auto") {
		return Auto
	}
	on, err := r.Snapshot.Bool(name)
	switch {
	case err != nil:
		r.Wrong(name, "is no protocol's switch", "true, false or auto")
		return Auto
	case on:
		return On
	}
	return Off
}

// ports reads a range of ports, or that of LOWPORT and HIGHPORT where this one is
// not set. As in HTCondor the bounds are integer expressions, and two zeros stand
// for no range.
func (r *reader) ports(low, high string) listen.Ports {
	a, b, set := r.bounds(low, high)
	if !set {
		low, high = "LOWPORT", "HIGHPORT"
		if a, b, set = r.bounds(low, high); !set {
			return listen.Ports{}
		}
	}
	const most = 65535
	switch {
	case r.Err() != nil:
	case a < 1 || a > most:
		r.Wrong(low, "is no port", "a port from 1 to 65535")
	case b < 1 || b > most:
		r.Wrong(high, "is no port", "a port from 1 to 65535")
	case a > b:
		r.Wrong(high, "is below "+low, fmt.Sprintf("%s (%d) or more", low, a))
	default:
		return listen.Ports{Low: int(a), High: int(b)}
	}
	return listen.Ports{}
}

// bounds reads the two knobs of a range; set is false if that is none.
func (r *reader) bounds(low, high string) (a, b int64, set bool) {
	if r.String(low) == "" || r.String(high) == "" {
		return 0, 0, false
	}
	a, b = r.Int(low), r.Int(high)
	return a, b, a != 0 || b != 0
}
