// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	publicNetwork = "Internet"
	maxRoutes     = 256
)

// route is one way to a daemon, an entry of AddressV1.
type route struct {
	protocol       string // primary, IPv4, IPv6
	address        string
	port           int
	network        string
	alias, sockID  string
	ccbID, ccbSock string
	noUDP          bool
	broker         int // groups the routes of one broker; -1 outside
}

func (r route) append(b []byte) []byte {
	b = fmt.Appendf(b, `[ p="%s"; a="%s"; port=%d; n="%s";`, r.protocol, r.address, r.port, r.network)
	for _, f := range []struct{ name, value string }{
		{"alias", r.alias}, {"spid", r.sockID}, {"ccbid", r.ccbID}, {"ccbspid", r.ccbSock},
	} {
		if f.value != "" {
			b = fmt.Appendf(b, ` %s="%s";`, f.name, f.value)
		}
	}
	if r.noUDP {
		b = append(b, " noUDP=true;"...)
	}
	if r.broker >= 0 {
		b = fmt.Appendf(b, " brokerIndex=%d;", r.broker)
	}
	return append(b, " ]"...)
}

func routeTo(a netip.AddrPort, network string) route {
	r := route{protocol: "IPv4", address: a.Addr().String(), port: int(a.Port()), network: network, broker: -1}
	if a.Addr().Is6() {
		r.protocol = "IPv6"
	}
	return r
}

// simpleRoute is the route to host and port alone, if the host is an address.
func (s Sinful) simpleRoute(network string) (route, bool) {
	a, err := netip.ParseAddr(s.Host)
	if err != nil || a.Zone() != "" || s.Port == NoPort {
		return route{}, false
	}
	return routeTo(netip.AddrPortFrom(a, uint16(s.Port)), network), true
}

// AddressV1 returns the address as the attribute AddressV1 has it, "{}" if it
// cannot be said in that form.
func (s Sinful) AddressV1() string {
	routes, ok := s.routes()
	if !ok {
		return "{}"
	}
	b := []byte{'{'}
	for i, r := range routes {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = r.append(b)
	}
	return string(append(b, '}'))
}

func (s Sinful) routes() ([]route, bool) {
	all := []route{{protocol: "primary", address: s.Host, port: s.Port, network: publicNetwork, broker: -1}}
	var public []route
	if len(s.all()) == 0 {
		if r, ok := s.simpleRoute(publicNetwork); ok {
			public = append(public, r)
		}
	}
	for _, a := range s.Addrs {
		public = append(public, routeTo(a, publicNetwork))
	}
	switch {
	case s.PrivNet == "":
	case s.PrivAddr != nil:
		r, ok := s.PrivAddr.simpleRoute(s.PrivNet)
		if !ok {
			return nil, false
		}
		all = append(all, r)
	default:
		for _, r := range public {
			r.network = s.PrivNet
			all = append(all, r)
		}
	}
	for i, b := range s.CCB {
		broker, err := b.Sinful()
		if err != nil || len(broker.CCB) > 0 {
			return nil, false
		}
		routes, ok := broker.routes()
		if !ok {
			return nil, false
		}
		for _, r := range routes {
			r.broker, r.ccbID, r.sockID, r.ccbSock = i, b.ID, "", broker.SockID
			all = append(all, r)
		}
	}
	all = append(all, public...)
	for i := range all {
		if s.Alias != "" {
			all[i].alias = s.Alias
		}
		if s.SockID != "" {
			all[i].sockID = s.SockID
		}
		all[i].noUDP = all[i].noUDP || s.NoUDP
	}
	for _, r := range all {
		if strings.ContainsAny(r.address+r.network+r.alias+r.sockID+r.ccbID+r.ccbSock, `"\;]}`+"\n") {
			return nil, false
		}
	}
	return all, true
}

// parseAddressV1 reads what AddressV1 writes.
func parseAddressV1(text string) (Sinful, error) {
	bad := func(why string) (Sinful, error) { return Sinful{}, badSinful(text, "AddressV1: "+why) }
	inner, ok := strings.CutSuffix(strings.TrimPrefix(text, "{"), "}")
	if !ok {
		return bad("no '}' at its end")
	}
	var routes []route
	for inner = strings.TrimSpace(inner); inner != ""; {
		body, rest, ok := strings.Cut(strings.TrimPrefix(inner, "["), "]")
		if !ok || inner[0] != '[' {
			return bad("want [ ... ], [ ... ]")
		}
		r, err := parseRoute(body)
		if err != nil {
			return bad(err.Error())
		}
		if routes = append(routes, r); len(routes) > maxRoutes {
			return bad("too many routes")
		}
		inner = strings.TrimSpace(rest)
		if next, ok := strings.CutPrefix(inner, ","); ok {
			inner = strings.TrimSpace(next)
		} else if inner != "" {
			return bad("routes are not separated by ','")
		}
	}
	if len(routes) == 0 {
		return bad("there is no route")
	}
	s, err := joinRoutes(routes)
	if err != nil {
		return bad(err.Error())
	}
	return s, nil
}

