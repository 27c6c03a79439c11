// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
)

// office is a TokenRequests with a clock.
type office struct {
	*testing.T
	desk  *TokenRequests
	clock *clock.Fake
	log   bytes.Buffer
	key   bool
}

func newOffice(t *testing.T, knobs string) *office {
	s := snapshot(t, "TRUST_DOMAIN = pool.test\n"+knobs)
	o := &office{T: t, clock: clock.NewFake(time.Unix(1_700_000_000, 0)), key: true}
	o.desk = &TokenRequests{
		Config: func() *config.Snapshot { return s }, Clock: o.clock,
		Key: func(id string) (authn.SigningKey, error) {
			if !o.key || id != authn.PoolKey {
				return authn.SigningKey{}, errors.New("none")
			}
			return authn.NewSigningKey(id, []byte("key"))
		},
		Allowed: func(_ context.Context, l security.Level, r *security.Request) bool {
			return l == security.Administrator && r.Peer.User == "admin@pool.test"
		},
	}
	return o
}

// somebody asks from an address, with or without encryption.
type somebody struct {
	security.Peer
	from  string
	clear bool
}

var (
	stranger = somebody{Peer: security.Peer{User: "unauthenticated@unmapped", Method: "SSL"}, from: "192.0.2.7"}
	admin    = somebody{Peer: security.Peer{User: "admin@pool.test", Method: "FS"}, from: "127.0.0.1"}
)

// ask sends one ad and returns the ads of the answer.
func (o *office) ask(number int, who somebody, text string) []*classad.Ad {
	o.Helper()
	a, b := cedartest.Pipe()
	mine, theirs := cedar.NewConn(a, cedar.Limits{}), cedar.NewConn(b, cedar.Limits{})
	defer mine.Close()
	if !who.clear {
		key := bytes.Repeat([]byte{9}, 32)
		if err := errors.Join(mine.EnableAES(key), theirs.EnableAES(key)); err != nil {
			o.Fatal(err)
		}
	}
	table, err := listen.NewTable(o.desk.Commands()...)
	if err != nil {
		o.Fatal(err)
	}
	cmd, ok := table.Lookup(number)
	if !ok {
		o.Fatalf("there is no command %d", number)
	}
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		o.Fatal(err)
	}
	mine.PutAd(ad, cedar.AdOptions{})
	if err := mine.EndMessage(); err != nil {
		o.Fatal(err)
	}
	if err := cmd.Handle(o.Context(), &listen.Call{
		Conn: theirs, Command: cmd, Request: &security.Request{Command: number, Peer: who.Peer, Addr: netip.AddrPortFrom(netip.MustParseAddr(who.from), 5)}, Addr: netip.AddrPortFrom(netip.MustParseAddr(who.from), 5),
		Log: slog.New(slog.NewTextHandler(&o.log, nil)),
	}); err != nil {
		o.Fatal(err)
	}
	_ = theirs.Close()
	var all []*classad.Ad
	for {
		ad, err := mine.Ad(cedar.AdOptions{})
		if err != nil {
			return all
		}
		if err := mine.EndOfMessage(); err != nil {
			o.Fatal(err)
		}
		all = append(all, ad)
	}
}

// says is one attribute of an answer as text.
func says(ads []*classad.Ad, name string) string {
	if len(ads) == 0 {
		return "no answer"
	}
	ad := ads[len(ads)-1]
	if s, ok := ad.EvalString(name, nil); ok {
		return s
	}
	if n, ok := ad.EvalInt(name, nil); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

const wanted = "ClientId = \"c\"\nUser = \"condor@pool.test\"\nLimitAuthorization = \"ADVERTISE_STARTD\"\n"

// begin makes a request and returns what names it.
func (o *office) begin(who somebody, text string) (names string) {
	o.Helper()
	id := says(o.ask(command.DCStartTokenRequest, who, text), "RequestId")
	if len(id) != 7 {
		o.Fatalf("the request is called %q", id)
	}
	return "ClientId = \"c\"\nRequestId = \"" + id + "\"\n"
}

// lostNames never answers who an address belongs to.
type lostNames struct{ asked chan struct{} }

func (l lostNames) LookupAddr(ctx context.Context, _ string) ([]string, error) {
	l.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (l lostNames) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Whoever has an address whose names cannot be looked up holds nobody else up,
// and no longer than it takes to give up.
func TestTokenDeskBesideLookups(t *testing.T) {
	t.Parallel()
	for _, number := range []int{command.DCApproveTokenRequest, command.DCListTokenRequest} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, "")
			lost := lostNames{make(chan struct{}, 2)}
			names := &security.HostNames{Resolver: lost, Clock: clock.System()}
			o.desk.Allowed = func(ctx context.Context, _ security.Level, r *security.Request) bool {
				return len(names.Within(ctx, r.Addr.Addr())) > 0
			}
			ids := o.begin(stranger, wanted)
			began := time.Now()
			done := make(chan []*classad.Ad)
			go func() { done <- o.ask(number, stranger, ids) }()
			<-lost.asked
			if got := o.ask(command.DCFinishTokenRequest, stranger, ids); says(got, "ErrorCode") != "" || len(got) != 1 {
				t.Errorf("%d: somebody else is answered %v", number, got)
			}
			o.begin(stranger, wanted)
			if waited := time.Since(began); waited != 0 {
				t.Errorf("%d: others waited for %v", number, waited)
			}
			got := <-done
			if want := map[int]string{command.DCApproveTokenRequest: "6", command.DCListTokenRequest: "0"}[number]; says(got, "ErrorCode") != want || time.Since(began) != 5*time.Second {
				t.Errorf("%d: after %v %v", number, time.Since(began), got)
			}
		})
	}
}

