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
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
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
	r := &knobs{s: s}
	n := Network{
		Interface:        r.text("NETWORK_INTERFACE", "*"),
		PrivateInterface: r.text("PRIVATE_NETWORK_INTERFACE", ""),
		PrivateName:      r.text("PRIVATE_NETWORK_NAME", ""),
		BindAll:          r.flag("BIND_ALL_INTERFACES"),
		Datagrams:        r.flag("WANT_UDP_COMMAND_SOCKET"),
		In:               r.ports("IN_LOWPORT", "IN_HIGHPORT"),
		Out:              r.ports("OUT_LOWPORT", "OUT_HIGHPORT"),
		Reuse:            r.flag("ALWAYS_REUSEADDR"),
		Forwarding:       r.text("TCP_FORWARDING_HOST", ""),
		Alias:            r.text("HOST_ALIAS", ""),
		IPv4:             r.protocol("ENABLE_IPV4"),
		IPv6:             r.protocol("ENABLE_IPV6"),
		IPv4First:        r.flag("ADVERTISE_IPV4_FIRST"),
		PortAd:           r.text("SHARED_PORT_DAEMON_AD_FILE", ""),
		SocketDir:        r.text("DAEMON_SOCKET_DIR", ""),
		Brokers:          s.List("CCB_ADDRESS"),
		NoRelay:          !r.flag("CCB_CLIENT_STREAMING"),
		Heartbeat:        r.duration("CCB_HEARTBEAT_INTERVAL"),
		Reconnect:        r.duration("CCB_RECONNECT_TIME"),
	}
	shared := subsystem + "_USE_SHARED_PORT"
	if set, ok := s.Lookup(shared); !ok || set.Value == "" {
		shared = "USE_SHARED_PORT"
	}
	n.SharedPort = r.flag(shared)
	if n.SocketDir == "" || strings.EqualFold(n.SocketDir, "auto") {
		n.SocketDir = ""
		if lock := r.text("LOCK", ""); lock != "" {
			n.SocketDir = filepath.Join(lock, "daemon_sock")
		}
	}
	if n.IPv4 == Off && n.IPv6 == Off {
		r.bad("ENABLE_IPV6", "false", "true, or ENABLE_IPV4 true: without either there is no network")
	}
	if err := errors.Join(r.errs...); err != nil {
		return Network{}, err
	}
	return n, nil
}

// knobs collects what is wrong in several settings.
type knobs struct {
	s    *config.Snapshot
	errs []error
}

func (k *knobs) bad(name, value, want string) {
	where := name
	if set, ok := k.s.Lookup(name); ok {
		where = set.Origin.String() + ": " + name
	}
	k.errs = append(k.errs, errs.E("endpoint.NetworkFrom", errs.Invalid, where, fmt.Errorf("is %q; want %s", value, want)))
}

func (k *knobs) text(name, otherwise string) string {
	if v := strings.TrimSpace(k.s.String(name)); v != "" {
		return v
	}
	return otherwise
}

func (k *knobs) flag(name string) bool {
	b, err := k.s.Bool(name)
	if err != nil {
		k.errs = append(k.errs, err)
	}
	return b
}

func (k *knobs) duration(name string) time.Duration {
	d, err := k.s.Duration(name)
	if err != nil {
		k.errs = append(k.errs, err)
	}
	return d
}

func (k *knobs) protocol(name string) Protocol {
	v := k.text(name, "auto")
	if strings.EqualFold(v, "auto") {
		return Auto
	}
	b, err := k.s.Bool(name)
	switch {
	case err != nil:
		k.bad(name, v, "true, false or auto")
		return Auto
	case b:
		return On
	}
	return Off
}

// ports reads a range, or that of LOWPORT and HIGHPORT if it is not set.
func (k *knobs) ports(low, high string) listen.Ports {
	if k.text(low, "") == "" || k.text(high, "") == "" {
		low, high = "LOWPORT", "HIGHPORT"
	}
	l, h := k.text(low, ""), k.text(high, "")
	if l == "" || h == "" {
		return listen.Ports{}
	}
	a, err1 := strconv.ParseUint(l, 10, 16)
	b, err2 := strconv.ParseUint(h, 10, 16)
	switch {
	case err1 != nil || a == 0:
		k.bad(low, l, "a port from 1 to 65535")
	case err2 != nil:
		k.bad(high, h, "a port from 1 to 65535")
	case a > b:
		k.bad(high, h, low+" ("+l+") or more")
	default:
		return listen.Ports{Low: int(a), High: int(b)}
	}
	return listen.Ports{}
}

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

// Reach is where a daemon with sockets of its own can be reached.
type Reach struct {
	Port     int
	V4, V6   netip.Addr // of the machine, as Pick chose them
	Private  netip.Addr // as Pick chose it for PrivateInterface; may be not valid
	Forward  netip.Addr // what Forwarding stands for; may be not valid
	UDP      bool       // a datagram socket listens too
	Contacts []cedar.Broker
}

// Public returns the address that others are told: in ads, claim ids and
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
