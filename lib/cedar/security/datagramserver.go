// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// tail is how many bytes at the end of an encrypted message it is known again
// by. Its cipher makes every block depend on all before it, so no two messages
// end in the same, and who changes anything in the end garbles what is behind.
const tail = 16

// Datagram reads a command that came in datagrams, whole: its payload is next
// on the Conn, of which nothing can be answered. The Request is authorized as
// one over a stream is, with this difference: a session counts only if the
// message was sealed with its key, which is to say that it carries the right
// digest, and only the first time. A message that just names a session is that of
// nobody, and so is one that is encrypted without a digest: the cipher begins
// each message alike, so that who has recorded some can put another together from
// their blocks. HTCondor takes the name for the proof. The reason for an error has
// been logged. The message is decrypted in place.
func (s *Server) Datagram(ctx context.Context, from netip.AddrPort, m cedar.Datagram) (*Request, *cedar.Conn, error) {
	c := s.current.Load()
	if c == nil {
		return nil, nil, errs.E("security.Datagram", errs.Internal, "", errors.New("the server is not configured"))
	}
	h := datagramShake{s: s, c: c, from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), m: m, peer: unauthenticatedPeer()}
	r, err := h.run()
	if err != nil {
		s.log(ctx, slog.LevelWarn, "datagram refused", slog.String("peer", from.String()),
			slog.String("command", s.commandName(h.command)), slog.String("user", h.peer.User), slog.Any("err", err))
		return nil, nil, err
	}
	s.log(ctx, slog.LevelDebug, "command allowed", slog.String("peer", from.String()), slog.String("command", s.commandName(r.Command)),
		slog.String("user", r.Peer.User), slog.String("method", r.Peer.Method), slog.Bool("datagram", true), slog.String("why", r.Why))
	return r, h.conn, nil
}

// datagramShake is what a handshake is for datagrams.
type datagramShake struct {
	s    *Server
	c    *activeSettings
	from netip.AddrPort
	m    cedar.Datagram

	conn    *cedar.Conn
	command int
	peer    Peer
	keyed   *Session // whose key the message is said to be under
	proven  *Session // whose key made its digest
	mark    string   // the end of the message as it came, "" if that was in clear
}

func (h *datagramShake) refused(k errs.Kind, why string) error {
	return errs.E("security.Datagram", k, h.from.String(), errors.New(why))
}

func (h *datagramShake) run() (*Request, error) {
	form, err := h.open()
	if err != nil {
		return nil, err
	}
	h.conn = cedar.FormReader(h.m.Payload, form, cedar.Limits{})
	restore := guard(h.conn, 0)
	n, err := h.conn.Int()
	if err != nil {
		return nil, err
	}
	r := &Request{Addr: h.from, Bare: true}
	if h.command = commandNumber(n); h.command == command.DCAuthenticate {
		if err := h.resume(r); err != nil {
			return nil, err
		}
	} else if h.keyed != nil {
		return nil, errDenied("security.Datagram", h.from.String(), "the message cannot be read, or names no session inside")
	}
	restore()
	r.Command, r.Peer = h.command, h.peer
	v, err := h.s.authorize(h.c, r)
	if err != nil && h.keyed != nil && h.proven == nil {
		err = errs.E("security.Datagram", errs.KindOf(err), h.from.String(), fmt.Errorf("%w; the message is encrypted under a session of %s, but carries no digest, "+
			"and counts as that of nobody: have the command sent over TCP", err, clip(h.keyed.Peer.User)))
	}
	if err != nil {
		return nil, err
	}
	r.Why = v.Why
	return r, nil
}

// sessionOf returns the session that a key id names: an id, and mostly the
// address of the sender behind it.
func (h *datagramShake) sessionOf(keyID string) (*Session, error) {
	id, _, _ := strings.Cut(keyID, ",")
	s, ok := h.session(id)
	if !ok {
		return nil, errs.E("security.Datagram", errs.NotFound, clip(id), fmt.Errorf("the session of a datagram from %s is not known here", h.from))
	}
	if !s.Encrypts() {
		return nil, h.refused(errs.Invalid, "the message is of a session that has no key")
	}
	return s, nil
}

