// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

const vectors = "../testdata/vectors"

// recording is one recorded connection as the tests here look at it.
type recording struct {
	t    *testing.T
	v    *cedartest.Vector
	c    *cedartest.Connection
	role cedartest.Role // the end that is ours in this test

	next  int // message that is next in the record
	first literals
	shown []literals // handshake ads of our role, not yet sent
	reply literals   // of the server to the first ad
	post  literals   // post-auth
}

// adOf returns the ad a recorded message ends with.
func adOf(m *cedartest.Message) (literals, bool) {
	if m.Event != "" || len(m.Items) == 0 || m.Items[len(m.Items)-1].Ad == nil {
		return nil, false
	}
	var ad literals
	for _, line := range *m.Items[len(m.Items)-1].Ad {
		a, err := parseLiteral(line)
		if err != nil {
			return nil, false
		}
		ad = append(ad, a)
	}
	return ad, true
}

func newRecording(t *testing.T, v *cedartest.Vector, c *cedartest.Connection, role cedartest.Role) *recording {
	r := &recording{t: t, v: v, c: c, role: role}
	for i, m := range c.Messages {
		if m.Event == "" && m.Items[0].Int != nil && *m.Items[0].Int == command.DCAuthenticate {
			r.next = i
			break
		}
		if m.Event == "" && m.From == cedartest.Client && (m.Items[0].Int == nil || *m.Items[0].Int != 75) {
			t.Skip("no handshake")
		}
	}
	r.first, _ = adOf(c.Messages[r.next])
	if r.next > 0 && role == cedartest.Server && !slices.ContainsFunc(c.Messages, func(m *cedartest.Message) bool { return m.From == role }) {
		t.Skip("the shared port hung up before a daemon was reached")
	}
	for _, m := range c.Messages[r.next:] {
		ad, ok := adOf(m)
		if !ok {
			continue
		}
		if m.From == role {
			r.shown = append(r.shown, ad)
		}
		if m.From == cedartest.Server {
			if _, ok := ad.find("Enact"); ok {
				r.reply = ad
			}
			if _, ok := ad.find("ValidCommands"); ok {
				r.post = ad
			}
		}
	}
	return r
}

// arrange holds an ad that we are about to send against the recorded one and
// puts it into the recorded order, byte for byte.
func (r *recording) arrange(ad *literals) {
	if len(r.shown) == 0 {
		r.t.Errorf("we send an ad that was not recorded: %v", *ad)
		return
	}
	want := r.shown[0]
	r.shown = r.shown[1:]
	for _, a := range *ad {
		v, ok := want.find(a.name)
		switch {
		case ok && sameValue(a, v):
		case !ok && r.mayLack(a):
		default:
			r.t.Errorf("we send %s, recorded is %v (%t)", a.line(), v, ok)
		}
	}
	for _, a := range want {
		if _, ok := ad.find(a.name); !ok && !r.mayMiss(a) {
			r.t.Errorf("we do not send %s", a.line())
		}
	}
	*ad = want
}

// mayLack are attributes we send and a recorded peer did not.
func (r *recording) mayLack(a literal) bool {
	switch a.name {
	case "AuthenticationNew": // the recorded client of ours did without
		return r.role == cedartest.Client && r.c.OurRole == cedartest.Client
	case "TriedAuthentication": // a collector leaves out false
		return a.value == false && r.c.OurRole == cedartest.Client
	case "AuthRequired": // a collector leaves out true
		return a.value == true && r.c.OurRole == cedartest.Client
	}
	return false
}

// mayMiss are attributes that a recorded peer sent and we do not.
func (r *recording) mayMiss(a literal) bool {
	// Keys of issuers were told without TOKEN among the methods.
	methods := r.first.str("AuthMethods")
	if r.role == cedartest.Server {
		methods = r.reply.str("AuthMethodsList")
	}
	return a.name == "IssuerKeys" && !strings.Contains(methods, "TOKEN")
}

// sameValue compares a value with a recorded one. Lists of commands have no
// order, and ciphers other than AES are offered by real peers alone.
func sameValue(a literal, recorded any) bool {
	if a.value == recorded {
		return true
	}
	text, _ := recorded.(string)
	switch a.name {
	case "ValidCommands":
		ours, err := parseCommands(a.value.(string))
		theirs, err2 := parseCommands(text)
		slices.Sort(ours)
		slices.Sort(theirs)
		return err == nil && err2 == nil && slices.Equal(ours, theirs)
	case "CryptoMethods":
		return a.value == "AES" && slices.Contains(words(text), "AES")
	}
	return false
}

// fixed is a key exchange whose private key is not known.
type fixed struct {
	public string
	secret []byte
}

