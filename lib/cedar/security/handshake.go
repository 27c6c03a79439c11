// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// serverShake is one handshake on the accepting side.
type serverShake struct {
	s    *Server
	c    *activeSettings
	ctx  context.Context
	conn *cedar.Conn
	from netip.AddrPort

	limits  cedar.Limits // of conn before the handshake
	command int          // whose level is asked for
	real    int          // what the client wants done
	peer    Peer
	ad      literals // the client's first
}

// run is the handshake from the first number to the payload.
func (h *serverShake) run() (*Request, error) {
	n, err := h.conn.Int()
	if err != nil {
		return nil, err
	}
	h.peer = unauthenticatedPeer()
	if h.command = commandNumber(n); h.command != command.DCAuthenticate {
		return h.bare()
	}
	if h.ad, err = getMessage(h.conn); err != nil {
		return nil, err
	}
	n, ok := h.ad.number("Command")
	if !ok {
		return nil, h.invalid("the first ad has no Command")
	}
	h.real = commandNumber(n)
	if h.command = h.real; h.real == command.DCAuthenticate || h.real == command.DCSecQuery {
		n, _ = h.ad.number("AuthCommand")
		h.command = commandNumber(n)
	}
	cmd, ok := h.s.Commands[h.command]
	if !ok {
		// HTCondor says nothing to the peer either.
		return nil, errs.E("security.Handshake", errs.NotFound, strconv.Itoa(h.command), fmt.Errorf("there is no such command"))
	}
	if _, ok := h.ad.find("Cookie"); ok {
		return nil, h.denied("cookies are not accepted")
	}
	if h.ad.yes("UseSession") {
		return h.resume()
	}
	return h.negotiate(cmd)
}

// bare is a command without a handshake.
func (h *serverShake) bare() (*Request, error) {
	r := &Request{Command: h.command, Peer: h.peer, Addr: h.from, Bare: true}
	v, err := h.s.authorize(h.c, r)
	if err != nil {
		return nil, err
	}
	r.Why = v.Why
	return r, nil
}

// resume takes a session up again. Until a packet under the session's key was
// verified, anybody may have sent the request: it changes nothing of the
// session, and no command above READ is begun.
func (h *serverShake) resume() (*Request, error) {
	id := h.ad.str("Sid")
	answer, _ := h.ad.boolean("ResumeResponse")
	session, ok := h.s.Sessions.Get(id)
	why := "the session is not known here"
	if ok {
		why = h.unfit(session)
	}
	if why != "" {
		if answer {
			var ad literals
			ad.set("ReturnCode", "SID_NOT_FOUND")
			if err := h.send(ad); err != nil {
				return nil, err
			}
		}
		return nil, errs.E("security.Handshake", errs.NotFound, "", errors.New(why))
	}
	h.peer = session.Peer
	version := clipVersion(h.ad.str("RemoteVersion"))
	if session.PeerVersion != "" {
		h.conn.SetPeerVersion(firstNonEmpty(version, session.PeerVersion))
	}
	if session.Encrypts() && !offersAES(h.ad.str("CryptoMethods")) {
		return nil, h.denied("the session is to be used with another cipher than AES")
	}
	if answer {
		n, err := nonce(h.s.random())
		if err != nil {
			return nil, errs.E("security.Handshake", errs.Internal, "", err)
		}
		var ad literals
		ad.set("ReturnCode", "AUTHORIZED")
		ad.text("RemoteVersion", h.s.Version)
		ad.set("Nonce", n)
		if err := h.send(ad); err != nil {
			return nil, err
		}
	}
	if err := h.encrypt(session.Key); err != nil {
		return nil, err
	}
	r := &Request{Command: h.command, Session: session, Peer: session.Peer, Addr: h.from, Resumed: true}
	v, err := h.s.authorize(h.c, r)
	if err != nil {
		return nil, err
	}
	r.Why = v.Why
	if err := h.proof(session, answer, version); err != nil {
		return nil, err
	}
	return h.finish(r)
}

// securityOnly reports whether the request is about security and nothing else,
// so that no command is begun by it.
func (h *serverShake) securityOnly() bool {
	return h.real == command.DCAuthenticate || h.real == command.DCSecQuery
}

