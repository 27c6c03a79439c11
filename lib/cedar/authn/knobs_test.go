// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

func snapshot(t *testing.T, text string) *config.Snapshot {
	t.Helper()
	s, err := config.Parse("test.conf", "ETC = /etc/condor\nUID_DOMAIN = users.test\n"+text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSettingsFrom(t *testing.T) {
	t.Parallel()
	plain := Settings{
		UIDDomain: "users.test", TrustDomain: "users.test", Subsystem: "STARTD",
		FSDir: "/tmp", FSBinding: true, FSRootToCondor: true,
		PoolKeyFile: "/etc/condor/passwords.d/POOL", KeyDir: "/etc/condor/passwords.d", PasswordFile: "/etc/condor/passwords.d/POOL",
		TokenDirs: []string{"/etc/condor/tokens.d"}, HomeTokens: true, ClaimToBeDomain: true,
		ServerTLS: TLSFiles{
			SystemCAs: true,
			CertFiles: []string{"/etc/pki/tls/certs/localhost.crt"},
			KeyFiles:  []string{"/etc/pki/tls/private/localhost.key"},
		},
		ClientTLS:        TLSFiles{SystemCAs: true},
		SystemKnownHosts: "/etc/condor/known_hosts",
	}
	tests := []struct {
		name, text string
		change     func(s *Settings)
	}{
		{"defaults", "", func(*Settings) {}},
		{"domains", "TRUST_DOMAIN = pool.test", func(s *Settings) { s.TrustDomain = "pool.test" }},
		{"FS", "FS_LOCAL_DIR = /scratch\nSEC_FS_ENFORCE_CHANNEL_BINDING = false\nFS_ALLOW_UNSAFE = true\nFS_ROOT_TO_CONDOR = false", func(s *Settings) {
			s.FSDir, s.FSBinding, s.FSUnsafe, s.FSRootToCondor = "/scratch", false, true, false
		}},
		{"keys", "SEC_PASSWORD_DIRECTORY = /keys\nSEC_TOKEN_POOL_SIGNING_KEY_FILE = /other/POOL\nSEC_TOKEN_POOL_SIGNING_KEY_IS_PASSWORD = true", func(s *Settings) {
			s.KeyDir, s.PasswordFile, s.PoolKeyFile, s.PoolIsPassword = "/keys", "/keys/POOL", "/other/POOL", true
		}},
		{"tokens", "SEC_TOKEN_DIRECTORY = /tokens\nSEC_TOKEN_MAX_AGE = 3600", func(s *Settings) {
			s.TokenDirs, s.HomeTokens, s.Rules.MaxAge = []string{"/tokens"}, false, time.Hour
		}},
		{"a prefix", "STARTD.SEC_TOKEN_DIRECTORY = /mine\nSEC_TOKEN_DIRECTORY = /tokens", func(s *Settings) { s.TokenDirs, s.HomeTokens = []string{"/mine"}, false }},
		{"no age", "SEC_TOKEN_MAX_AGE = -1", func(*Settings) {}},
		{"CLAIMTOBE", "SEC_CLAIMTOBE_USER = carol\nSEC_CLAIMTOBE_INCLUDE_DOMAIN = false", func(s *Settings) { s.ClaimToBeUser, s.ClaimToBeDomain = "carol", false }},
		{"known hosts", "SEC_KNOWN_HOSTS = /mine\nSEC_SYSTEM_KNOWN_HOSTS = /all\nBOOTSTRAP_SSL_SERVER_TRUST = true", func(s *Settings) {
			s.KnownHosts, s.SystemKnownHosts, s.TrustFirst = "/mine", "/all", true
		}},
		{"SSL", `AUTH_SSL_SERVER_CAFILE = /a,/b
AUTH_SSL_SERVER_CADIR = /cas
AUTH_SSL_SERVER_CERTFILE = /cert
AUTH_SSL_SERVER_KEYFILE = /key
AUTH_SSL_SERVER_USE_DEFAULT_CAS = false
AUTH_SSL_CLIENT_CAFILE = /c
AUTH_SSL_CLIENT_CERTFILE = /ccert
AUTH_SSL_CLIENT_KEYFILE = /ckey
AUTH_SSL_CLIENT_USE_DEFAULT_CAS = false
AUTH_SSL_REQUIRE_CLIENT_CERTIFICATE = true
AUTH_SSL_REQUIRE_CLIENT_MAPPING = true
SSL_SKIP_HOST_CHECK = true`, func(s *Settings) {
			s.ServerTLS = TLSFiles{CAFiles: []string{"/a", "/b"}, CADir: "/cas", CertFiles: []string{"/cert"}, KeyFiles: []string{"/key"}}
			s.ClientTLS = TLSFiles{CAFiles: []string{"/c"}, CertFiles: []string{"/ccert"}, KeyFiles: []string{"/ckey"}}
			s.RequireClientCert, s.RequireClientMapping, s.SkipHostCheck = true, true, true
		}},
	}
	for _, tt := range tests {
		got, err := SettingsFrom(snapshot(t, tt.text), "STARTD")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		want := plain
		tt.change(&want)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Settings{}, "Exclude"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	s, err := SettingsFrom(snapshot(t, `SEC_TOKEN_REVOCATION_EXPR = sub == "bob@pool.test"`), "STARTD")
	if err != nil || s.Rules.Revoked == nil {
		t.Errorf("revocation: %v, %v", s.Rules.Revoked, err)
	}
	if s.Exclude == nil || !s.Exclude.MatchString(".hidden") || !s.Exclude.MatchString("token~") || s.Exclude.MatchString("token") {
		t.Errorf("excluded files: %v", s.Exclude)
	}
}

func TestSettingsWrong(t *testing.T) {
	t.Parallel()
	for knob, text := range map[string]string{
		"FS_ALLOW_UNSAFE":                 "FS_ALLOW_UNSAFE = perhaps",
		"SEC_TOKEN_MAX_AGE":               "SEC_TOKEN_MAX_AGE = old",
		"LOCAL_CONFIG_DIR_EXCLUDE_REGEXP": "LOCAL_CONFIG_DIR_EXCLUDE_REGEXP = (",
		"SEC_TOKEN_REVOCATION_EXPR":       "SEC_TOKEN_REVOCATION_EXPR = jti ==",
	} {
		if _, err := SettingsFrom(snapshot(t, text), "STARTD"); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), knob) {
			t.Errorf("%s: %v", knob, err)
		}
	}
}

// Settings that one process has read mean the same to the process that they are
// sent to.
func TestSettingsAreSent(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("text", "UID_DOMAIN = x.org\nLOCAL_CONFIG_DIR_EXCLUDE_REGEXP = ^\\.\nSTARTER.SEC_TOKEN_MAX_AGE = 60 * 60\n"+
		"SEC_TOKEN_REVOCATION_EXPR = regexp(\"^a$\", sub) || sub.'a b' == 1\nAUTH_SSL_SERVER_CERTFILE = /a, /b\nSEC_TOKEN_DIRECTORY = /t\n", config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := SettingsFrom(c, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Settings
	if err := json.Unmarshal(sent, &got); err != nil {
		t.Fatal(err)
	}
	if got.Exclude.String() != want.Exclude.String() || got.Rules.Revoked.String() != want.Rules.Revoked.String() || got.Rules.MaxAge != time.Hour {
		t.Errorf("there: %+v, here: %+v", got, want)
	}
	if !got.Exclude.MatchString(".hidden") || got.Exclude.MatchString("token") {
		t.Errorf("there %v leaves other files out", got.Exclude)
	}
	got.Exclude, want.Exclude, got.Rules, want.Rules = nil, nil, Rules{}, Rules{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("there: %+v, here: %+v", got, want)
	}
}

// A pattern that came over a wire and is none lets no file count.
func TestPatternThatIsNone(t *testing.T) {
	t.Parallel()
	var p Pattern
	if err := json.Unmarshal([]byte(`"("`), &p); err != nil || !p.MatchString("token") {
		t.Errorf("%v: %q leaves nothing out", err, p.String())
	}
	if _, err := NewPattern("("); err == nil {
		t.Error("the configuration of a broken pattern is taken")
	}
}
