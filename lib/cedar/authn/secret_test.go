// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretIsHidden(t *testing.T) {
	t.Parallel()
	s := Secret("hunter2")
	type holder struct {
		S Secret
		T SignedToken
		K SigningKey
		R Result
	}
	h := holder{S: s, T: SignedToken{signature: seal(s)}, K: SigningKey{key: seal(s)}, R: Result{wrapKey: seal(s)}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		for _, v := range []any{s, &s, h, &h, []Secret{s}, map[string]Secret{"a": s}} {
			leaks(t, verb, fmt.Sprintf(verb, v), s)
		}
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "s", s, "h", h)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "s", s, "h", h)
	leaks(t, "slog", log.String(), s)
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	leaks(t, "json", string(b), s)
}

// leaks fails if text has a secret in it, in any of the forms that printing
// gives to bytes.
func leaks(t *testing.T, what, text string, s Secret) {
	t.Helper()
	for form, secret := range map[string]string{
		"text": string(s), "hex": hex.EncodeToString(s), "base64": base64.StdEncoding.EncodeToString(s),
		"base64url": base64.RawURLEncoding.EncodeToString(s), "numbers": strings.Trim(fmt.Sprint([]byte(s)), "[]"),
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
			t.Errorf("%s: the secret is there as %s: %s", what, form, text)
		}
	}
}

// Whatever goes wrong, nothing that is told of it has a secret in it.
func TestNoSecretInErrors(t *testing.T) {
	t.Parallel()
	var told strings.Builder
	var secrets []Secret
	tell := func(errs ...error) {
		for _, err := range errs {
			fmt.Fprintf(&told, "%v\n%+v\n%#v\n", err, err, err)
		}
	}
	for _, spoil := range []func(c *Client, s *Server, cp *Peer){
		func(_ *Client, s *Server, _ *Peer) {
			s.PoolKeyFile, s.PasswordFile = s.KeyDir+"/key2", s.KeyDir+"/key2"
		},
		func(c *Client, _ *Server, _ *Peer) {
			c.PoolKeyFile, c.PasswordFile = c.KeyDir+"/key2", c.KeyDir+"/key2"
		},
		func(_ *Client, s *Server, _ *Peer) { s.PoolKeyFile, s.KeyDir, s.PasswordFile = "", "", "" },
		func(c *Client, s *Server, cp *Peer) {
			store(c, s, "key2", Order{Issuer: "else.test", Subject: "bob@pool.test"})
			cp.TrustDomain = "third.test"
		},
		func(c *Client, s *Server, _ *Peer) {
			store(c, s, PoolKey, Order{Issuer: "pool.test", Subject: "bob@pool.test"})
			s.Rules.MaxAge = 1
		},
	} {
		for _, m := range []Method{Token, Password} {
			c, s := pair(t)
			cp, sp := ends()
			keys := s.keys(s.Files)
			for _, id := range []string{PoolKey, "key2"} {
				k, err := keys.Key(id)
				if err != nil {
					t.Fatal(err)
				}
				file, err := os.ReadFile(filepath.Join(s.KeyDir, id))
				if err != nil {
					t.Fatal(err)
				}
				secrets = append(secrets, k.key.open(), Secret(file), Scramble(file))
			}
			spoil(c, s, &cp)
			if e, ok := c.Files.(extra); ok {
				secrets = append(secrets, Secret(bytes.TrimSpace(e.contents)))
				parts := strings.Split(strings.TrimSpace(string(e.contents)), ".")
				secrets = append(secrets, Secret(parts[2]))
			}
			client, server := meetAs(t, c, s, cp, sp, []Method{m}, []Method{m})
			if client.err == nil && server.err == nil && m == Token {
				continue // it did not matter for this method
			}
			tell(client.err, server.err)
		}
	}
	bad := "eyJhbGciOiJIUzI1NiJ9.!!!.c2VjcmV0LXNpZ25hdHVyZQ"
	_, err := ParseToken(bad)
	secrets = append(secrets, Secret("c2VjcmV0LXNpZ25hdHVyZQ"))
	tell(err)
	if strings.Count(told.String(), "denied") < 5 {
		t.Errorf("little went wrong:\n%s", told.String())
	}
	for _, s := range secrets {
		leaks(t, "an error", told.String(), s)
	}
}