// A token is requested, listed, approved by an administrator, and fetched once.
func TestTokenDesk(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "")
	names := o.begin(stranger, wanted+"TokenLifetime = 600\n")
	if got := o.ask(command.DCFinishTokenRequest, stranger, names); says(got, "Token") != "" || says(got, "ErrorCode") != "" {
		t.Errorf("before the approval: %v", got)
	}
	list := o.ask(command.DCListTokenRequest, admin, "")
	if len(list) != 2 || says(list, "ErrorCode") != "0" || says(list, "Owner") != "0" {
		t.Fatalf("the list has %d ads", len(list))
	}
	for name, want := range map[string]string{
		"ClientId": "c", "AuthenticatedIdentity": "unauthenticated@unmapped", "RequestedIdentity": "condor@pool.test", "PeerLocation": "192.0.2.7",
		"LimitAuthorization": "ADVERTISE_STARTD", "TokenLifetime": "600",
	} {
		if got := says(list[:1], name); got != want {
			t.Errorf("the list says %s = %q, want %q", name, got, want)
		}
	}
	if list := o.ask(command.DCListTokenRequest, stranger, ""); len(list) != 1 {
		t.Error("a stranger sees the request")
	}
	for _, bad := range []struct {
		number     int
		who        somebody
		text, code string
	}{
		{command.DCApproveTokenRequest, stranger, names, "6"},
		{command.DCApproveTokenRequest, admin, strings.Replace(names, `"c"`, `"d"`, 1), "5"},
		{command.DCApproveTokenRequest, admin, "ClientId = \"c\"\nRequestId = \"x\"\n", "5"},
		{command.DCApproveTokenRequest, admin, "ClientId = \"c\"\n", "1"},
		{command.DCFinishTokenRequest, stranger, strings.Replace(names, `"c"`, `"d"`, 1), "3"},
		{command.DCFinishTokenRequest, stranger, "ClientId = \"c\"\nRequestId = \"x\"\n", "3"},
	} {
		if got := says(o.ask(bad.number, bad.who, bad.text), "ErrorCode"); got != bad.code {
			t.Errorf("%d of %s with %q: error %q, want %q", bad.number, bad.who.User, bad.text, got, bad.code)
		}
	}
	if got := o.ask(command.DCApproveTokenRequest, admin, names); says(got, "ErrorCode") != "0" {
		t.Fatalf("approval: %s", says(got, "ErrorString"))
	}
	if got := says(o.ask(command.DCApproveTokenRequest, admin, names), "ErrorCode"); got != "5" {
		t.Errorf("a second approval: error %q", got)
	}
	inClear := stranger
	inClear.clear = true
	if got := o.ask(command.DCFinishTokenRequest, inClear, names); says(got, "Token") != "" || says(got, "ErrorCode") != "7" {
		t.Errorf("fetched in clear: %v", got)
	}
	text := says(o.ask(command.DCFinishTokenRequest, stranger, names), "Token")
	token, err := authn.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	now := o.clock.Now().Wall
	if c := token.Claims; c.Subject != "condor@pool.test" || c.Issuer != "pool.test" || c.KeyID != "POOL" || len(c.Scopes) != 1 || c.Scopes[0] != "condor:/ADVERTISE_STARTD" || !c.Expires.Equal(now.Add(10*time.Minute)) {
		t.Errorf("the token says %+v", c)
	}
	if got := says(o.ask(command.DCFinishTokenRequest, stranger, names), "ErrorCode"); got != "3" {
		t.Errorf("fetched twice: error %q", got)
	}
	if strings.Contains(o.log.String(), text) || !strings.Contains(o.log.String(), "by=admin@pool.test") {
		t.Errorf("the log:\n%s", &o.log)
	}
}

