// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// made builds a token of any header and payload, signed with a key.
func made(t testing.TB, key SigningKey, algorithm, header, payload string) string {
	t.Helper()
	signed := signedPart(header, payload)
	signature := Secret("no signature")
	if algorithm != "" {
		var err error
		if signature, err = key.sign(algorithm, signed); err != nil {
			t.Fatal(err)
		}
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

const (
	poolHeader  = `{"alg":"HS256","kid":"POOL"}`
	goodPayload = `{"iss":"pool.test","jti":"11","sub":"bob@pool.test"}`
)

func TestVerify(t *testing.T) {
	t.Parallel()
	_, s := pair(t)
	keys := s.keys(s.Files)
	pool, err := keys.Key(PoolKey)
	if err != nil {
		t.Fatal(err)
	}
	two, err := keys.Key("key2")
	if err != nil {
		t.Fatal(err)
	}
	expr := config.NewExpr
	at := noon().Unix()
	tests := []struct {
		name  string
		token string
		rules Rules
		kind  errs.Kind
		says  string
	}{
		{"good", made(t, pool, "HS256", poolHeader, goodPayload), Rules{}, errs.Other, ""},
		{"of the other key", made(t, two, "HS256", `{"alg":"HS256","kid":"key2","typ":"JWT"}`, goodPayload), Rules{}, errs.Other, ""},
		{"HS384", made(t, pool, "HS384", `{"alg":"HS384","kid":"POOL"}`, goodPayload), Rules{}, errs.Other, ""},
		{"HS512", made(t, pool, "HS512", `{"alg":"HS512","kid":"POOL"}`, goodPayload), Rules{}, errs.Other, ""},
		{"no algorithm", made(t, pool, "", `{"alg":"none","kid":"POOL"}`, goodPayload), Rules{}, errs.Denied, "only HS256"},
		{"algorithm not named", made(t, pool, "HS256", `{"kid":"POOL"}`, goodPayload), Rules{}, errs.Denied, "only HS256"},
		{"lower case", made(t, pool, "HS256", `{"alg":"hs256","kid":"POOL"}`, goodPayload), Rules{}, errs.Denied, "only HS256"},
		{"another algorithm than said", made(t, pool, "HS512", poolHeader, goodPayload), Rules{}, errs.Denied, "signature"},
		{"signed with another key", made(t, two, "HS256", poolHeader, goodPayload), Rules{}, errs.Denied, "signature"},
		{"not signed", made(t, pool, "", poolHeader, goodPayload), Rules{}, errs.Denied, "signature"},
		{"no key named", made(t, pool, "HS256", `{"alg":"HS256"}`, goodPayload), Rules{}, errs.Denied, "(kid)"},
		{"a key that is not there", made(t, pool, "HS256", `{"alg":"HS256","kid":"key3"}`, goodPayload), Rules{}, errs.NotFound, "key3"},
		{"a key elsewhere", made(t, pool, "HS256", `{"alg":"HS256","kid":"../keys/key2"}`, goodPayload), Rules{}, errs.NotFound, "no such signing key"},
		{"no issuer", made(t, pool, "HS256", poolHeader, `{"jti":"11","sub":"bob"}`), Rules{}, errs.Denied, "issuer"},
		{"no id", made(t, pool, "HS256", poolHeader, `{"iss":"pool.test","sub":"bob"}`), Rules{}, errs.Denied, "(jti)"},
		{"no subject", made(t, pool, "HS256", poolHeader, `{"iss":"pool.test","jti":"11"}`), Rules{}, errs.Denied, "subject"},
		{"names of another case", made(t, pool, "HS256", poolHeader, `{"iss":"pool.test","jti":"11","SUB":"bob"}`), Rules{}, errs.Denied, "subject"},
		{"a capability", made(t, pool, "HS256", poolHeader, `{"cap":true,"iss":"pool.test","jti":"11","sub":"bob"}`), Rules{}, errs.Denied, "capability"},
		{"lasts until now", made(t, pool, "HS256", poolHeader, `{"exp":`+sprint(at)+`,"iss":"p","jti":"11","sub":"bob"}`), Rules{}, errs.Other, ""},
		{"over since a second", made(t, pool, "HS256", poolHeader, `{"exp":`+sprint(at-1)+`,"iss":"p","jti":"11","sub":"bob"}`), Rules{}, errs.Expired, "1s ago"},
		{"no time", made(t, pool, "HS256", poolHeader, `{"exp":"tomorrow","iss":"p","jti":"11","sub":"bob"}`), Rules{}, errs.Invalid, `"exp" is not a time`},
		{"a time beyond all", made(t, pool, "HS256", poolHeader, `{"exp":1e300,"iss":"p","jti":"11","sub":"bob"}`), Rules{}, errs.Invalid, `"exp" is not a time`},
		{"null is no time", made(t, pool, "HS256", poolHeader, `{"exp":null,"iss":"p","jti":"11","sub":"bob"}`), Rules{}, errs.Invalid, `"exp" is not a time`},
		{"old enough", made(t, pool, "HS256", poolHeader, `{"iat":`+sprint(at-60)+`,"iss":"p","jti":"11","sub":"bob"}`), Rules{MaxAge: time.Minute}, errs.Other, ""},
		{"too old", made(t, pool, "HS256", poolHeader, `{"iat":`+sprint(at-61)+`,"iss":"p","jti":"11","sub":"bob"}`), Rules{MaxAge: time.Minute}, errs.Expired, "1m1s old"},
		{"revoked", made(t, pool, "HS256", poolHeader, goodPayload), Rules{Revoked: expr(`jti == "11"`)}, errs.Denied, "revoked"},
		{"revoked by a number", made(t, pool, "HS256", poolHeader, `{"n":3,"iss":"p","jti":"11","sub":"bob"}`), Rules{Revoked: expr(`n`)}, errs.Denied, "revoked"},
		{"not revoked", made(t, pool, "HS256", poolHeader, goodPayload), Rules{Revoked: expr(`jti == "12"`)}, errs.Other, ""},
		{"not revoked by a number", made(t, pool, "HS256", poolHeader, `{"n":0.0,"iss":"p","jti":"11","sub":"bob"}`), Rules{Revoked: expr(`n`)}, errs.Other, ""},
		{"who knows", made(t, pool, "HS256", poolHeader, goodPayload), Rules{Revoked: expr(`nothing == 3`)}, errs.Denied, "revoked"},
		{"an error", made(t, pool, "HS256", poolHeader, goodPayload), Rules{Revoked: expr(`jti + 1`)}, errs.Denied, "revoked"},
		{"a text is no truth", made(t, pool, "HS256", poolHeader, goodPayload), Rules{Revoked: expr(`jti`)}, errs.Denied, "revoked"},
		{"too many parts", made(t, pool, "HS256", poolHeader, goodPayload) + ".x", Rules{}, errs.Invalid, "three parts"},
		{"no parts", "token", Rules{}, errs.Invalid, "three parts"},
		{"padding", "e30=.e30.e30", Rules{}, errs.Invalid, "base64url"},
		{"a line break in it", "e3\n0.e30.e30", Rules{}, errs.Invalid, "line break"},
		{"no JSON", "AAAA.e30.e30", Rules{}, errs.Invalid, "no JSON object"},
		{"null", made(t, pool, "HS256", poolHeader, `null`), Rules{}, errs.Invalid, "no JSON object"},
		{"two objects", made(t, pool, "HS256", poolHeader, `{}{}`), Rules{}, errs.Invalid, "something follows"},
		{"a name that is none", made(t, pool, "HS256", poolHeader, `{"sub":["bob"]}`), Rules{}, errs.Invalid, `"sub" is not a text`},
		{"a name cut short", made(t, pool, "HS256", poolHeader, `{"sub":"bob\u0000@x"}`), Rules{}, errs.Invalid, `"sub" is not a text`},
		{"deep", made(t, pool, "HS256", poolHeader, strings.Repeat("[", 4000)), Rules{}, errs.Invalid, "no JSON object"},
		{"long", strings.Repeat("A", maxToken+1), Rules{}, errs.Invalid, "longer than"},
	}
	for _, tt := range tests {
		c, err := keys.Verify(tt.token, tt.rules, noon())
		if (err == nil) != (tt.kind == errs.Other) || errs.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %v, %q", tt.name, err, tt.kind, tt.says)
		}
		if (err == nil) != (c.Subject != "") {
			t.Errorf("%s: claims %+v with %v", tt.name, c, err)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	_, s := pair(t)
	pool, err := s.keys(s.Files).Key(PoolKey)
	if err != nil {
		t.Fatal(err)
	}
	token := made(t, pool, "HS256", poolHeader, `{"iss":"p","jti":"1","sub":"b","scope":"condor:\/READ  storage.read:/ condor:/ADVERTISE_STARTD,condor:/","project":"x"}`)
	c, err := s.keys(s.Files).Verify(token, Rules{}, noon())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"condor:/READ", "storage.read:/", "condor:/ADVERTISE_STARTD", "condor:/"}, c.Scopes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"READ", "ADVERTISE_STARTD", ""}, c.Limits()); diff != "" {
		t.Error(diff)
	}
	if c.Project != "x" {
		t.Errorf("project %q", c.Project)
	}
	if (TokenClaims{Scopes: []string{"openid"}}).Limits() != nil {
		t.Error("a foreign scope limits")
	}
}

