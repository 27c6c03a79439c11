// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// clientShake is one handshake on the connecting side.
type clientShake struct {
	c       *Client
	f       *activeSettings
	ctx     context.Context
	conn    *cedar.Conn
	to      cedar.Sinful
	address string // the server's sinful, by which sessions are kept
	command int
	o       Options
}

func forgotten(err error) bool {
	var e errForgotten
	return errors.As(err, &e)
}

func (h *clientShake) run() (*Session, error) {
	session, err := h.choose()
	if err != nil {
		return nil, err
	}
	if session != nil {
		err = h.resume(session)
	} else {
		session, err = h.negotiate()
	}
	if err != nil {
		return nil, err
	}
	// Whom we turned to must be acceptable as well.
	v := h.f.settings.Authorizer.Allowed(ClientLevel, Asker{Peer: session.Peer, Addr: h.remote(), Names: h.c.Names})
	if !v.OK {
		return nil, errDenied("security.Open", h.address, "the server is not acceptable: "+v.Why)
	}
	return session, nil
}

// choose returns the session to take up, nil for a new one.
func (h *clientShake) choose() (*Session, error) {
	if h.o.Session != "" {
		s, ok := h.c.Sessions.use(h.o.Session)
		if !ok {
			return nil, errs.E("security.Open", errs.NotFound, clip(h.o.Session), fmt.Errorf("there is no such session here"))
		}
		return s, nil
	}
	if h.o.Temporary || h.o.Datagrams {
		return nil, nil
	}
	s, ok := h.c.Sessions.choose(h.address, h.command, h.relative)
	if !ok {
		return nil, nil
	}
	return s, nil
}

// relative reports whether the server may be of our family: it is on this
// host, behind the same shared port if we are reached through one, and a user's
// whom we trust.
func (h *clientShake) relative() bool {
	addr := h.remote()
	if !h.f.settings.FamilySession || !addr.IsValid() || !addr.IsLoopback() && (h.c.Local == nil || !h.c.Local(addr)) {
		return false
	}
	if own, err := cedar.ParseSinful(h.own()); err == nil && own.SockID != "" && own.Port != h.to.Port {
		return false
	}
	return h.c.Kin != nil && h.c.Kin(h.conn.NetConn().RemoteAddr())
}

