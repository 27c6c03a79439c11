// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// encoded is what a known_hosts file has of the certificate in a PEM file.
func encoded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	return base64.StdEncoding.EncodeToString(block.Bytes)
}

// The known_hosts file decides about servers that no authority vouches for, as
// the original's verify_callback does.
func TestKnownHosts(t *testing.T) {
	t.Parallel()
	const host = "ep.pool.test"
	for _, tt := range []struct {
		name  string
		file  string // $OURS is the server's certificate, $OTHER that of somebody else
		first bool   // BOOTSTRAP_SSL_SERVER_TRUST
		known bool   // an authority vouches for the server
		alias string
		late  bool   // the certificate is over
		says  string // "" is well
		left  string // of the file
	}{
		{name: "first met and trusted", first: true, left: host + " SSL $OURS\n"},
		{name: "first met", says: "BOOTSTRAP_SSL_SERVER_TRUST is off", left: "!" + host + " SSL $OURS\n"},
		{name: "known", file: "# here\n\n" + host + " SSL $OURS by hand\n", left: "# here\n\n" + host + " SSL $OURS by hand\n"},
		{name: "the first line counts", file: "!" + host + " SSL $OURS\n" + host + " SSL $OURS\n", first: true, says: "not to be trusted", left: "!" + host + " SSL $OURS\n" + host + " SSL $OURS\n"},
		{name: "another certificate", file: host + " SSL $OTHER\n", first: true, says: "has another certificate", left: host + " SSL $OTHER\n!" + host + " SSL $OURS\n"},
		{name: "an authority vouched for it once", file: host + " SSL @trusted\n", first: true, says: "has another certificate", left: host + " SSL @trusted\n!" + host + " SSL $OURS\n"},
		{name: "by another method", file: host + " TOKEN x\n", first: true, says: "not to be trusted", left: host + " TOKEN x\n"},
		{name: "another host", file: "other.pool.test SSL $OURS\n", says: "is off", left: "other.pool.test SSL $OURS\n!" + host + " SSL $OURS\n"},
		{name: "vouched for", known: true, left: host + " SSL @trusted\n"},
		{name: "vouched for again", known: true, file: host + " SSL @trusted\n", left: host + " SSL @trusted\n"},
		{name: "vouched for and once refused", known: true, file: "!" + host + " SSL $OURS\n", left: "!" + host + " SSL $OURS\n" + host + " SSL @trusted\n"},
		{name: "its time is over", file: host + " SSL $OURS\n", late: true, first: true, says: "expired", left: host + " SSL $OURS\n"},
		{name: "the certificate is for another name", first: true, alias: "a.elsewhere.test", says: "not for", left: "a.elsewhere.test SSL $OURS\n"},
		{name: "a name that is more than a line", first: true, alias: host + " SSL x\nbad", says: "unknown authority"},
		{name: "a line that is none", file: "# fine\n" + host + " SSL\n", first: true, says: "known_hosts:2", left: "# fine\n" + host + " SSL\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, s, _ := sslPair(t)
			ours, other := encoded(t, s.ServerTLS.CertFiles[1]), encoded(t, newAuthority(t, "x").file)
			fill := strings.NewReplacer("$OURS", ours, "$OTHER", other).Replace
			c.SystemKnownHosts, c.TrustFirst, c.Home = filepath.Join(t.TempDir(), "etc", "known_hosts"), tt.first, ""
			if !tt.known {
				c.ClientTLS = TLSFiles{}
			}
			if tt.late {
				c.Now = func() time.Time { return noon().Add(2 * time.Hour) }
			}
			if tt.file != "" {
				if err := os.Mkdir(filepath.Dir(c.SystemKnownHosts), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(c.SystemKnownHosts, []byte(fill(tt.file)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second time nothing new is learnt
				cp, sp := ends()
				if cp.Alias = host; tt.alias != "" {
					cp.Alias = tt.alias
				}
				client, server := meetAs(t, c, s, cp, sp, []Method{SSL, Anonymous}, []Method{SSL, Anonymous})
				if client.err != nil || server.err != nil {
					t.Fatalf("client: %v\nserver: %v", client.err, server.err)
				}
				if tt.says == "" && client.Identity.Method != SSL {
					t.Fatalf("refused: %v", client.Failed[0].Err)
				}
				if tt.says != "" {
					if client.Identity.Method == SSL {
						t.Fatal("it is trusted")
					}
					if why := client.Failed[0].Err.Error(); !strings.Contains(why, tt.says) && !strings.Contains(why, "not to be trusted") {
						t.Errorf("%v, want %q", why, tt.says)
					}
				}
				text, err := os.ReadFile(c.SystemKnownHosts)
				if err != nil && tt.left != "" || string(text) != fill(tt.left) {
					t.Errorf("the file holds\n%s (%v)\nwant\n%s", text, err, fill(tt.left))
				}
			}
		})
	}
}

// An authority that the server shows along with its own certificate is what is
// remembered of it: the server may have a new one of it.
func TestKnownAuthority(t *testing.T) {
	t.Parallel()
	c, s, ca := sslPair(t)
	c.ClientTLS, c.TrustFirst, c.Home = TLSFiles{}, true, t.TempDir()
	with := func() {
		leaf, err := os.ReadFile(s.ServerTLS.CertFiles[1])
		if err != nil {
			t.Fatal(err)
		}
		top, err := os.ReadFile(ca.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.ServerTLS.CertFiles[1], append(leaf, top...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"one", "two"} {
		s.ServerTLS = ca.issue(t, pkix.Name{CommonName: "ep.pool.test", Organization: []string{name}}, nil)
		with()
		cp, sp := ends()
		cp.Alias = "ep.pool.test"
		client, _ := meetAs(t, c, s, cp, sp, []Method{SSL}, []Method{SSL})
		if client.err != nil || client.Identity.Name != "/O="+name+"/CN=ep.pool.test" && client.Identity.Name != "/CN=ep.pool.test/O="+name {
			t.Errorf("%s: %+v, %v", name, client.Identity, client.err)
		}
		c.TrustFirst = false
	}
	text, err := os.ReadFile(filepath.Join(c.Home, ".condor", "known_hosts"))
	if want := "ep.pool.test SSL " + encoded(t, ca.file) + "\n"; err != nil || string(text) != want {
		t.Errorf("the file holds\n%s (%v)\nwant\n%s", text, err, want)
	}
}

// What is wrong with a file is told with its line.
func TestHostileKnownHosts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a.test SSL\n":                                      "f:1: invalid: 2 words",
		"a.test SSL @trusted\nb.test SSL !!\n":              "f:2: invalid: the certificate of b.test",
		"../etc SSL @trusted\n":                             "f:1: invalid: \"../etc\" is no name",
		"! SSL @trusted\n":                                  "f:1: invalid: \"\" is no name",
		"a.test SSL @trusted\n\n#\nb\x00.test SSL x\n":      "f:4: invalid: there are control characters",
		"a.test\vSSL @trusted\n":                            "f:1: invalid: there are control characters",
		strings.Repeat("x", 300) + " SSL @trusted\n":        "is no name",
		"a.test SSL " + strings.Repeat("A", 70000) + "\n":   "f:1: invalid: the line is longer",
		strings.Repeat("a.test SSL @trusted\n", 60000):      "the file is larger",
		"a.test SSL " + strings.Repeat("A", 5) + " x y z\n": "f:1: invalid: the certificate of a.test",
	} {
		if _, err := parseKnownHosts("f", []byte(text)); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := readKnownHosts(t.TempDir()); !errs.Is(err, errs.Broken) {
		t.Errorf("of a directory: %v", err)
	}
	// A file that is full takes no more.
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte(strings.Repeat("#\n", maxKnownHosts/2)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := remember(name, nil, knownHost{host: "a", method: "SSL", info: knownByCA}); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("a full file: %v", err)
	}
}

// A server that nobody has vouched for decides how many certificates it shows
// and how they are named: each costs one look at a signature at most, and too
// many of them none.
func TestHostileChain(t *testing.T) {
	t.Parallel()
	named := func(n int) []*x509.Certificate {
		chain := make([]*x509.Certificate, n)
		for i := range chain {
			chain[i] = &x509.Certificate{Raw: []byte{byte(i), byte(i >> 8)}, RawSubject: []byte("a"), RawIssuer: []byte("b")}
			if i%2 == 1 {
				chain[i].RawSubject, chain[i].RawIssuer = chain[i].RawIssuer, chain[i].RawSubject
			}
		}
		return chain
	}
	for name, lies := range map[string]bool{"all sign each other": false, "none signs another": true} {
		chain, looks := named(maxChain), 0
		top := highest(chain, func(_, _ *x509.Certificate) error {
			if looks++; lies {
				return errors.New("not signed")
			}
			return nil
		})
		if looks == 0 || looks >= len(chain) || lies != (top == chain[0]) {
			t.Errorf("%s: %d looks at the signatures of %d certificates, the highest is %v", name, looks, len(chain), top.Raw)
		}
	}
	c, _, _ := sslPair(t)
	for _, tt := range []struct {
		chain []*x509.Certificate
		want  string
	}{
		{nil, "has no certificate"},
		{named(maxChain + 1), "shows 17 certificates; want 16 at most"},
		{named(800), "shows 800 certificates"},
		{append(named(3), &x509.Certificate{Raw: make([]byte, maxChainBytes)}), "have 102406 bytes; want 102400 at most"},
	} {
		for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if err := c.verify(tls.ConnectionState{PeerCertificates: tt.chain}, nil, use); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%d certificates: %v, want %q", len(tt.chain), err, tt.want)
			}
		}
	}
	c.Home, c.TrustFirst = t.TempDir(), true
	meet := unknownServer{c: c, alias: "ep.pool.test"}
	err := meet.verify(named(800), nil, func(roots *x509.CertPool) error {
		return c.verify(tls.ConnectionState{PeerCertificates: named(800)}, roots, x509.ExtKeyUsageServerAuth)
	})
	if _, serr := os.Stat(filepath.Join(c.Home, ".condor", "known_hosts")); err == nil || serr == nil {
		t.Errorf("a server with 800 certificates: %v, %v", err, serr)
	}
}

func FuzzKnownHosts(f *testing.F) {
	f.Add([]byte("# known\n!a.test SSL MAo= more\nb SSL @trusted\n c  TOKEN x\r\n"))
	f.Add([]byte("a.test SSL"))
	f.Add([]byte("a SSL \x00\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseKnownHosts("f", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "authn.knownHosts f:") || !errs.Is(err, errs.Invalid) {
				t.Errorf("no line in %v", err)
			}
			return
		}
		var again strings.Builder
		for _, k := range all {
			again.WriteString(k.line())
		}
		if again.Len() > maxKnownHosts {
			return
		}
		back, err := parseKnownHosts("f", []byte(again.String()))
		if err != nil || len(back) != len(all) {
			t.Fatalf("%d lines became %d: %v", len(all), len(back), err)
		}
		for i := range all {
			if all[i] != back[i] {
				t.Errorf("%+v became %+v", all[i], back[i])
			}
		}
	})
}