func parseRoute(body string) (route, error) {
	r := route{broker: -1, port: NoPort - 1}
	for field := range strings.SplitSeq(body, ";") {
		if strings.TrimSpace(field) == "" {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if !ok {
			return r, errors.New("a field is not name=value")
		}
		number, err := strconv.Atoi(value)
		text, quoted := strings.CutPrefix(value, `"`)
		if quoted {
			text, quoted = strings.CutSuffix(text, `"`)
		}
		into := map[string]*string{
			"p": &r.protocol, "a": &r.address, "n": &r.network, "alias": &r.alias,
			"spid": &r.sockID, "ccbid": &r.ccbID, "ccbspid": &r.ccbSock,
		}[name]
		switch {
		case into != nil && quoted:
			*into = text
		case name == "port" && err == nil && number >= NoPort && number <= 65535:
			r.port = number
		case name == "brokerIndex" && err == nil && number >= 0 && number < maxRoutes:
			r.broker = number
		case name == "noUDP" && value == "true":
			r.noUDP = true
		case into != nil || name == "port" || name == "brokerIndex" || name == "noUDP":
			return r, fmt.Errorf("field %s has a bad value", name)
		}
	}
	if !isID(r.ccbID) {
		return r, errors.New("field ccbid has a character that no id has")
	}
	if r.port < NoPort || r.network == "" || !slices.Contains([]string{"primary", "IPv4", "IPv6"}, r.protocol) {
		return r, errors.New("a route lacks one of p, a, port and n")
	}
	return r, nil
}

// isID reports whether a text may be the id that a broker gave: a number, behind
// a shared port with the broker's name and '#' before it. A space would end the
// id in another form of the address.
func isID(id string) bool {
	return !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"<>`, c) })
}

func (r route) addrPort() (netip.AddrPort, bool) {
	a, err := netip.ParseAddr(r.address)
	if err != nil || a.Zone() != "" || r.port == NoPort {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(a, uint16(r.port)), true
}

// joinRoutes makes one address of its routes.
func joinRoutes(routes []route) (Sinful, error) {
	s := Sinful{Port: NoPort, SockID: routes[0].sockID}
	brokers := map[int][]route{}
	var private []netip.AddrPort
	for _, r := range routes {
		if r.sockID != s.SockID {
			return s, errors.New("routes differ in spid")
		}
		if r.alias != "" && s.Alias != "" && r.alias != s.Alias {
			return s, errors.New("routes differ in alias")
		}
		if r.network != publicNetwork && s.PrivNet != "" && r.network != s.PrivNet {
			return s, errors.New("routes name two private networks")
		}
		if r.alias != "" {
			s.Alias = r.alias
		}
		if r.network != publicNetwork {
			s.PrivNet = r.network
		}
		s.NoUDP = s.NoUDP || r.noUDP
		if r.ccbID != "" {
			brokers[r.broker] = append(brokers[r.broker], r)
			continue
		}
		if r.protocol == "primary" {
			if !hostChars(r.address) {
				return s, errors.New("the primary address has a character that no name has")
			}
			s.Host, s.Port = r.address, r.port
			continue
		}
		a, ok := r.addrPort()
		switch {
		case !ok:
			return s, errors.New("a route's address is no IP address")
		case r.network == publicNetwork:
			s.Addrs = append(s.Addrs, a)
		default:
			private = append(private, a)
		}
	}
	for i := range len(brokers) {
		group := brokers[i]
		if len(group) == 0 {
			return s, errors.New("brokers are not numbered from 0")
		}
		id := group[0].ccbID
		for j := range group {
			group[j].sockID, group[j].ccbSock, group[j].ccbID = group[j].ccbSock, "", ""
		}
		b, err := joinRoutes(group)
		if err != nil {
			return s, err
		}
		text := b.String()
		s.CCB = append(s.CCB, Broker{Address: text[1 : len(text)-1], ID: id})
	}
	for _, a := range private {
		if slices.Contains(s.Addrs, a) {
			continue
		}
		if s.PrivAddr != nil {
			return s, errors.New("there are two private addresses")
		}
		s.PrivAddr = &Sinful{Host: a.Addr().String(), Port: int(a.Port()), SockID: s.SockID}
	}
	return s, nil
}
