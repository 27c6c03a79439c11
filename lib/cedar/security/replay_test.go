// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
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
		if m.Event == "" && m.Items[0].Int != nil && *m.Items[0].Int == DCAuthenticate {
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

// agreement is our half of the recorded exchange.
func (r *recording) agreement() (agreement, error) {
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
			table[n] = Command{Number: n, Level: level}
		}
	} else {
		for _, name := range []string{"Command", "AuthCommand"} {
			if n, ok := r.first.number(name); ok && n != 999999 {
				table[int(n)] = Command{Number: int(n), Level: level}
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

func eachRecording(t *testing.T, role cedartest.Role, f func(r *recording)) {
	for _, v := range cedartest.LoadDir(t, vectors) {
		for _, c := range v.Connections {
			t.Run(fmt.Sprintf("%s/%d", v.Name, c.Index), func(t *testing.T) {
				t.Parallel()
				f(newRecording(t, v, c, role))
			})
		}
	}
}

// Every recorded handshake, with our server against the recorded client: each
// of our replies is the recorded one, to the byte, and the rest of the
// connection decrypts and encrypts as it was.
func TestReplayServer(t *testing.T) {
	t.Parallel()
	eachRecording(t, cedartest.Server, func(r *recording) {
		t := r.t
		now := r.clock()
		table, level := r.commands()
		s := &Server{
			Commands: table, Sessions: r.sessions(now), Clock: now, Rand: r.rand(), newAgreement: r.agreement, arrange: r.arrange,
			Version: ourVersion(r.shown),
		}
		if parts := strings.Split(r.post.str("Sid"), ":"); len(parts) == 4 {
			s.Host = parts[0]
			s.PID, _ = strconv.Atoi(parts[1])
			n, _ := strconv.ParseInt(parts[3], 10, 64)
			s.counter.Store(n)
		}
		settings := r.settings(level)
		settings.policies[level] = r.serverPolicy(level)
		s.Configure(settings, played{r: r, identity: r.identity(), keys: splitKeys(r.reply.str("IssuerKeys"))})

		conn, done := r.player()
		defer done()
		r.next++ // the first message is read by the handshake
		if r.reply != nil {
			r.next++
		}
		req, err := s.Handshake(t.Context(), conn, netip.MustParseAddrPort("127.0.0.1:40000"))
		if refused := r.refused(); refused != errs.Other {
			if errs.KindOf(err) != refused {
				t.Fatalf("err = %v, want %v", err, refused)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want := r.command()
		if want == DCSecQuery {
			want = r.subcommand()
		}
		if req.Command != want || req.Bare || req.Done != (r.command() == DCSecQuery) {
			t.Errorf("request %+v, want command %d", req, want)
		}
		if r.post != nil && req.Peer.User != r.post.str("User") {
			t.Errorf("user %q, want %q", req.Peer.User, r.post.str("User"))
		}
		if r.post == nil && strings.HasPrefix(req.Session.ID, "<") && req.Peer.User == Unauthenticated {
			t.Errorf("the peer of a claim session is %q", req.Peer.User)
		}
		if len(r.shown) > 0 && r.post != nil && !req.Done {
			r.shown = nil // answers of the command
		}
		r.rest(conn)
	})
}

// Every recorded handshake, with our client against the recorded server.
func TestReplayClient(t *testing.T) {
	t.Parallel()
	eachRecording(t, cedartest.Client, func(r *recording) {
		t := r.t
		now := r.clock()
		pid, _ := r.first.number("ServerPid")
		c := &Client{
			Sessions: r.sessions(now), Clock: now, Rand: r.rand(), newAgreement: r.agreement, arrange: r.arrange,
			Version: r.first.str("RemoteVersion"), Subsystem: r.first.str("Subsystem"), PID: int(pid),
			Address: func() string { return r.first.str("ServerCommandSock") },
		}
		settings := r.settings(ClientLevel)
		settings.policies[ClientLevel] = r.clientPolicy()
		c.Configure(settings, played{r: r, keys: splitKeys(r.first.str("IssuerKeys"))})
		if _, ok := r.first.find("ECDHPublicKey"); !ok && r.first.yes("NewSession") {
			c.newAgreement = func() (agreement, error) { return fixed{}, nil }
		}
		to, err := cedar.ParseSinful(r.first.str("ConnectSinful"))
		if err != nil {
			t.Fatal(err)
		}
		conn, done := r.player()
		defer done()
		r.next++
		if r.reply != nil {
			r.next++
		}
		o := Options{AuthCommand: r.subcommand()}
		if sid := r.first.str("Sid"); strings.Contains(sid, "#") {
			o.Session = sid
		}
		if r.first.str("Sid") == "nosuch:1:2:3" {
			s := &Session{ID: "nosuch:1:2:3", Key: make(Key, keySize), Peer: nobody(), Negotiated: true, PeerVersion: c.Version, Address: to.String(), ValidCommands: []int{r.command()}}
			if err := c.Sessions.Add(s, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		session, err := c.Open(t.Context(), conn, to, r.command(), o)
		if refused := r.refused(); refused != errs.Other {
			if err == nil {
				t.Fatalf("opened, want %v", refused)
			}
			if r.post != nil && errs.KindOf(err) != errs.Denied {
				t.Errorf("err = %v, want denied", err)
			}
			if c.Sessions.Len() > len(r.v.Secrets.Claims) {
				t.Errorf("a refused session was kept: %v", c.Sessions.IDs())
			}
			if r.first.str("Sid") == "nosuch:1:2:3" && !forgotten(err) {
				t.Errorf("err = %v, want one after which a new session is tried", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.post != nil {
			if session.ID != r.post.str("Sid") || session.Self != r.post.str("User") {
				t.Errorf("session %q of %q, want %q of %q", session.ID, session.Self, r.post.str("Sid"), r.post.str("User"))
			}
			if again, ok := c.Sessions.choose(to.String(), r.command(), false); r.command() != DCSecQuery && (!ok || again != session) {
				t.Error("the session is not found again for its command")
			}
		}
		if session.Encrypts() != (len(r.c.Session.Key) > 0) || conn.Encrypted() != session.Encrypts() {
			t.Errorf("encrypted: session %t, stream %t", session.Encrypts(), conn.Encrypted())
		}
		r.shown = nil
		r.rest(conn)
	})
}

// refused is the kind of error that a recording ends with, Other if it does
// not.
func (r *recording) refused() errs.Kind {
	switch {
	case r.post.str("ReturnCode") == "DENIED":
		return errs.Denied
	case r.first.str("Sid") == "nosuch:1:2:3", r.command() == 999999:
		return errs.NotFound
	case r.first.yes("NewSession") && r.post == nil:
		return errs.Denied
	}
	return errs.Other
}

// serverPolicy is the policy that the recorded server must have had.
func (r *recording) serverPolicy(l Level) Policy {
	p := Policy{
		Level: l, Negotiation: Preferred, Authentication: Optional, Encryption: Optional, Integrity: Optional, AES: true,
		Duration: 24 * time.Hour, Lease: time.Hour,
	}
	if r.reply.yes("Authentication") {
		p.Authentication = Required
	}
	p.Methods, _ = authn.ParseMethods(r.reply.str("AuthMethodsList"))
	if len(p.Methods) == 0 {
		p.Methods = []authn.Method{authn.Password}
	}
	return p
}

// clientPolicy is the policy that the recorded client told.
func (r *recording) clientPolicy() Policy {
	p := Policy{
		Level: ClientLevel, Authentication: requirement(r.first, "Authentication"), Encryption: requirement(r.first, "Encryption"), Integrity: requirement(r.first, "Integrity"),
		Negotiation: requirement(r.first, "OutgoingNegotiation"), AES: true, Duration: seconds(r.first.str("SessionDuration")),
	}
	if _, ok := r.first.find("AuthenticationNew"); ok {
		p.Authentication = requirement(r.first, "AuthenticationNew")
	}
	n, _ := r.first.number("SessionLease")
	p.Lease = time.Duration(n) * time.Second
	p.Methods, _ = authn.ParseMethods(r.first.str("AuthMethods"))
	return p
}

func ourVersion(ads []literals) string {
	for _, ad := range ads {
		if v := ad.str("RemoteVersion"); v != "" {
			return v
		}
	}
	return ""
}

func splitKeys(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ", ")
}