func (f fixed) Public() string                { return f.public }
func (f fixed) Secret(string) ([]byte, error) { return f.secret, nil }

// keyExchange is our half of the recorded exchange.
func (r *recording) keyExchange() (keyExchange, error) {
	if r.role == r.c.OurRole && len(r.c.Session.ECDHPrivate) > 0 {
		private, err := ecdh.P256().NewPrivateKey(r.c.Session.ECDHPrivate)
		return p256{private}, err
	}
	public := r.first.str("ECDHPublicKey")
	if r.role == cedartest.Server {
		public = r.reply.str("ECDHPublicKey")
	}
	return fixed{public, r.c.Session.ECDHShared}, nil
}

// rand yields the recorded nonce of our role.
func (r *recording) rand() *bytes.Reader {
	for _, ad := range r.shown {
		if n := ad.str("Nonce"); n != "" {
			b, _ := base64.StdEncoding.DecodeString(n)
			return bytes.NewReader(b)
		}
	}
	return bytes.NewReader(nil)
}

// played authenticates by the record: it sends and compares the recorded
// messages of the method.
type played struct {
	r        *recording
	identity authn.Identity
	keys     []string
}

func (p played) Offer(methods []authn.Method) []authn.Method { return methods }
func (p played) IssuerKeys() ([]string, error)               { return p.keys, nil }

func (p played) Authenticate(_ context.Context, conn *cedar.Conn, _ authn.Peer, methods []authn.Method) (authn.Result, error) {
	if len(methods) == 0 {
		return authn.Result{}, errs.E("played", errs.Denied, "", errors.New("no method"))
	}
	for ; p.r.next < len(p.r.c.Messages); p.r.next++ {
		m := p.r.c.Messages[p.r.next]
		if m.Event != "" {
			return authn.Result{}, errs.E("played", errs.Denied, "", errors.New("recorded as failed"))
		}
		if m.Note == "key exchange" {
			return authn.Result{Identity: p.identity}, nil
		}
		if err := p.r.exchange(conn, m); err != nil {
			return authn.Result{}, err
		}
	}
	return authn.Result{}, errs.E("played", errs.Denied, "", errors.New("the record ends"))
}

// exchange sends a recorded message or holds a received one against it.
func (r *recording) exchange(conn *cedar.Conn, m *cedartest.Message) error {
	if m.From == r.role {
		conn.PutBytes(m.Plaintext)
		return conn.EndMessage()
	}
	got, err := conn.Rest()
	if err != nil {
		return err
	}
	if err := cedartest.Diff(m.Plaintext, got); err != nil {
		return err
	}
	return conn.EndOfMessage()
}

// rest plays what comes after the handshake, which shows that the stream is
// in the right state.
func (r *recording) rest(conn *cedar.Conn) {
	for _, m := range r.c.Messages[r.payload():] {
		if m.Event != "" {
			continue
		}
		if err := r.exchange(conn, m); err != nil {
			r.t.Errorf("%s: %v", m.Note, err)
			return
		}
	}
}

// payload is the index of the first message behind the handshake.
func (r *recording) payload() int {
	for i := len(r.c.Messages) - 1; i >= 0; i-- {
		m := r.c.Messages[i]
		if m.Event == cedartest.EncryptionOn || m.Event == "" && m.Note == "post-auth ad" ||
			m.Event == "" && m.Note == "DC_SEC_QUERY reply" && r.role == cedartest.Server {
			return i + 1
		}
	}
	return len(r.c.Messages)
}

func (r *recording) settings(level Level) *Settings {
	s := &Settings{
		Authorizer: openTo(level), UIDDomain: "wirev.test", TrustDomain: r.first.str("TrustDomain"), StepTimeout: 10 * time.Second, Deadline: 20 * time.Second,
		Slack: 20 * time.Second, MatchSessions: true, FamilySession: true, ResumeResponse: true,
	}
	if r.role == cedartest.Server {
		s.TrustDomain = r.reply.str("TrustDomain")
	}
	return s
}

// openTo allows everybody a level, and to turn to any server.
func openTo(open ...Level) *Authorizer {
	a := &Authorizer{}
	for _, l := range append(open, ClientLevel) {
		a.lists[l] = lists{allowName: "ALLOW_" + l.String(), allow: []rule{{text: "*", user: "*", net: network{all: true}, isNet: true}}}
	}
	return a
}