// unfit says why a session cannot be taken up for the command, "" if it can. A
// client is then told that there is no such session. HTCondor's clients drop it
// and fail the command; their next one negotiates a new session.
//
// An order without a payload cannot show the key, and a client that is told
// SID_NOT_FOUND for each would see every second order fail. So it is taken from
// who knows the id, 128 random bits, and has the address that negotiated the
// session.
func (h *serverShake) unfit(s *Session) string {
	cmd := h.s.Commands[h.command]
	switch {
	case s.Peer.User == Family && !h.c.settings.FamilySession:
		return "sessions of the family are not accepted"
	case s.Peer.Method == MethodFamily && !h.c.near(h.from.Addr()):
		return "a session of the family is used from another machine"
	case !s.Negotiated || h.securityOnly():
		return ""
	case cmd.Acts() && cmd.Empty && s.From != h.from.Addr():
		return cmd.Name + " has no payload that could prove who resumes the session, and does not come from where it was made"
	case cmd.Acts() && !s.Encrypts():
		return "the session has no key that could prove who resumes it"
	}
	return h.c.settings.Policy(cmd.Level).lacks(s)
}

// proof waits for the first packet under the key of a session that was taken
// up for a command with effects, and then notes what the peer said. An order
// without a payload has none: its sender is known by an id that cannot be
// guessed and by the address (negotiated sessions), by such an id alone
// (capabilities), or by the machine that it comes from (the family).
func (h *serverShake) proof(s *Session, answered bool, version string) error {
	cmd := h.s.Commands[h.command]
	proven := func() error {
		// What we answered has a nonce of ours in its first packet. What we did not
		// could have been recorded.
		if s.Encrypts() && !answered && !h.s.Sessions.fresh(s.ID, h.ad.str("Nonce")) {
			return h.denied("the resumption is a copy of an earlier one, or has no nonce")
		}
		h.s.Sessions.use(s.ID)
		h.s.Sessions.came(s.ID, version)
		h.widen(s, cmd)
		return nil
	}
	switch {
	case !s.Encrypts(): // there is nothing to be proven, and nothing above READ to be had
		return proven()
	case cmd.Acts() && cmd.Empty && !h.securityOnly():
		return proven()
	}
	h.conn.WhenProven(proven)
	if !cmd.Acts() || h.securityOnly() {
		return nil
	}
	return h.conn.Await()
}

// widen lets the message in hand be as long as the command's may be, for its
// first packet has shown whose session it is. What somebody has narrowed
// meanwhile stays so.
func (h *serverShake) widen(s *Session, cmd command.Row) {
	now := h.conn.Limits()
	if !s.Peer.Proven() || !h.conn.Proven() || now.Message < min(maxHandshake, allow(cmd, h.limits, false).Message) {
		return
	}
	wide := allow(cmd, h.limits, true)
	wide.Timeout = now.Timeout
	h.conn.SetLimits(wide)
}

// offersAES reports whether a client's choice of ciphers is AES; one that says
// nothing is too old to have it.
func offersAES(methods string) bool {
	all := words(methods)
	return len(all) > 0 && cryptoName(all[0]) == "AES"
}

// negotiate makes a new session.
func (h *serverShake) negotiate(cmd command.Row) (*Request, error) {
	if !h.ad.yes("NewSession") {
		return nil, h.invalid("the client wants neither an old session nor a new one")
	}
	if h.ad.str("Enact") != "NO" {
		return nil, h.invalid("the client does not ask for our policy")
	}
	version := clipVersion(h.ad.str("RemoteVersion"))
	h.conn.SetPeerVersion(version)
	policy, err := h.c.policy(cmd.Level)
	if err != nil {
		return nil, err
	}
	if cmd.Authenticated {
		policy.Authentication = Required
	}
	d, err := decideServer(policy, h.ad)
	if err != nil {
		return nil, h.denied(err.Error())
	}
	var ours keyExchange
	public := ""
	if d.ecdh != "" {
		if ours, err = h.s.keyExchange(); err != nil {
			return nil, errs.E("security.Handshake", errs.Internal, "", err)
		}
		public = ours.Public()
	}
	if err := h.send(h.reply(policy, d, public)); err != nil {
		return nil, err
	}
	key, tried, err := h.prove(cmd, policy, d, ours)
	if err != nil {
		return nil, err
	}
	if (d.encrypt || d.integrity) && key == nil {
		return nil, h.denied("there is to be encryption, but no key came about")
	}
	if err := h.encrypt(key); err != nil {
		return nil, err
	}
	return h.conclude(cmd, d, key, tried)
}