// What is not taken, and with which of the original's numbers.
func TestTokenRequestIsRefused(t *testing.T) {
	t.Parallel()
	inClear, nobody := stranger, stranger
	inClear.clear, nobody.Method = true, "ANONYMOUS"
	for _, tt := range []struct {
		name, knobs, text, code string
		who                     somebody
	}{
		{"off", "SEC_ENABLE_TOKEN_REQUEST = False\n", wanted, "44", stranger},
		{"no client", "", "User = \"a@b\"\n", "2", stranger},
		{"no user", "", "ClientId = \"c\"\n", "2", stranger},
		{"a user of two words", "", "ClientId = \"c\"\nUser = \"a b\"\n", "2", stranger},
		{"a level that is none", "", "ClientId = \"c\"\nUser = \"a@b\"\nLimitAuthorization = \"EVERYTHING\"\n", "2", stranger},
		{"outside of the limits", "SEC_TOKEN_REQUEST_LIMITS = READ\n", wanted, "3", stranger},
		{"in clear", "", wanted, "7", inClear},
		{"by nobody", "", wanted, "7", nobody},
		{"too long", "", "ClientId = \"" + strings.Repeat("c", 600) + "\"\nUser = \"a@b\"\n", "2", stranger},
	} {
		o := newOffice(t, tt.knobs)
		if got := says(o.ask(command.DCStartTokenRequest, tt.who, tt.text), "ErrorCode"); got != tt.code {
			t.Errorf("%s: error %q, want %q", tt.name, got, tt.code)
		}
		if len(o.desk.requests) != 0 {
			t.Errorf("%s: it is kept", tt.name)
		}
	}
	o := newOffice(t, "")
	o.key = false
	if got := says(o.ask(command.DCStartTokenRequest, stranger, wanted), "ErrorCode"); got != "4" {
		t.Errorf("without a key: error %q", got)
	}
	o.key = true
	many := stranger
	for n := 0; len(o.desk.requests) < mostTokenRequests; n++ { // more often than that if a number comes twice
		many.from = fmt.Sprintf("10.0.%d.%d", n/100, n%100)
		o.ask(command.DCStartTokenRequest, many, wanted)
	}
	if got := o.ask(command.DCStartTokenRequest, stranger, wanted); says(got, "ErrorCode") != "3" || len(o.desk.requests) != mostTokenRequests {
		t.Errorf("%d requests are kept, the next is answered %q", len(o.desk.requests), says(got, "ErrorString"))
	}
	o.clock.Advance(3 * time.Hour)
	if o.begin(stranger, wanted); len(o.desk.requests) != 1 {
		t.Errorf("%d requests are kept", len(o.desk.requests))
	}
}

// One address takes no more than its share of the places: others find some.
func TestTokenRequestsOfOneAddress(t *testing.T) {
	t.Parallel()
	for _, from := range [][3]string{{"192.0.2.7", "192.0.2.7", "192.0.2.8"}, {"2001:db8::1", "2001:db8::2:1", "2001:db8:0:1::1"}} {
		o := newOffice(t, "")
		who := stranger
		who.from = from[0]
		for range mostOfAddress * 11 / 10 {
			o.ask(command.DCStartTokenRequest, who, wanted)
		}
		if len(o.desk.requests) != mostOfAddress {
			t.Errorf("%d requests of %s are kept, want %d", len(o.desk.requests), who.from, mostOfAddress)
		}
		who.from = from[1]
		if got := o.ask(command.DCStartTokenRequest, who, wanted); says(got, "ErrorCode") != "3" || !strings.Contains(says(got, "ErrorString"), from[1]) {
			t.Errorf("one more of %s: %v", who.from, got)
		}
		who.from = from[2]
		o.begin(who, wanted)
	}
}

