// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
)

// Identity is who a peer has proven to be.
type Identity struct {
	Method Method
	User   string // the name before the @, as the method found it
	Domain string // the name behind it, in lower case; "" for ANONYMOUS

	// Name is what the map file is asked for under Method.Recorded; "" when
	// the method gives nothing to map (TOKEN, PASSWORD) and User and Domain
	// stand.
	Name string

	Token *TokenClaims // with TOKEN, on the server
}

// FQU is the fully qualified name: "user@domain", or the user alone when there
// is no domain.
func (id Identity) FQU() string {
	if id.Domain == "" {
		return id.User
	}
	return id.User + "@" + id.Domain
}

// fqu splits a name at its last @, as all names of the protocol are.
func fqu(m Method, name string) Identity {
	user, domain := name, ""
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		user, domain = name[:at], strings.ToLower(name[at+1:])
	}
	return Identity{Method: m, User: user, Domain: domain}
}

// Peer is what is known of the other side of one connection before it is
// authenticated. None of it is trusted: it decides what is said, never who is
// believed.
type Peer struct {
	// Version is its $CondorVersion$ text or just the number, "" if not known.
	Version string
	// TrustDomain and IssuerKeys are those of the server's policy ad; for
	// clients.
	TrustDomain string
	IssuerKeys  []string
	// Remote and Local are the ends of the connection. The zero values stand
	// for those of the stream's connection.
	Remote, Local netip.AddrPort
	// SharedPortID is the id through which a client reached the server, and
	// Alias the host name in the address it used; "" if there is none.
	SharedPortID, Alias string
}

// ends fills in the two addresses from the connection.
func (p Peer) ends(conn *cedar.Conn) Peer {
	nc := conn.NetConn()
	if nc == nil {
		return p
	}
	if !p.Remote.IsValid() {
		p.Remote = addrPort(nc.RemoteAddr())
	}
	if !p.Local.IsValid() {
		p.Local = addrPort(nc.LocalAddr())
	}
	return p
}

func addrPort(a interface{ String() string }) netip.AddrPort {
	if a == nil {
		return netip.AddrPort{}
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{} // a pipe or a Unix socket
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// poolName is what holders of the pool's keys call themselves towards p, and
// how p calls itself: condor@password since 23.9.0, condor_pool@domain before.
func (p Peer) poolName(domain string) string {
	if p.since(23, 9, 0) {
		return passwordFQU
	}
	return poolUser + "@" + domain
}

const (
	passwordFQU = "condor@password"
	poolUser    = "condor_pool"
)

// since reports whether p is known to be version major.minor.patch or later.
func (p Peer) since(want ...int) bool {
	fields := strings.Fields(strings.TrimPrefix(p.Version, "$CondorVersion:"))
	if len(fields) == 0 {
		return false
	}
	parts := strings.Split(fields[0], ".")
	if len(parts) != len(want) {
		return false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		if n != want[i] {
			return n > want[i]
		}
	}
	return true
}

// Attempt is one method that did not succeed.
type Attempt struct {
	Method Method
	Err    error
}

// Result is what became of an authentication.
type Result struct {
	// Identity is the other side: for a client the server, for a server the
	// client.
	Identity Identity
	// Failed are the methods tried before the one that succeeded.
	Failed []Attempt
	// wrapKey is the method's own key, under which a session key travels to a
	// peer without ECDH; empty when the method has none.
	wrapKey sealed
}