// commands are a table in which the recorded ValidCommands are those of one
// level.
func (r *recording) commands() (Commands, Level) {
	level := Daemon
	if t := r.identity().Token; t != nil && slices.Contains(t.Scopes, "condor:/ADVERTISE_STARTD") {
		level = AdvertiseStartd
	}
	table := Commands{}
	if r.post != nil {
		valid, _ := parseCommands(r.post.str("ValidCommands"))
		for _, n := range valid {
			table[n] = command.Row{Number: n, Terms: command.Terms{Level: level}}
		}
	} else {
		for _, name := range []string{"Command", "AuthCommand"} {
			if n, ok := r.first.number(name); ok && n != 999999 {
				table[int(n)] = command.Row{Number: int(n), Terms: command.Terms{Level: level}}
			}
		}
	}
	return table, level
}

// sessions are the sessions a recording takes up.
func (r *recording) sessions(c clock.Clock) *Sessions {
	t := NewSessions(c, 100)
	for _, s := range r.v.Secrets.Claims {
		id, err := claim.ParseID(s.ClaimID)
		if err != nil {
			r.t.Fatal(err)
		}
		if r.role == r.c.OurRole {
			_, err = t.AddClaim(id)
		} else {
			_, err = t.AddExecuteSide(id, r.v.Secrets.EPSinful)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	if f := r.v.Secrets.FileTransfer; f != nil {
		if _, err := t.AddShared(f.SessionID, f.SessionInfo, claim.Secret(f.KeyText)); err != nil {
			r.t.Fatal(err)
		}
	}
	sid := r.first.str("Sid")
	if _, ok := t.Get(sid); !ok && sid != "" && sid != "nosuch:1:2:3" {
		s := &Session{ID: sid, Key: Key(r.c.Session.Key), Peer: Peer{User: "tester@wirev.test", Method: "FS"}, Negotiated: true, PeerVersion: r.first.str("RemoteVersion")}
		if strings.Contains(sid, "#") {
			s.Peer, s.Negotiated = Peer{User: SubmitSide, Method: MethodMatch}, false
		} else if r.role == cedartest.Client {
			s.Address, s.ValidCommands = r.first.str("ConnectSinful"), []int{r.command()}
			if answer, _ := r.first.boolean("ResumeResponse"); !answer {
				s.PeerVersion = "$CondorVersion: 9.8.0 OLD $"
			}
		}
		if err := t.Add(s, time.Hour); err != nil {
			r.t.Fatal(err)
		}
	}
	return t
}

func (r *recording) command() int {
	n, _ := r.first.number("Command")
	return int(n)
}

func (r *recording) subcommand() int {
	n, _ := r.first.number("AuthCommand")
	return int(n)
}

// player plays the other end, exactly.
func (r *recording) player() (conn *cedar.Conn, done func()) {
	p := &cedartest.Player{Conn: r.c, Role: r.role.Other(), Exact: true}
	p.Skip = func(m *cedartest.Message) bool {
		// Where no method is common our two sides stop at once.
		return m.Note == "method mask" && r.reply.str("AuthMethods") == "" && r.reply != nil
	}
	nc, wait := p.Start(r.t)
	conn = cedar.NewConn(nc, cedar.Limits{})
	conn.SetPacketSize(cedar.ClassicPacket)
	conn.SetRand(r.c.Rand(r.role))
	// What came before the handshake is not ours.
	for _, m := range r.c.Messages[:r.next] {
		switch {
		case m.Event == cedartest.DigestsRestart:
			conn.ResetDigests()
		case m.Event == "":
			if err := r.exchange(conn, m); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return conn, func() {
		_ = conn.Close()
		wait()
	}
}

// clock is one that stands at the second of a recorded session id.
func (r *recording) clock() *clock.Fake {
	at := int64(1795188226)
	if parts := strings.Split(r.post.str("Sid"), ":"); len(parts) == 4 {
		at, _ = strconv.ParseInt(parts[2], 10, 64)
	}
	return clock.NewFake(time.Unix(at, 0))
}

// identity is who the recorded client turned out to be.
func (r *recording) identity() authn.Identity {
	user, domain := splitUser(r.post.str("User"))
	id := authn.Identity{Method: authn.FS, User: user, Domain: domain, Name: user}
	if methods, _ := authn.ParseMethods(r.reply.str("AuthMethods")); len(methods) == 1 {
		id.Method = methods[0]
	}
	if r.c.Session.AKEP2 != nil && r.c.Session.AKEP2.Token != "" {
		id.Name = ""
		id.Token = &authn.TokenClaims{Issuer: "wirev.test", Subject: r.post.str("User")}
		for _, m := range r.c.Messages {
			if ad, ok := adOf(m); ok && ad.str("AuthTokenId") != "" {
				id.Token.Scopes, id.Token.ID = words(ad.str("AuthTokenScopes")), ad.str("AuthTokenId")
			}
		}
		if r.post.str("ReturnCode") == "DENIED" {
			id.Token.Scopes = []string{"condor:/READ"}
		}
	}
	return id
}