// The times of tokens are integer expressions, and one that is none gives no token
// without an end.
func TestTokenTimes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ knobs, lifetime, code string }{
		{"SEC_ISSUED_TOKEN_EXPIRATION = 10 * 60\n", "600", ""},
		{"SEC_ISSUED_TOKEN_EXPIRATION = -1\n", "", ""},
		{"SEC_ISSUED_TOKEN_EXPIRATION = soon\n", "", "4"},
	} {
		o := newOffice(t, tt.knobs)
		if got := says(o.ask(command.DCStartTokenRequest, stranger, wanted), "ErrorCode"); got != tt.code {
			t.Errorf("%q: error %q, want %q", tt.knobs, got, tt.code)
		}
		if list := o.ask(command.DCListTokenRequest, admin, ""); len(list) > 1 && says(list[:1], "TokenLifetime") != tt.lifetime {
			t.Errorf("%q: a token for %q seconds, want %q", tt.knobs, says(list[:1], "TokenLifetime"), tt.lifetime)
		}
	}
	o := newOffice(t, "SEC_TOKEN_REQUEST_LIFETIME = 2 * 50\nTOKEN_REQUEST_AUTO_APPROVE_MAX_LIFETIME = 5 * 60\n")
	names := o.begin(stranger, wanted)
	o.clock.Advance(101 * time.Second)
	if got := says(o.ask(command.DCFinishTokenRequest, stranger, names), "ErrorString"); got != "Request has expired." {
		t.Errorf("fetched too late: %q", got)
	}
	o.ask(command.DCAutoApproveTokenRequest, admin, "Subnet = \"192.0.2.0/24\"\nLifetime = 1000\n")
	if len(o.desk.rules) != 1 || o.desk.rules[0].end.Sub(o.desk.rules[0].since) != 5*time.Minute {
		t.Errorf("the rules are %+v", o.desk.rules)
	}
}

// A request that nobody approved in time is over, and polls are counted: the
// number of a request is not to be guessed.
func TestTokenRequestExpires(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "SEC_TOKEN_REQUEST_LIFETIME = 100\n")
	names := o.begin(stranger, wanted)
	o.clock.Advance(101 * time.Second)
	if got := says(o.ask(command.DCApproveTokenRequest, admin, names), "ErrorCode"); got != "5" {
		t.Errorf("approved too late: error %q", got)
	}
	if got := says(o.ask(command.DCFinishTokenRequest, stranger, names), "ErrorString"); got != "Request has expired." {
		t.Errorf("fetched too late: %q", got)
	}
	late := 0
	for range 2 * pollsASecond {
		if says(o.ask(command.DCFinishTokenRequest, stranger, names), "ErrorString") == "Request rate limit hit." {
			late++
		}
	}
	if late < pollsASecond {
		t.Errorf("%d of %d polls in no time were refused", late, 2*pollsASecond)
	}
	o.clock.Advance(time.Second)
	if got := says(o.ask(command.DCFinishTokenRequest, stranger, names), "ErrorString"); got != "Request ID is not known." {
		t.Errorf("a second later: %q", got)
	}
}

// A rule approves daemons of a network that want to advertise themselves, and
// what they asked for a minute before.
func TestTokenRule(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "")
	old := o.begin(stranger, wanted)
	o.clock.Advance(2 * time.Minute)
	fresh := o.begin(stranger, wanted)
	rule := func(net, life string) string {
		return says(o.ask(command.DCAutoApproveTokenRequest, admin, "Subnet = \""+net+"\"\nLifetime = "+life+"\n"), "ErrorCode")
	}
	for _, bad := range [][3]string{{"192.0.2.0/24", "0", "-1"}, {"everywhere", "9", "-2"}, {"192.0.2.0/255.0.255.0", "9", "-2"}, {"1.2.3.4.*", "9", "-2"}, {"192.0.2.0/24", "99999", "0"}} {
		if got := rule(bad[0], bad[1]); got != bad[2] {
			t.Errorf("a rule for %s and %s s: error %q, want %q", bad[0], bad[1], got, bad[2])
		}
	}
	if says(o.ask(command.DCFinishTokenRequest, stranger, old), "Token") != "" || says(o.ask(command.DCFinishTokenRequest, stranger, fresh), "Token") == "" {
		t.Error("the rule goes back for another time than a minute")
	}
	inClear, elsewhere := stranger, stranger
	inClear.clear, elsewhere.from = true, "198.51.100.7"
	for _, tt := range []struct {
		who  somebody
		text string
		want bool
	}{
		{stranger, wanted, true},
		{inClear, wanted, true}, // the network is trusted
		{elsewhere, wanted, false},
		{stranger, strings.Replace(wanted, "condor@", "root@", 1), false},
		{stranger, strings.Replace(wanted, "ADVERTISE_STARTD", "ADVERTISE_STARTD,ADMINISTRATOR", 1), false},
		{stranger, "ClientId = \"c\"\nUser = \"condor@pool.test\"\n", false}, // without limits
	} {
		if got := says(o.ask(command.DCStartTokenRequest, tt.who, tt.text), "Token") != ""; got != tt.want {
			t.Errorf("%s with %q: a token is given: %v", tt.who.from, tt.text, got)
		}
	}
	o.clock.Advance(time.Hour + time.Second) // no rule lives longer
	if says(o.ask(command.DCStartTokenRequest, stranger, wanted), "Token") != "" {
		t.Error("the rule is still in force")
	}
	for text, want := range map[string]string{"10.*": "10.0.0.0/8", "10.1.2.*": "10.1.2.0/24", "10.1.2.3/255.255.0.0": "10.1.0.0/16", "::1/64": "::/64", "10.1.2.3/0.0.0.0": "0.0.0.0/0"} {
		if p, ok := parseNetwork(text); !ok || p.String() != want {
			t.Errorf("%s is %v, %v; want %s", text, p, ok, want)
		}
	}
}

