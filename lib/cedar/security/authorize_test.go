// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

func TestWildcard(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "anything", true},
		{"alice@x.org", "Alice@X.ORG", true},
		{"alice@x.org", "alice@x.org.evil", false},
		{"*@x.org", "bob@x.org", true},
		{"*@x.org", "bob@x.org.evil", false},
		{"condor@*", "condor@password", true},
		{"condor@*", "condor2@password", false},
		{"*.x.org", "host.x.org", true},
		{"*.x.org", "x.org", false},
		{"a*z", "abcz", true},
		{"a*a", "a", false},
		{"a*c*", "abcd", true},
		{"a*c*", "abd", false},
		{"*b*", "abc", true},
		{"a*b*c", "aXb*c", true},
		{"a*b*c", "aXbYc", false}, // only the first star, and one at the end, stand for anything
		{"", "", true},
		{"", "x", false},
	} {
		if got := wildcard(test.pattern, test.text); got != test.want {
			t.Errorf("wildcard(%q, %q) = %t", test.pattern, test.text, got)
		}
	}
}

func TestParseNetwork(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"*", "all"}, {"*/*", "all"}, {"{:local_ips:}", "local"},
		{"10.1.2.3", "10.1.2.3/32"}, {"10.1.2.*", "10.1.2.0/24"}, {"10.*", "10.0.0.0/8"}, {"10.1.", "10.1.0.0/16"},
		{"10.1.2.3/8", "10.0.0.0/8"}, {"10.1.2.3/255.255.0.0", "10.1.0.0/16"}, {"0.0.0.0/0", "0.0.0.0/0"}, {"1.2.3.4/255.255.255.255", "1.2.3.4/32"},
		{"10.1.2.3/255.129.0.0", ""}, {"10.1.2.3/33", ""}, {"10.1.2.3/", ""}, {"10.1.2.3/x", ""},
		{"2001:db8::1", "2001:db8::1/128"}, {"[2001:db8::1]", "2001:db8::1/128"}, {"2001:db8::/32", "2001:db8::/32"}, {"2001:db8:*", "2001:db8::/32"},
		{"::ffff:10.0.0.1", "10.0.0.1/32"}, {"::ffff:10.0.0.0/104", "10.0.0.0/8"}, {"::ffff:0:0/96", "0.0.0.0/0"}, {"::ffff:0:0/95", ""}, {"2001::db8:*", ""}, {"2001:d*", ""}, {"fe80::1%eth0", ""}, {"2001:db8::/255.0.0.0", ""},
		{"host.example.org", ""}, {"256.1.1.1", ""}, {"1.2.3.4.5", ""}, {"", ""}, {"1..2", ""}, {"a.b.*", ""},
	} {
		n, ok := parseNetwork(test.text)
		got := ""
		switch {
		case !ok:
		case n.all:
			got = "all"
		case n.local:
			got = "local"
		default:
			got = n.prefix.String()
		}
		if got != test.want {
			t.Errorf("parseNetwork(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestAuthorizer(t *testing.T) {
	t.Parallel()
	const base = `
ALLOW_READ = *
ALLOW_WRITE = *.example.org, alice@example.org
ALLOW_DAEMON = condor@*, schedd@example.org/10.0.0.0/8, 192.168.7.*, daemon.example.org
DENY_DAEMON = */10.66.*, mallory@*
ALLOW_ADMINISTRATOR = root@example.org/127.0.0.1 {:local_ips:}
ALLOW_ADVERTISE_STARTD_STARTD = ep@example.org
DENY_WRITE = badhost.example.org
ALLOW_CONFIG = admin/192.0.2.1
STARTD.ALLOW_NEGOTIATOR = negotiator@example.org/fe80::/10
SCHEDD.ALLOW_NEGOTIATOR = *
STARTD.ALLOW_CLIENT = 10.*
ALLOW_DEFAULT = nobody@nowhere
`
	names := map[string][]string{
		"10.9.9.9": {"w.example.org"}, "10.9.9.8": {"badhost.example.org", "badhost"}, "10.0.0.77": {"alias.example.net"},
	}
	hosts := Hosts{
		Lookup: func(name string) []netip.Addr {
			if name == "daemon.example.org" {
				return []netip.Addr{netip.MustParseAddr("10.0.0.77"), netip.MustParseAddr("2001:db8::77")}
			}
			return nil
		},
		Local: func(a netip.Addr) bool { return a == netip.MustParseAddr("10.200.0.1") },
	}
	a, err := authorizerFrom(configured(t, base), "startd", hosts)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		level      Level
		user, addr string
		want       bool
		why        string
	}{
		{Allow, Unauthenticated, "1.2.3.4", true, "open to everyone"},
		{Read, Unauthenticated, "1.2.3.4", true, "ALLOW_READ has *"},
		{Write, Unauthenticated, "1.2.3.4", false, "ALLOW_WRITE has no entry that fits unauthenticated@unmapped from 1.2.3.4"},
		{Write, Unauthenticated, "10.9.9.9", true, "ALLOW_WRITE has *.example.org"},
		{Write, "alice@example.org", "1.2.3.4", true, "alice@example.org"},
		{Write, "alice@example.org", "10.9.9.8", false, "DENY_WRITE has badhost.example.org, which fits alice@example.org from 10.9.9.8"},
		{Write, "condor@password", "1.2.3.4", true, "DAEMON implies WRITE; ALLOW_DAEMON has condor@*"},
		{Daemon, "alice@example.org", "10.9.9.9", false, "ALLOW_DAEMON has no entry"},
		{Daemon, "condor_pool@example.org", "1.2.3.4", true, "condor@*"}, // the two names of pool-key holders
		{Daemon, "schedd@example.org", "10.3.4.5", true, "schedd@example.org/10.0.0.0/8"},
		{Daemon, "schedd@example.org", "11.3.4.5", false, "no entry"},
		{Daemon, "schedd@example.org", "10.66.4.5", false, "DENY_DAEMON has */10.66.*"},
		{Daemon, "mallory@x", "192.168.7.9", false, "DENY_DAEMON has mallory@*"},
		{Daemon, "anybody@x", "192.168.7.9", true, "192.168.7.*"},
		{Daemon, "anybody@x", "::ffff:192.168.7.9", true, "192.168.7.*"},
		{Daemon, "anybody@x", "10.0.0.77", true, "daemon.example.org"},
		{Daemon, "anybody@x", "2001:db8::77", true, "daemon.example.org"},
		{Administrator, "root@example.org", "127.0.0.1", true, "root@example.org/127.0.0.1"},
		{Administrator, "root@example.org", "127.0.0.2", true, "{:local_ips:}"},
		{Administrator, "bob@example.org", "10.200.0.1", true, "{:local_ips:}"},
		{Administrator, "root@example.org", "10.0.0.1", false, "no entry"},
		{AdvertiseStartd, "ep@example.org", "1.2.3.4", true, "ALLOW_ADVERTISE_STARTD_STARTD has ep@example.org"},
		{AdvertiseStartd, "condor@password", "1.2.3.4", false, "ALLOW_ADVERTISE_STARTD_STARTD has no entry"},
		{AdvertiseSchedd, "condor@password", "1.2.3.4", true, "ALLOW_DAEMON has condor@*"}, // falls back
		{AdvertiseSchedd, "condor@password", "10.66.1.1", false, "DENY_DAEMON"},
		{Negotiator, "condor@password", "1.2.3.4", false, "ALLOW_NEGOTIATOR has no entry"},
		{Negotiator, "negotiator@example.org", "fe80::1%eth0", true, "ALLOW_NEGOTIATOR has negotiator@example.org/fe80::/10"},
		{AdvertiseMaster, "nobody@nowhere", "1.2.3.4", false, "ALLOW_DAEMON has no entry"},
		{Config, "admin", "192.0.2.1", true, "admin/192.0.2.1"},
		{ClientLevel, Unauthenticated, "1.2.3.4", false, "ALLOW_CLIENT has no entry"},
		{ClientLevel, Unauthenticated, "10.2.3.4", true, "ALLOW_CLIENT has 10.*"},
		{Daemon, SubmitSide, "1.2.3.4", false, "reserved"}, // the name alone opens nothing
		{levels, "x@y", "1.2.3.4", false, "unknown"},
	} {
		asked := 0
		v := a.Allowed(test.level, Asker{
			Peer: Peer{User: test.user, Method: "FS"}, Addr: netip.MustParseAddr(test.addr),
			Names: func(addr netip.Addr) []string { asked++; return names[addr.String()] },
		})
		if v.OK != test.want || !strings.Contains(v.Why, test.why) {
			t.Errorf("%s for %s from %s: %+v, want %t because of %q", test.level, test.user, test.addr, v, test.want, test.why)
		}
		if asked > 1 {
			t.Errorf("%s for %s: names were looked up %d times", test.level, test.user, asked)
		}
	}
}

// What comes with sessions that were handed over needs no list, and what a
// session is limited to no list can widen.
func TestHolesAndLimits(t *testing.T) {
	t.Parallel()
	a, err := authorizerFrom(configured(t, "ALLOW_DAEMON = *\nALLOW_ADMINISTRATOR = *\nALLOW_READ = *\nDENY_NEGOTIATOR = *\n"), "STARTD", Hosts{})
	if err != nil {
		t.Fatal(err)
	}
	closed, err := authorizerFrom(configured(t, "ALLOW_DEFAULT =\n"), "STARTD", Hosts{})
	if err != nil {
		t.Fatal(err)
	}
	anybody := Asker{Peer: unauthenticatedPeer(), Addr: netip.MustParseAddr("192.0.2.9")}
	if v := closed.Allowed(Read, anybody); v.OK || !strings.Contains(v.Why, "nothing is set that allows READ") {
		t.Errorf("without lists: %+v", v)
	}
	if v := closed.Allowed(ClientLevel, anybody); !v.OK {
		t.Errorf("without lists, a server: %+v", v)
	}
	addr := netip.MustParseAddr("192.0.2.9")
	for _, test := range []struct {
		a     *Authorizer
		peer  Peer
		level Level
		want  bool
	}{
		{closed, Peer{User: SubmitSide, Method: MethodMatch}, Daemon, true},
		{closed, Peer{User: SubmitSide, Method: MethodMatch}, Write, true},
		{closed, Peer{User: SubmitSide, Method: MethodMatch}, Administrator, false},
		{closed, Peer{User: CollectorSide, Method: MethodMatch}, Administrator, true},
		{closed, Peer{User: CollectorSide, Method: MethodMatch}, Daemon, false},
		{closed, Peer{User: Family, Method: MethodFamily}, Negotiator, true},
		{closed, Peer{User: Family, Method: MethodFamily}, AdvertiseStartd, true},
		{closed, Peer{User: Parent, Method: MethodFamily}, Administrator, true},
		{closed, Peer{User: Parent, Method: MethodFamily}, Negotiator, false},
		{closed, Peer{User: Family, Method: "FS"}, Daemon, false},
		{a, Peer{User: Family, Method: "CLAIMTOBE"}, Daemon, false},
		{a, Peer{User: "x@y"}, Daemon, true},
		{a, Peer{User: "x@y", Limited: true, Limit: []Level{Daemon}}, Read, true},
		{a, Peer{User: "x@y", Limited: true, Limit: []Level{Read}}, Daemon, false},
		{a, Peer{User: "x@y", Limited: true, Limit: []Level{AdvertiseStartd}}, Administrator, false},
		{a, Peer{User: "x@y", Limited: true}, Read, false},
		{a, Peer{User: "x@y", Limited: true}, Allow, true},
	} {
		if v := test.a.Allowed(test.level, Asker{Peer: test.peer, Addr: addr}); v.OK != test.want {
			t.Errorf("%s for %+v: %+v, want %t", test.level, test.peer, v, test.want)
		}
	}
	who := Asker{Peer: Peer{User: "x@y", Limited: true, Limit: []Level{AdvertiseStartd}}, Addr: addr}
	if v := a.AllowedAny(Daemon, []Level{AdvertiseStartd}, who); !v.OK {
		t.Errorf("an alternative level does not count: %+v", v)
	}
	if v := a.AllowedAny(Daemon, []Level{Administrator}, who); v.OK || !strings.Contains(v.Why, "DAEMON") {
		t.Errorf("%+v, want a refusal that speaks of the first level", v)
	}
}

func TestAuthorizerErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ALLOW_DAEMON = condor@*, +trusted":      `condor_config:1: ALLOW_DAEMON = "condor@*, +trusted": entry "+trusted": netgroups are not supported`,
		"DENY_READ = +bad":                       "netgroups",
		"ALLOW_READ = <10.0.0.1:9618>":           "no host name, address or network",
		"ALLOW_READ = host:9618":                 "no host name, address or network",
		"ALLOW_READ = alice@x/":                  "want user@domain/host",
		"ALLOW_READ = 10.0.0.0/8/8":              "no host name, address or network",
		"USE_POOL_USERNAME_EQUIVALENT = perhaps": "USE_POOL_USERNAME_EQUIVALENT",
	} {
		_, err := authorizerFrom(configured(t, text+"\n"), "STARTD", Hosts{})
		if err == nil || !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\nerr = %v\nwant %s", text, err, want)
		}
	}
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"*", "alice@x/10.0.0.0/8", "*/10.66.*", "+group", "2001:db8:*", "{:local_ips:}", "a/b/c/d", "/", "@", "u@d/h*st*"} {
		f.Add(s, "alice@x", "10.1.2.3")
	}
	f.Fuzz(func(t *testing.T, entry, user, address string) {
		r, why := parseRule(entry)
		if why == "" && (r.user == "" || !r.isNet && r.host == "") {
			t.Fatalf("%q is taken as %+v", entry, r)
		}
		if addr, err := netip.ParseAddr(address); err == nil && why == "" {
			r.fitsUser(user)
			r.fitsAddr(addr, nil)
		}
	})
}

func BenchmarkAllowed(b *testing.B) {
	a, err := authorizerFrom(configured(b, "ALLOW_READ = *\nALLOW_DAEMON = condor@*, schedd@example.org/10.0.0.0/8, 192.168.7.*, alice@example.org\nDENY_DAEMON = 10.66.*\n"), "STARTD", Hosts{})
	if err != nil {
		b.Fatal(err)
	}
	who := Asker{Peer: Peer{User: "alice@example.org", Method: "FS"}, Addr: netip.MustParseAddr("10.1.2.3")}
	b.ReportAllocs()
	for b.Loop() {
		if !a.Allowed(Daemon, who).OK {
			b.Fatal("refused")
		}
	}
}

// authorizerFrom is the Authorizer of a configuration.
func authorizerFrom(c *config.Snapshot, subsystem string, h Hosts) (*Authorizer, error) {
	lists, err := accessListsFrom(c, subsystem)
	if err != nil {
		return nil, err
	}
	return lists.authorizer(h)
}