func TestIssueRefuses(t *testing.T) {
	t.Parallel()
	key, err := NewSigningKey("k", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Order{
		"no issuer": {Subject: "bob"}, "blank issuer": {Issuer: "a b", Subject: "bob"},
		"two issuers": {Issuer: "a,b", Subject: "bob"}, "no subject": {Issuer: "a"},
	} {
		if _, err := key.Issue(o, noon()); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := key.Issue(Order{Issuer: "a", Subject: "b", Rand: strings.NewReader("short")}, noon()); !errs.Is(err, errs.Broken) {
		t.Errorf("no randomness: %v", err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	key, err := NewSigningKey("key2", []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	token := func(subject, header string) string {
		return made(t, key, "HS256", header, `{"iss":"pool.test","jti":"1","sub":"`+subject+`"}`)
	}
	const h2 = `{"alg":"HS256","kid":"key2"}`
	write(t, first, "50-b", []byte("# comment\n  "+token("pool", poolHeader)+"  \r\n\n"+token("b", h2)+"\n"))
	write(t, first, "60-c", []byte(token("c", h2)))
	write(t, first, "10-broken", []byte("not a token\n"))
	write(t, first, "20-over", []byte(made(t, key, "HS256", h2, `{"exp":1000,"iss":"pool.test","jti":"1","sub":"over"}`)))
	write(t, first, "30-elsewhere", []byte(made(t, key, "HS256", h2, `{"iss":"else.test","jti":"1","sub":"elsewhere"}`)))
	write(t, first, "40-nokey", []byte(token("nokey", `{"alg":"HS256"}`)))
	write(t, first, "01-saved~", []byte(token("saved", h2)))
	write(t, first, "startd_auto_generated_token", []byte(token("own", h2)))
	if err := os.Symlink(filepath.Join(first, "60-c"), filepath.Join(second, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(second, "00-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	exclude, err := NewPattern(`~$`)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		tokens Tokens
		domain string
		keys   []string
		want   string // subject, "" for none
		says   string
	}{
		{"the first that fits", Tokens{Dirs: []string{first}, Exclude: exclude}, "pool.test", []string{"key1", "key2"}, "b", ""},
		{"of the pool's key", Tokens{Dirs: []string{first}, Exclude: exclude}, "pool.test", []string{PoolKey}, "pool", ""},
		{"without conditions", Tokens{Dirs: []string{first}, Exclude: exclude}, "", nil, "elsewhere", ""},
		{"our own first", Tokens{Dirs: []string{first}, Exclude: exclude, Subsystem: "STARTD"}, "pool.test", []string{"key2"}, "own", ""},
		{"a link", Tokens{Dirs: []string{second, first}}, "pool.test", []string{"key2"}, "c", ""},
		{"of another pool", Tokens{Dirs: []string{first}, Exclude: exclude}, "third.test", []string{"key2"}, "", "none of 8 tokens"},
		{"of another key", Tokens{Dirs: []string{second}}, "pool.test", []string{"key9"}, "", "none of 1 tokens is for this server: " + filepath.Join(second, "link") + ":1: the server does not have the key key2"},
		{"nothing", Tokens{Dirs: []string{filepath.Join(first, "none")}}, "pool.test", nil, "", "no token files"},
	}
	for _, tt := range tests {
		tt.tokens.Files = plainFiles{}
		got, err := tt.tokens.Find(tt.domain, tt.keys, noon())
		if got.Claims.Subject != tt.want || (err == nil) != (tt.want != "") || err != nil && (!errs.Is(err, errs.NotFound) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %q, %v; want %q, %q", tt.name, got.Claims.Subject, err, tt.want, tt.says)
		}
	}
	if _, err := (Tokens{Dirs: []string{first}}).Find("", nil, noon()); !errs.Is(err, errs.NotFound) {
		t.Errorf("nothing reads files: %v", err)
	}
}

func TestSigningKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	elsewhere := write(t, t.TempDir(), "pool.key", Scramble([]byte("abc\x00def")))
	write(t, dir, PoolKey, []byte("not the pool's key"))
	write(t, dir, "b", []byte("b"))
	write(t, dir, "a", []byte("a"))
	write(t, dir, "a~", []byte("a"))
	write(t, dir, "with blank", []byte("a"))
	keys := SigningKeys{PoolFile: elsewhere, Dir: dir, Exclude: &Pattern{text: `~$`}, Files: plainFiles{}}
	names, err := keys.Names()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{PoolKey, "a", "b"}, names); diff != "" {
		t.Error(diff)
	}
	whole, err := keys.Key(PoolKey)
	if err != nil {
		t.Fatal(err)
	}
	keys.PoolIsPassword = true
	cut, err := keys.Key(PoolKey)
	if err != nil {
		t.Fatal(err)
	}
	want, err := deriveSigningKey(PoolKey, Secret("abcabc"))
	if err != nil {
		t.Fatal(err)
	}
	if whole.key.open().Equal(cut.key.open()) || !cut.key.open().Equal(want.key.open()) {
		t.Error("SEC_TOKEN_POOL_SIGNING_KEY_IS_PASSWORD does not cut at NUL")
	}
	for _, id := range []string{"", ".", "..", "a/b", `a\b`, "a~", "c", "a:b", "with blank", "a\x00", strings.Repeat("x", 300)} {
		if _, err := keys.Key(id); !errs.Is(err, errs.NotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := (SigningKeys{Dir: dir}).Key("a"); !errs.Is(err, errs.NotFound) {
		t.Errorf("nothing reads files: %v", err)
	}
	write(t, dir, "empty", nil)
	if _, err := keys.Key("empty"); !errs.Is(err, errs.Invalid) {
		t.Errorf("an empty key: %v", err)
	}
	if names, err := (SigningKeys{Dir: filepath.Join(dir, "none"), Files: plainFiles{}}).Names(); err != nil || names != nil {
		t.Errorf("no directory: %q, %v", names, err)
	}
}

func TestPoolPassword(t *testing.T) {
	t.Parallel()
	nulInText := bytes.Join([][]byte{Scramble([]byte("secr")), {0xDE, 0xAD}}, nil) // NULs once unscrambled
	for _, tt := range []struct {
		file []byte
		want string
	}{
		{Scramble([]byte("secret")), "secret"},
		{append(Scramble([]byte("secret")), 0, 1, 2), "secret"},
		{nulInText, "secr"},
		{nil, ""},
		{[]byte{0}, ""},
	} {
		got, err := PoolPassword(tt.file)
		if string(got.Reveal()) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%x: %q, %v, want %q", tt.file, got.Reveal(), err, tt.want)
		}
	}
}

func TestHomeTokens(t *testing.T) {
	t.Parallel()
	c, s := pair(t)
	store(c, s, "key2", Order{Issuer: "pool.test", Subject: "machine@pool.test"})
	find := func() string {
		token, err := c.tokens().Find("pool.test", []string{"key2"}, noon())
		if err != nil {
			t.Fatal(err)
		}
		return token.Claims.Subject
	}
	key, err := s.keys(s.Files).Key("key2")
	if err != nil {
		t.Fatal(err)
	}
	c.Home = t.TempDir()
	dir := filepath.Join(c.Home, ".condor", "tokens.d")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "mine", []byte(made(t, key, "HS256", `{"alg":"HS256","kid":"key2"}`, `{"iss":"pool.test","jti":"1","sub":"me"}`)))
	if got := find(); got != "machine@pool.test" {
		t.Errorf("with SEC_TOKEN_DIRECTORY: %q", got)
	}
	c.HomeTokens = true
	if got := find(); got != "me" {
		t.Errorf("a user's own: %q", got)
	}
	c.Home = ""
	if got := find(); got != "machine@pool.test" {
		t.Errorf("for the machine: %q", got)
	}
}
