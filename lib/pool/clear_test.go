// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
)

// secretsIn says which secrets a collector was told in its last messages.
func secretsIn(t *testing.T, cm *pooltest.Collector) (claims, capability bool) {
	t.Helper()
	for _, m := range cm.Messages() {
		for name := range m.Public.All() {
			capability = capability || strings.EqualFold(name, "_condor_PrivRemoteAdminCapability")
			if classad.IsPrivate(name) && !capability {
				t.Errorf("a public ad has %s", name)
			}
		}
		if m.Command != 0 || m.Private == nil {
			continue
		}
		for _, name := range []string{"Name", "MyAddress", "StartdIpAddr"} {
			if text(t, m.Private, name) == "" {
				t.Errorf("a private ad has no %s", name)
			}
		}
		for _, name := range []string{"ClaimId", "Capability", "ClaimIdList", "ChildClaimIds"} {
			_, ok := m.Private.Lookup(name)
			claims = claims || ok
		}
	}
	return claims, capability
}

// Where nothing is encrypted no claim id goes out unless the owner switched
// encryption off himself, and never the capability for administration. It is
// said once, however often the connection breaks.
func TestSecretsInClear(t *testing.T) {
	const never = "SEC_CLIENT_ENCRYPTION = NEVER\n"
	for _, tt := range []struct {
		name, text         string
		clear              bool
		claims, capability bool
		log                string
	}{
		{"as by default", "", false, true, true, ""},
		{"encryption never, and yet encrypted", never, false, true, true, ""},
		{"the collector does not encrypt", "", true, false, false, "is told no claim ids"},
		{"it does not, though preferred", "SEC_DEFAULT_ENCRYPTION = PREFERRED\n", true, false, false, "is told no claim ids"},
		{"no cipher of ours", "SEC_DEFAULT_CRYPTO_METHODS = BLOWFISH\n", true, false, false, "is told no claim ids"},
		{"encryption never at another level", "SEC_READ_ENCRYPTION = NEVER\n", true, false, false, "is told no claim ids"},
		{"the owner does not", never, true, true, false, "is told claim ids in clear"},
		{"the owner does not by default", "SEC_DEFAULT_ENCRYPTION = NEVER\n", true, true, false, "is told claim ids in clear"},
		{"the owner does not negotiate", "SEC_DEFAULT_NEGOTIATION = NEVER\n", true, true, false, "is told claim ids in clear"},
		{"in the days without daemon ads", "ENABLE_STARTD_DAEMON_AD = False\n", true, false, false, "is told no claim ids"},
	} {
		for _, udp := range []bool{false, true} {
			name := tt.name
			if udp {
				name += ", UDP"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cm := pooltest.NewCollector("25.14.0")
					cm.Clear(tt.clear)
					text := onePart + tt.text
					if udp {
						text += byUDP
					}
					r := newRig(t, text, cm, func(c *pool.Config) {
						c.AdminCommands = func() []int { return []int{60004} }
						c.Post = cm.Post
					})
					time.Sleep(time.Minute)
					synctest.Wait()
					if len(cm.Names()) < 1 {
						t.Fatalf("the collector has %q\n%s", cm.Names(), r.log)
					}
					if claims, capability := secretsIn(t, cm); claims != tt.claims || capability != tt.capability {
						t.Errorf("claim ids %v, want %v; capability %v, want %v", claims, tt.claims, capability, tt.capability)
					}
					cm.Restart()
					time.Sleep(10 * time.Minute)
					synctest.Wait()
					if n := strings.Count(r.log.String(), "the collector is told"); tt.log == "" && n > 0 || tt.log != "" && (n != 1 || !strings.Contains(r.log.String(), tt.log)) {
						t.Errorf("%d lines, want %q:\n%s", n, tt.log, r.log)
					}
				})
			})
		}
	}
}

// As soon as there is encryption the collector is told all of it again.
func TestSecretsAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		cm.Clear(true)
		r := newRig(t, onePart, cm, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if claims, _ := secretsIn(t, cm); claims {
			t.Error("claim ids in clear")
		}
		cm.Clear(false)
		cm.Restart()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if claims, _ := secretsIn(t, cm); !claims || !strings.Contains(r.log.String(), "is told claim ids again") {
			t.Errorf("claim ids %v\n%s", claims, r.log)
		}
	})
}

// An access point that does not encrypt is offered nothing, but where the owner
// switched encryption off.
func TestOffersInClear(t *testing.T) {
	for knobs, offered := range map[string]bool{"": false, "SEC_DEFAULT_ENCRYPTION = NEVER\n": true} {
		synctest.Test(t, func(t *testing.T) {
			ap := &submitter{t: t, name: "ap@example", address: "<127.0.0.1:9700>", result: 1, clear: true}
			s := newStation(t, stationOptions{
				text:   twoStatic + knobs + "STARTD_DIRECT_ATTACH_SCHEDD_NAME = <127.0.0.1:9700>\nSTARTD_DIRECT_ATTACH_INTERVAL = 60\n",
				change: func(c *pool.Config) { c.Open = ap },
			})
			s.idle()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			ap.mu.Lock()
			n := len(ap.offers)
			ap.mu.Unlock()
			if got := strings.Count(s.log.String(), "claim ids are not told in clear"); offered != (n > 0) || offered != (got == 0) || got > 1 {
				t.Errorf("with %q: %d offers, %d lines in the log:\n%s", knobs, n, got, s.log.String())
			}
		})
	}
}
