// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/clock"
)

// Session is what two sides have agreed on and may take up again: who the
// other side is, what it may do and the key between them. A Session is shared
// and must not be changed; what changes in its life is kept by [Sessions].
type Session struct {
	ID   string
	Key  Key // nil: a session without encryption
	Peer Peer

	// Self is who we are to the peer, where it has said so; a server does.
	Self string

	// PeerVersion is the peer's $CondorVersion string, "" if unknown.
	PeerVersion string

	// Negotiated says that the two sides made the session themselves. One
	// that was handed over (a claim id, condor_master) cannot be replaced by
	// a new one when the peer does not know it.
	Negotiated bool

	// Address is the peer's command socket, for sessions that connections can
	// be made with; "" otherwise. ValidCommands are the commands the session
	// is chosen for when no option names it.
	Address       string
	ValidCommands []int

	// From is the address from which the peer of an incoming session negotiated
	// it.
	From netip.Addr

	// PeerAddress is the command socket that the peer of an incoming session
	// said it has, as a hint for logs.
	PeerAddress string

	Lease time.Duration // ends when it was not used for so long; 0 = never

	// Encryption says that the policy of the session is to encrypt, which
	// counts for datagrams alone: a stream with a key is always encrypted.
	// Ciphers are those that both sides have for datagrams.
	Encryption bool
	Ciphers    []cedar.Cipher

	// old is the key of the ciphers where that is not the beginning of Key.
	old Key
}

// Encrypts reports whether streams under the session are AES.
func (s *Session) Encrypts() bool { return len(s.Key) > 0 }

// handle is what the session is kept under: its id, by which peers take it up.
// The id of a session that we made as the client was chosen by the server; it
// stands apart, so that no server can choose the id of a session of ours, or
// come back as a client with it.
func (s *Session) handle() string {
	if s.Negotiated && s.Address != "" {
		return s.ID + "\x00" + s.Address
	}
	return s.ID
}

// entry is a session with what changes in its life.
type entry struct {
	session *Session
	expires time.Duration // boot time; 0 = never
	used    time.Duration // boot time of the last use
	// version is that of the peer who last came with a session that was not
	// negotiated; it knows better than the info of the claim id.
	version string
	// nonces are those of resumptions that got no answer from us; see fresh.
	nonces map[[16]byte]struct{}
	// marks are what datagrams are known again by, marked the same in a ring
	// that begins at oldest; see freshMarks.
	marks  map[[16]byte]struct{}
	marked [][16]byte
	oldest int
	// linger says that the session's claim is gone: an equal id takes its
	// place.
	linger bool
}

func (e *entry) over(now time.Duration) bool {
	return e.expires != 0 && now >= e.expires || e.session.Lease != 0 && now >= e.used+e.session.Lease
}

// pinned sessions are those that no peer has negotiated.
func (e *entry) pinned() bool { return !e.session.Negotiated }

// route is where a session is looked for when a command is sent.
type route struct {
	address string
	command int
}

// maxRoutes bounds the commands that one session is remembered for.
const maxRoutes = 256

// routes returns the keys under which a session is found.
func (s *Session) routes() []route {
	if s.Address == "" {
		return nil
	}
	commands := s.ValidCommands[:min(len(s.ValidCommands), maxRoutes)]
	all := make([]route, 0, len(commands))
	for _, n := range commands {
		all = append(all, route{s.Address, n})
	}
	return all
}

// ends returns the boot time at which something ends that lasts d from now, 0
// for a d of 0.
func ends(now clock.Instant, d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return now.Boot + d
}

// builtSince reports whether a $CondorVersion string is of the version or
// later; an unknown one is not.
func builtSince(version string, major, minor, sub int) bool {
	v, ok := cedar.ParseVersion(version)
	return ok && v.AtLeast(major, minor, sub)
}

// clipVersion returns a peer's version string if it has the form and size of
// one, "" otherwise.
func clipVersion(version string) string {
	const most = 512
	if len(version) > most || strings.ContainsFunc(version, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return version
}

func firstNonEmpty(all ...string) string {
	i := slices.IndexFunc(all, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return all[i]
}
