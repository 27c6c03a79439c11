// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/config"
)

// configured reads a configuration from a text.
func configured(t testing.TB, text string) *config.Snapshot {
	t.Helper()
	c, err := config.Parse("condor_config", text, config.Options{
		Subsystem: "STARTD", Facts: map[string]string{"FULL_HOSTNAME": "ep.example.org"},
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLevels(t *testing.T) {
	t.Parallel()
	implied := map[Level]string{
		Allow: "ALLOW", Read: "READ", Write: "WRITE READ", Negotiator: "NEGOTIATOR READ", Administrator: "ADMINISTRATOR WRITE READ",
		Config: "CONFIG READ", Daemon: "DAEMON WRITE READ", Default: "DEFAULT", ClientLevel: "CLIENT",
		AdvertiseStartd: "ADVERTISE_STARTD READ", AdvertiseSchedd: "ADVERTISE_SCHEDD READ", AdvertiseMaster: "ADVERTISE_MASTER READ",
	}
	for l := range levels {
		var names []string
		for _, i := range l.Implied() {
			names = append(names, i.String())
			if !l.Implies(i) {
				t.Errorf("%s does not imply %s", l, i)
			}
		}
		if got := strings.Join(names, " "); got != implied[l] {
			t.Errorf("%s implies %q, want %q", l, got, implied[l])
		}
		if back, ok := command.ParseLevel(strings.ToLower(l.String())); !ok || back != l {
			t.Errorf("ParseLevel(%q) = %v, %v", strings.ToLower(l.String()), back, ok)
		}
	}
	if Read.Implies(Write) || Daemon.Implies(Administrator) || Administrator.Implies(Daemon) {
		t.Error("a level implies one above or beside it")
	}
	if l, ok := command.ParseLevel("OWNER"); ok {
		t.Errorf("OWNER is read as %v", l)
	}
}

// The table of the documents: client across, server down.
func TestDecide(t *testing.T) {
	t.Parallel()
	const order = "RPON"
	table := [4]string{"yyyF", "yyyn", "yynn", "Fnnn"}
	for i, c := range order {
		for j, s := range order {
			client, _ := ParseRequirement(string(c))
			server, _ := ParseRequirement(string(s))
			on, ok := decide(client, server)
			got := "n"
			switch {
			case !ok:
				got = "F"
			case on:
				got = "y"
			}
			if want := string(table[i][j]); got != want {
				t.Errorf("client %s, server %s: %s, want %s", client, server, got, want)
			}
		}
	}
}

func TestPolicyFrom(t *testing.T) {
	t.Parallel()
	usual := Policy{
		Level: Daemon, Negotiation: Preferred, Authentication: Optional, Encryption: Optional, Integrity: Optional,
		Methods: []authn.Method{authn.FS, authn.Token}, AES: true, Ciphers: []cedar.Cipher{cedar.Blowfish, cedar.TripleDES},
		Duration: 24 * time.Hour, Lease: time.Hour, Patience: 20 * time.Second,
	}
	change := func(f func(p *Policy)) Policy { p := usual; f(&p); return p }
	for _, test := range []struct {
		name, text string
		level      Level
		tool       bool
		want       Policy
	}{
		{"nothing set", "", Daemon, false, usual},
		{"nothing set, a tool", "", Daemon, true, change(func(p *Policy) { p.Duration = time.Minute })},
		{"default for all", "SEC_DEFAULT_AUTHENTICATION = REQUIRED\n", Daemon, false, change(func(p *Policy) { p.Authentication = Required })},
		{"level before default", "SEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_DAEMON_ENCRYPTION = never\n", Daemon, false, change(func(p *Policy) { p.Encryption = Never })},
		{"another level", "SEC_READ_ENCRYPTION = REQUIRED\n", Daemon, false, usual},
		{"advertising falls back to DAEMON", "SEC_DAEMON_INTEGRITY = REQUIRED\nSEC_DEFAULT_INTEGRITY = NEVER\n", AdvertiseStartd, false,
			change(func(p *Policy) { p.Level, p.Integrity = AdvertiseStartd, Required })},
		{"words by their first letter", "SEC_DEFAULT_INTEGRITY = True\nSEC_DEFAULT_NEGOTIATION = opt\n", Daemon, false,
			change(func(p *Policy) { p.Integrity, p.Negotiation = Required, Optional })},
		{"methods", "SEC_DAEMON_AUTHENTICATION_METHODS = IDTOKENS, password KERBEROS,tokens\n", Daemon, false,
			change(func(p *Policy) { p.Methods = []authn.Method{authn.Token, authn.Password} })},
		{"no AES", "SEC_DEFAULT_CRYPTO_METHODS = BLOWFISH,TRIPLEDES\n", Daemon, false,
			change(func(p *Policy) { p.AES, p.Encryption, p.Integrity = false, Never, Never })},
		{"ciphers of datagrams", "SEC_DEFAULT_CRYPTO_METHODS = TRIPLEDES AES,3des\n", Daemon, false,
			change(func(p *Policy) { p.Ciphers = []cedar.Cipher{cedar.TripleDES} })},
		{"times", "SEC_DEFAULT_SESSION_DURATION = 30\nSEC_DEFAULT_SESSION_LEASE = 0\n", Daemon, true,
			change(func(p *Policy) { p.Duration, p.Lease = 30*time.Second, 0 })},
		{"times as expressions", "HOURS = 60 * 60\nSEC_DAEMON_SESSION_DURATION = 2 * $(HOURS)\nSEC_DEFAULT_SESSION_LEASE = $(HOURS) / 2.0 + 0.9\nSEC_DEFAULT_AUTHENTICATION_TIMEOUT = max({5, 9})\n", Daemon, false,
			change(func(p *Policy) { p.Duration, p.Lease, p.Patience = 2*time.Hour, 30*time.Minute, 9*time.Second })},
		{"times of the subsystem", "STARTD.SEC_DEFAULT_SESSION_DURATION = 3 * 60\nSEC_DEFAULT_SESSION_DURATION = 60\n", Daemon, false,
			change(func(p *Policy) { p.Duration = 3 * time.Minute })},
		{"patience", "SEC_DEFAULT_AUTHENTICATION_TIMEOUT = 5\nSEC_DAEMON_AUTHENTICATION_TIMEOUT = 7\n", Daemon, false, change(func(p *Policy) { p.Patience = 7 * time.Second })},
		{"no method to be had", "SEC_DEFAULT_AUTHENTICATION_METHODS = MUNGE\n", Daemon, false,
			change(func(p *Policy) { p.Methods, p.Authentication = nil, Never })},
		{"open to everyone", "SEC_DEFAULT_AUTHENTICATION = REQUIRED\n", Allow, false, change(func(p *Policy) { p.Level = Allow })},
		{"legacy", "LEGACY_ALLOW_SEMANTICS = true\nSEC_WRITE_ENCRYPTION = REQUIRED\n", AdvertiseMaster, false,
			change(func(p *Policy) { p.Level, p.Encryption = AdvertiseMaster, Required })},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := PolicyFrom(configured(t, test.text), test.level, test.tool)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPolicyErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SEC_DEFAULT_AUTHENTICATION = always":                                             `condor_config:1: SEC_DEFAULT_AUTHENTICATION = "always": want REQUIRED`,
		"X = 1\nSEC_DAEMON_ENCRYPTION = maybe":                                            `condor_config:2: SEC_DAEMON_ENCRYPTION = "maybe"`,
		"SEC_DEFAULT_AUTHENTICATION_METHODS = FS, MAGIC":                                  `"MAGIC" is no authentication method`,
		"SEC_DEFAULT_CRYPTO_METHODS = ROT13":                                              `"ROT13" is no crypto method`,
		"SEC_DEFAULT_SESSION_DURATION = -1":                                               "want a number of seconds",
		"SEC_DEFAULT_SESSION_DURATION = 60 * 60 * 24 * 366 * 10":                          "want a number of seconds",
		"SEC_DEFAULT_SESSION_LEASE = soon":                                                "want a number of seconds",
		"SEC_DEFAULT_NEGOTIATION = NEVER\nSEC_DEFAULT_ENCRYPTION = REQUIRED":              "NEGOTIATION is NEVER",
		"SEC_DEFAULT_CRYPTO_METHODS = 3DES\nSEC_DEFAULT_ENCRYPTION = REQUIRED":            "does not name AES",
		"SEC_DEFAULT_AUTHENTICATION_METHODS = GSI\nSEC_DEFAULT_AUTHENTICATION = REQUIRED": "names no method that can be used here",
	} {
		_, err := PolicyFrom(configured(t, text+"\n"), Daemon, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\nerr = %v\nwant %s", text, err, want)
		}
	}
}

// A client from before 23.10 is told that encryption goes with authentication.
func TestOldSpelling(t *testing.T) {
	t.Parallel()
	p := Policy{Authentication: Optional, Encryption: Required, Integrity: Optional}
	if p.old() != Required {
		t.Errorf("old = %s, want REQUIRED", p.old())
	}
	if p.Authentication = Never; p.old() != Never {
		t.Errorf("old = %s, want NEVER", p.old())
	}
}
