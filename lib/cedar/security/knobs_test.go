// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
)

// What one process has read of a configuration means the same to the process that it
// is sent to.
func TestKnobsAreSent(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("text", `ALLOW_READ = *
ALLOW_DAEMON = condor@x.org/h.x.org, 10.0.0.0/8
STARTER.ALLOW_DAEMON = alice@x.org/h.x.org
ALLOW_WRITE_STARTER = bob@x.org
DENY_READ = 10.66.*
SEC_DEFAULT_AUTHENTICATION_METHODS = SSL, TOKEN
SEC_READ_AUTHENTICATION = REQUIRED
SEC_DAEMON_CRYPTO_METHODS = AES, BLOWFISH
SEC_DAEMON_SESSION_DURATION = 77
STARTER.SEC_TCP_SESSION_TIMEOUT = 2 * 6
SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION = (1 > 2)
CERTIFICATE_MAPFILE = /map
UID_DOMAIN = x.org
TRUST_DOMAIN = y.org
`, config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	from := Sources{
		Subsystem: "STARTER", ReadFile: func(string) ([]byte, error) { return []byte("SSL /CN=alice/ alice@x.org\n"), nil },
		Hosts: Hosts{Lookup: func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.1.2.3")} }},
	}
	want, err := SettingsFrom(c, from)
	if err != nil {
		t.Fatal(err)
	}
	k, err := KnobsFrom(c, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	var there Knobs
	if err := json.Unmarshal(sent, &there); err != nil {
		t.Fatal(err)
	}
	got, err := there.Settings(from)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: there the settings are\n%+v, here\n%+v", err, got, want)
	}
	if got.StepTimeout.Seconds() != 12 || got.MatchSessions || got.Authorizer.lists[Daemon].allow[0].user != "alice@x.org" || got.Authorizer.lists[Write].allow[0].user != "bob@x.org" {
		t.Errorf("the settings are %+v", got)
	}
}

// A list that cannot be read is found where the configuration is read, with its place.
func TestKnobsWithABadList(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("text", "STARTER.ALLOW_READ = +netgroup\n", config.Options{Subsystem: "STARTER"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := KnobsFrom(c, "STARTER"); err == nil || !strings.Contains(err.Error(), "text:1") {
		t.Errorf("the error is %v", err)
	}
}