// Who is no administrator approves his own requests, and nothing that gives more
// than he has.
func TestTokenWithin(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := &wantedToken{user: "a@b", levels: []string{"READ"}, lifetime: time.Hour}
	forever := &wantedToken{user: "a@b", levels: []string{"READ"}, lifetime: -1}
	all := &wantedToken{user: "a@b", lifetime: time.Hour}
	ends := func(d time.Duration) *authn.TokenClaims { return &authn.TokenClaims{Expires: now.Add(d)} }
	for _, tt := range []struct {
		r    *wantedToken
		p    security.Peer
		code int64
	}{
		{r, security.Peer{User: "a@b"}, 0},
		{all, security.Peer{User: "a@b"}, 0},
		{r, security.Peer{User: "c@b"}, 6},
		{r, security.Peer{User: "a@b", Limited: true, Limit: []security.Level{security.Read}}, 0},
		{r, security.Peer{User: "a@b", Limited: true, Limit: []security.Level{security.Write}}, 7},
		{all, security.Peer{User: "a@b", Limited: true, Limit: []security.Level{security.Read}}, 7},
		{r, security.Peer{User: "a@b", Token: ends(2 * time.Hour)}, 0},
		{r, security.Peer{User: "a@b", Token: ends(time.Minute)}, 8},
		{forever, security.Peer{User: "a@b", Token: ends(time.Minute)}, 8},
		{forever, security.Peer{User: "a@b", Token: &authn.TokenClaims{}}, 0},
	} {
		var got tokenRefusal
		err := within(tt.r, tt.p, now)
		if errors.As(err, &got); got.code != tt.code {
			t.Errorf("%+v by %+v: %v, want %d", tt.r, tt.p, err, tt.code)
		}
	}
}

// Whatever is sent, the answer is an ad and nothing is kept beyond its bounds.
func FuzzTokenRequest(f *testing.F) {
	f.Add(wanted)
	f.Add("ClientId = \"c\"\nUser = \"a@b\"\nTokenLifetime = 99999999999\nLimitAuthorization = \"READ, WRITE\"\n")
	f.Add("Subnet = \"::/0\"\nLifetime = 5\n")
	f.Add("ClientId = 5\nRequestId = {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			return
		}
		o := newOffice(t, "")
		a, b := cedartest.Pipe()
		defer a.Close()
		defer b.Close()
		conn := cedar.NewConn(a, cedar.Limits{})
		if err := conn.EnableAES(bytes.Repeat([]byte{9}, 32)); err != nil {
			t.Fatal(err)
		}
		c := &listen.Call{Conn: conn, Request: &security.Request{Peer: admin.Peer}, Log: slog.New(slog.DiscardHandler)}
		now := o.clock.Now().Wall
		_, _ = o.desk.addRule(c, ad, now)
		_, _ = o.desk.start(c, ad, now)
		_, _ = o.desk.approve(c, ad, now, true)
		_, _ = o.desk.finish(c, ad, now)
		for _, r := range o.desk.requests {
			if len(r.client) > mostTokenWords || len(r.user) > mostTokenWords || strings.ContainsAny(r.client+r.user, "\n\x00") {
				t.Errorf("%+v is kept", r)
			}
		}
		for _, r := range o.desk.rules {
			if !r.net.IsValid() || r.end.Sub(r.since) > longestRule {
				t.Errorf("%+v is kept", r)
			}
		}
	})
}