// reply is our answer to the client's policy.
func (h *serverShake) reply(p Policy, d decision, public string) literals {
	var ad literals
	ad.set("Authentication", yesNo(d.authenticate))
	ad.set("Encryption", yesNo(d.encrypt))
	ad.set("Integrity", yesNo(d.integrity))
	first := ""
	if len(d.methods) > 0 {
		first = d.methods[0].String()
	}
	ad.set("AuthMethods", first)
	ad.set("AuthMethodsList", authn.FormatMethods(d.methods))
	if d.aes {
		if d.ecdh != "" || d.authenticate {
			ad.set("CryptoMethods", "AES")
		}
		ad.set("CryptoMethodsList", cryptoList(d.ciphers))
	}
	ad.set("SessionDuration", strconv.FormatInt(int64(d.duration/time.Second), 10))
	if d.leased {
		ad.set("SessionLease", int64(d.lease/time.Second))
	}
	ad.set("Enact", "YES")
	ad.set("NegotiatedSession", true)
	ad.text("RemoteVersion", h.s.Version)
	ad.text("TrustDomain", h.c.settings.TrustDomain)
	ad.text("IssuerKeys", h.c.issuers(p))
	ad.text("ECDHPublicKey", public)
	if d.authenticate {
		ad.set("AuthRequired", d.required)
	}
	return ad
}

// prove authenticates the client if that was agreed, and derives the key. The
// key is nil if there is none.
func (h *serverShake) prove(cmd command.Row, p Policy, d decision, ours keyExchange) (key Key, tried bool, err error) {
	if ours != nil {
		secret, err := ours.Secret(d.ecdh)
		if err != nil {
			return nil, false, h.invalid(err.Error())
		}
		key = DeriveKey(secret)
	}
	if !d.authenticate {
		return key, false, nil
	}
	if len(d.methods) == 0 {
		return nil, false, h.denied(fmt.Sprintf("no method of authentication is common: the client has %q, level %s takes %q",
			clip(h.ad.str("AuthMethods")), cmd.Level, authn.FormatMethods(p.Methods)))
	}
	result, err := h.c.authenticate(h.ctx, h.conn, p, authn.Peer{Version: h.conn.PeerVersion(), Remote: h.from}, d.methods)
	if err != nil {
		if d.required || errs.KindOf(err) != errs.Denied {
			return nil, true, err
		}
		h.s.log(h.ctx, slog.LevelInfo, "authentication failed but is not required", slog.String("peer", h.from.String()), slog.Any("err", err))
		return key, true, nil
	}
	if h.peer, err = h.identify(cmd, result.Identity); err != nil {
		return nil, true, err
	}
	if key == nil && result.Wraps() && d.aes {
		return h.handKey(result, d)
	}
	h.conn.PutInt(0)
	return key, true, h.conn.EndMessage()
}

// handKey sends a key to a client that has no ECDH, wrapped in what the method
// agreed on.
func (h *serverShake) handKey(result authn.Result, d decision) (Key, bool, error) {
	key := make(Key, keySize)
	if _, err := io.ReadFull(h.s.random(), key); err != nil {
		return nil, true, errs.E("security.Handshake", errs.Internal, "", err)
	}
	wrapped, err := result.Wrap(authn.Secret(key))
	if err != nil {
		return nil, true, err
	}
	h.conn.PutInt(1)
	if err := h.conn.EndMessage(); err != nil {
		return nil, true, err
	}
	for _, n := range []int64{keySize, wireAES, int64(d.duration / time.Second), int64(len(wrapped))} {
		h.conn.PutInt(n)
	}
	h.conn.PutBytes(wrapped)
	return key, true, h.conn.EndMessage()
}

// wireAES is AES in a key-exchange message.
const wireAES = 3