// remote returns the address we are connected to, invalid if it has none.
func (h *clientShake) remote() netip.Addr {
	if nc := h.conn.NetConn(); nc != nil && nc.RemoteAddr() != nil {
		if ap, err := netip.ParseAddrPort(nc.RemoteAddr().String()); err == nil {
			return ap.Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// resume takes a session up again.
func (h *clientShake) resume(s *Session) error {
	version := h.c.Sessions.peerVersion(s)
	answer := h.f.settings.ResumeResponse && builtSince(version, 9, 9, 0)
	h.conn.SetPeerVersion(version)
	n, err := nonce(h.c.random())
	if err != nil {
		return errs.E("security.Open", errs.Internal, "", err)
	}
	var ad literals
	ad.set("UseSession", "YES")
	ad.set("Sid", s.ID)
	ad.set("Command", int64(h.command))
	ad.text("ConnectSinful", h.address)
	if s.Encrypts() {
		ad.set("CryptoMethods", "AES")
	}
	ad.set("Nonce", n)
	ad.set("ResumeResponse", answer)
	ad.text("RemoteVersion", h.c.Version)
	h.subcommand(&ad)
	ad.text("ServerCommandSock", h.own())
	if err := h.begin(ad); err != nil {
		return err
	}
	if answer {
		reply, err := getMessage(h.conn)
		if err != nil {
			if s.Negotiated && h.ctx.Err() == nil {
				h.c.Sessions.discard(s)
				return errForgotten{err}
			}
			return err
		}
		if err := h.resumed(s, reply); err != nil {
			return err
		}
	}
	if !s.Encrypts() {
		return nil
	}
	return h.conn.EnableAES(s.Key)
}

// resumed looks at the answer to a resumption.
func (h *clientShake) resumed(s *Session, reply literals) error {
	switch code := reply.str("ReturnCode"); code {
	case "", "AUTHORIZED":
		if v := clipVersion(reply.str("RemoteVersion")); v != "" {
			h.conn.SetPeerVersion(v)
		}
		return nil
	case "SID_NOT_FOUND":
		err := errs.E("security.Open", errs.NotFound, s.ID, fmt.Errorf("%s does not know the session", h.address))
		switch {
		case s.Negotiated:
			h.c.Sessions.discard(s)
			return errForgotten{err}
		case s.Peer.User == Family && h.o.Session == "":
			h.c.Sessions.noteUnrelated(h.address)
			return errForgotten{err}
		}
		return err
	default:
		return errDenied("security.Open", h.address, fmt.Sprintf("the server answered %q", clip(code)))
	}
}

// negotiate makes a new session.
func (h *clientShake) negotiate() (*Session, error) {
	p, err := h.f.policy(ClientLevel)
	if err != nil {
		return nil, err
	}
	if h.o.Authenticate {
		p.Authentication = max(p.Authentication, Preferred)
	}
	if h.o.Temporary {
		p.Duration = min(p.Duration, time.Minute)
	}
	if h.o.Datagrams {
		p.Duration = min(p.Duration, datagramSession)
	} else {
		p.Ciphers = nil // the server might choose one for the stream
	}
	var ours keyExchange
	public := ""
	if p.AES {
		if ours, err = h.c.keyExchange(); err != nil {
			return nil, errs.E("security.Open", errs.Internal, "", err)
		}
		public = ours.Public()
	}
	if err := h.begin(h.request(p, public)); err != nil {
		return nil, err
	}
	reply, err := getMessage(h.conn)
	if err != nil {
		asked := h.command
		if asked == command.DCSecQuery || asked == command.DCAuthenticate {
			asked = h.o.AuthCommand
		}
		return nil, fmt.Errorf("the server closed the connection instead of answering with its policy; it may not know command %s: %w", command.Name(asked), err)
	}
	h.conn.SetPeerVersion(clipVersion(reply.str("RemoteVersion")))
	d, err := decideClient(p, reply)
	if err != nil {
		if first := words(reply.str("CryptoMethods")); h.o.Datagrams && len(first) > 0 && known(cryptoMethods[1:], cryptoName(first[0])) {
			// It would not have chosen it if it had not been offered.
			return nil, errs.E("security.Open", errs.Unsupported, h.address, err)
		}
		return nil, errDenied("security.Open", h.address, err.Error())
	}
	key, peer, err := h.prove(p, d, ours, reply)
	if err != nil {
		return nil, err
	}
	if (d.encrypt || d.integrity) && key == nil {
		return nil, errDenied("security.Open", h.address, "there is to be encryption, but no key came about")
	}
	if key != nil {
		if err := h.conn.EnableAES(key); err != nil {
			return nil, err
		}
	}
	return h.conclude(d, key, peer)
}

// request is our policy as it is sent.
func (h *clientShake) request(p Policy, public string) literals {
	var ad literals
	ad.text("AuthMethods", authn.FormatMethods(p.Methods))
	if p.AES {
		ad.set("CryptoMethods", cryptoList(p.Ciphers))
	}
	ad.set("OutgoingNegotiation", p.Negotiation.String())
	ad.set("Authentication", p.old().String())
	ad.set("AuthenticationNew", p.Authentication.String())
	ad.set("Encryption", p.Encryption.String())
	ad.set("Integrity", p.Integrity.String())
	ad.set("Enact", "NO")
	ad.text("Subsystem", h.c.Subsystem)
	ad.text("ParentUniqueID", h.c.ParentID)
	ad.set("ServerPid", int64(h.c.PID))
	ad.set("SessionDuration", strconv.FormatInt(int64(p.Duration/time.Second), 10))
	ad.set("SessionLease", int64(p.Lease/time.Second))
	ad.set("NewSession", "YES")
	ad.set("NegotiatedSession", true)
	ad.text("RemoteVersion", h.c.Version)
	ad.text("ConnectSinful", h.address)
	ad.set("Command", int64(h.command))
	ad.text("ECDHPublicKey", public)
	ad.text("TrustDomain", h.f.settings.TrustDomain)
	ad.text("IssuerKeys", h.f.issuers(p))
	h.subcommand(&ad)
	ad.text("ServerCommandSock", h.own())
	return ad
}

func (h *clientShake) subcommand(ad *literals) {
	if h.command == command.DCAuthenticate || h.command == command.DCSecQuery {
		ad.set("AuthCommand", int64(h.o.AuthCommand))
	}
}

// own is our command socket.
func (h *clientShake) own() string {
	if h.c.Address == nil {
		return ""
	}
	return h.c.Address()
}

// begin sends the first message of a handshake.
func (h *clientShake) begin(ad literals) error {
	if h.c.arrange != nil {
		h.c.arrange(&ad)
	}
	h.conn.PutInt(command.DCAuthenticate)
	put(h.conn, ad)
	return h.conn.EndMessage()
}

// prove authenticates if that was agreed, and derives the key.
func (h *clientShake) prove(p Policy, d decision, ours keyExchange, reply literals) (Key, Peer, error) {
	var key Key
	if ours != nil && d.ecdh != "" {
		secret, err := ours.Secret(d.ecdh)
		if err != nil {
			return nil, Peer{}, errs.E("security.Open", errs.Invalid, h.address, err)
		}
		key = DeriveKey(secret)
	}
	peer := unauthenticatedPeer()
	if !d.authenticate {
		return key, peer, nil
	}
	if len(d.methods) == 0 || h.f.authn == nil {
		return nil, peer, errDenied("security.Open", h.address, fmt.Sprintf("no method of authentication is common; the server has %q", clip(reply.str("AuthMethodsList"))))
	}
	result, err := h.f.authenticate(h.ctx, h.conn, p, authn.Peer{
		Version: h.conn.PeerVersion(), TrustDomain: clip(reply.str("TrustDomain")), IssuerKeys: words(reply.str("IssuerKeys")),
		SharedPortID: h.to.SockID, Alias: hostName(h.to),
	}, d.methods)
	if err != nil {
		if d.required || errs.KindOf(err) != errs.Denied {
			return nil, peer, err
		}
		h.c.log(h.ctx, slog.LevelInfo, "authentication failed but is not required", slog.String("peer", h.address), slog.Any("err", err))
		return key, peer, nil
	}
	if peer, err = h.f.settings.server(result.Identity); err != nil {
		return nil, peer, err
	}
	sent, err := h.takeKey(result)
	if err != nil {
		return nil, peer, err
	}
	if key == nil {
		key = sent
	}
	return key, peer, nil
}

// takeKey reads the message about keys: none when there was a key exchange,
// otherwise one that is wrapped in what the method agreed on. Of a method that
// hides nothing no key is taken.
func (h *clientShake) takeKey(result authn.Result) (Key, error) {
	n, err := h.conn.IntIn(0, 1)
	if err != nil {
		return nil, err
	}
	if err := h.conn.EndOfMessage(); err != nil || n == 0 {
		return nil, err
	}
	var head [4]int64
	for i := range head {
		if head[i], err = h.conn.IntIn(0, maxSeconds); err != nil {
			return nil, err
		}
	}
	const most = 4096
	if head[3] < 1 || head[3] > most {
		return nil, errs.E("security.Open", errs.Invalid, h.address, fmt.Errorf("the server's key has %d bytes, at most %d are read", head[3], most))
	}
	wrapped, err := h.conn.Bytes(int(head[3]))
	if err != nil {
		return nil, err
	}
	if err := h.conn.EndOfMessage(); err != nil {
		return nil, err
	}
	if !result.Wraps() || head[0] != keySize || head[1] != wireAES {
		return nil, nil
	}
	key, err := result.Unwrap(wrapped)
	if err != nil {
		return nil, err
	}
	if len(key) < keySize {
		return nil, errs.E("security.Open", errs.Invalid, h.address, fmt.Errorf("the server's key is too short"))
	}
	return Key(key[:keySize]), nil
}

// conclude reads what became of our request, and keeps the session.
func (h *clientShake) conclude(d decision, key Key, peer Peer) (*Session, error) {
	ad, err := getMessage(h.conn)
	if err != nil {
		return nil, err
	}
	self := clip(ad.str("User"))
	switch code := ad.str("ReturnCode"); code {
	case "", "AUTHORIZED":
	case "CMD_NOT_FOUND":
		return nil, errs.E("security.Open", errs.NotFound, h.address, fmt.Errorf("the server does not know command %s", command.Name(h.command)))
	default:
		return nil, errDenied("security.Open", h.address, fmt.Sprintf("the server answered %q to %s for command %s", clip(code), firstNonEmpty(self, "us"), command.Name(h.command)))
	}
	valid, err := parseCommands(ad.str("ValidCommands"))
	if err != nil {
		return nil, errs.E("security.Open", errs.Invalid, h.address, err)
	}
	s := &Session{
		ID: ad.str("Sid"), Key: key, Peer: peer, Self: self, PeerVersion: h.conn.PeerVersion(), Negotiated: true,
		Address: h.address, ValidCommands: valid, Lease: d.lease, Encryption: d.encrypt, Ciphers: d.ciphers,
	}
	if s.ID == "" || len(s.ID) > maxName {
		return nil, errs.E("security.Open", errs.Invalid, h.address, fmt.Errorf("the server gave no id to the session"))
	}
	if !h.o.Temporary && d.duration > 0 {
		h.c.Sessions.discard(s)
		if err := h.c.Sessions.Add(s, d.duration); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// hostName is the name of the host in an address, "" where it has none: the
// alias, or what stands for the host itself, as in COLLECTOR_HOST.
func hostName(s cedar.Sinful) string {
	if s.Alias != "" {
		return s.Alias
	}
	if _, err := netip.ParseAddr(s.Host); err == nil {
		return ""
	}
	return s.Host
}