func (h *datagramShake) session(id string) (*Session, bool) {
	s, ok := h.s.Sessions.Get(id)
	if ok && (s.Peer.User == Family && !h.c.settings.FamilySession || s.Peer.Method == MethodFamily && !h.c.near(h.from.Addr())) {
		return nil, false
	}
	return s, ok
}

// open verifies and decrypts the message.
func (h *datagramShake) open() (cedar.Form, error) {
	if h.m.HashKeyID != "" {
		s, err := h.sessionOf(h.m.HashKeyID)
		if err != nil {
			return 0, err
		}
		if !h.m.Verify(s.Key) {
			_, key, err := s.cipher(h.c.settings.FIPS)
			if err != nil || !h.m.Verify(key) {
				return 0, errDenied("security.Datagram", h.from.String(), "the digest of the message is wrong: it was changed, or the keys differ")
			}
		}
		h.keyed, h.proven = s, s
	}
	if h.m.KeyID == "" {
		return cedar.Plain, nil
	}
	h.mark = string(h.m.Payload[max(0, len(h.m.Payload)-tail):])
	s, err := h.sessionOf(h.m.KeyID)
	if err != nil {
		return 0, err
	}
	if h.proven != nil && h.proven != s {
		return 0, h.refused(errs.Invalid, "the message is of two sessions")
	}
	cipher, key, err := s.cipher(h.c.settings.FIPS)
	if err != nil {
		return 0, err
	}
	if err := h.m.Decrypt(cipher, key); err != nil {
		return 0, err
	}
	h.keyed = s
	return cedar.Counted, nil
}

// resume reads the ad of a session that is taken up again.
func (h *datagramShake) resume(r *Request) error {
	ad, err := get(h.conn)
	if err != nil {
		if h.keyed != nil {
			err = errDenied("security.Datagram", h.from.String(), "the message cannot be read: "+err.Error())
		}
		return err
	}
	n, ok := ad.number("Command")
	if !ok {
		return h.refused(errs.Invalid, "the first ad has no Command")
	}
	if h.command = commandNumber(n); h.command == command.DCAuthenticate || h.command == command.DCSecQuery {
		return h.refused(errs.Unsupported, "security is not negotiated in datagrams")
	}
	if _, ok := h.s.Commands[h.command]; !ok {
		return errs.E("security.Datagram", errs.NotFound, strconv.Itoa(h.command), errors.New("there is no such command"))
	}
	if _, ok := ad.find("Cookie"); ok {
		return errDenied("security.Datagram", h.from.String(), "cookies are not accepted")
	}
	if !ad.yes("UseSession") {
		return h.refused(errs.Unsupported, "there is no session, and none can be made in datagrams")
	}
	id := ad.str("Sid")
	s, ok := h.session(id)
	switch {
	case !ok:
		return errs.E("security.Datagram", errs.NotFound, clip(id), errors.New("the session is not known here"))
	case h.keyed != nil && h.keyed != s:
		return h.refused(errs.Invalid, "the session in the message is not that of its key")
	case h.proven == nil:
		return nil // anybody may have seen the name of the session, or an earlier message
	}
	nonce := ad.str("Nonce")
	if b, err := base64.StdEncoding.DecodeString(nonce); err != nil || len(b) < tail {
		return errDenied("security.Datagram", h.from.String(), "the message has no nonce")
	}
	marks := []string{"nonce " + nonce}
	if h.mark != "" {
		marks = append(marks, "tail "+h.mark)
	}
	if !h.s.Sessions.freshMarks(s.ID, marks...) {
		return errDenied("security.Datagram", h.from.String(), "the message is a copy of an earlier one")
	}
	version := clipVersion(ad.str("RemoteVersion"))
	h.s.Sessions.use(s.ID)
	h.s.Sessions.came(s.ID, version)
	if s.PeerVersion != "" {
		h.conn.SetPeerVersion(firstNonEmpty(version, s.PeerVersion))
	}
	h.peer = s.Peer
	r.Session, r.Resumed, r.Bare = s, true, false
	return nil
}