// identify makes a peer of who was authenticated.
func (h *serverShake) identify(cmd command.Row, id authn.Identity) (Peer, error) {
	p, err := h.c.settings.peer(id)
	if err != nil {
		return unauthenticatedPeer(), err
	}
	if id.Method == authn.ClaimToBe {
		p.Limited, p.Limit = true, []Level{cmd.Level}
	}
	return p, nil
}

// conclude tells the client what became of its request, and keeps the session
// if it may act.
func (h *serverShake) conclude(cmd command.Row, d decision, key Key, tried bool) (*Request, error) {
	id, err := h.s.newID()
	if err != nil {
		return nil, err
	}
	session := &Session{
		ID: id, Key: key, Peer: h.peer, PeerVersion: h.conn.PeerVersion(), Negotiated: true,
		PeerAddress: clip(h.ad.str("ServerCommandSock")), From: h.from.Addr(), Encryption: d.encrypt, Ciphers: d.ciphers,
	}
	session.ValidCommands = h.served(cmd, session)
	if d.lease > 0 {
		session.Lease = d.lease + h.c.settings.Slack
	}
	r := &Request{Command: h.command, Session: session, Peer: h.peer, Addr: h.from}
	v, refused := h.s.authorize(h.c, r)
	var ad literals
	if refused == nil {
		ad.set("ReturnCode", "AUTHORIZED")
	} else {
		ad.set("ReturnCode", "DENIED")
	}
	ad.set("Sid", session.ID)
	ad.set("User", h.peer.User)
	ad.set("ValidCommands", commandList(session.ValidCommands))
	ad.set("TriedAuthentication", tried)
	if err := h.send(ad); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	// A peer that sees the id of a session without a key could act under it in the
	// name of the peer, so only those of peers without a name are kept.
	if session.Encrypts() || !h.peer.Authenticated() {
		if err := h.s.Sessions.Add(session, d.duration+h.c.settings.Slack); err != nil {
			return nil, err
		}
	}
	r.Why = v.Why
	return h.finish(r)
}

// served are the commands that a new session may be used for: those of its level
// and of what that implies, as far as their own level does not demand more.
func (h *serverShake) served(cmd command.Row, s *Session) []int {
	return slices.DeleteFunc(h.s.Commands.Valid(cmd.Level, h.peer.Mapped()), func(n int) bool {
		return h.c.settings.Policy(h.s.Commands[n].Level).lacks(s) != ""
	})
}

// finish answers what is only about security.
func (h *serverShake) finish(r *Request) (*Request, error) {
	switch h.real {
	case command.DCAuthenticate:
		r.Done = true
	case command.DCSecQuery:
		r.Done = true
		var ad literals
		ad.set("AuthorizationSucceeded", true)
		if t := r.Peer.Token; t != nil {
			ad.text("AuthTokenId", t.ID)
			ad.text("AuthTokenIssuer", t.Issuer)
			ad.text("AuthTokenProject", t.Project)
			ad.text("AuthTokenScopes", strings.Join(t.Scopes, ","))
			ad.text("AuthTokenSubject", t.Subject)
		}
		return r, h.send(ad)
	}
	return r, nil
}

// send sends an ad as a message.
func (h *serverShake) send(ad literals) error {
	if h.s.arrange != nil {
		h.s.arrange(&ad)
	}
	put(h.conn, ad)
	return h.conn.EndMessage()
}

// encrypt switches AES on; without a key it stays clear.
func (h *serverShake) encrypt(key Key) error {
	if len(key) == 0 {
		return nil
	}
	return h.conn.EnableAES(key)
}

func (h *serverShake) invalid(why string) error {
	return errs.E("security.Handshake", errs.Invalid, h.conn.Peer(), fmt.Errorf("%s", why))
}

func (h *serverShake) denied(why string) error {
	return errDenied("security.Handshake", h.conn.Peer(), why)
}

// level returns how loud a refusal is: what a person should know of is a
// warning, a peer that went away is not.
func (h *serverShake) level(err error) slog.Level {
	switch errs.KindOf(err) {
	case errs.Denied, errs.NotFound:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func (s *Server) keyExchange() (keyExchange, error) {
	if s.newKeyExchange != nil {
		return s.newKeyExchange()
	}
	return newKeyExchange(s.random())
}
