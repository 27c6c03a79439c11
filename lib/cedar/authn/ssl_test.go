// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t testing.TB, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: noon().Add(-time.Hour), NotAfter: noon().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert: cert, key: key, file: write(t, t.TempDir(), "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// issue makes a certificate and returns its two files.
func (a authority) issue(t testing.TB, subject pkix.Name, change func(*x509.Certificate)) TLSFiles {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject,
		NotBefore: noon().Add(-time.Hour), NotAfter: noon().Add(time.Hour),
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return TLSFiles{
		CertFiles: []string{"/nothing", write(t, dir, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))},
		KeyFiles:  []string{"/nothing", write(t, dir, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))},
	}
}

// sslPair is a client and a server that trust one authority.
func sslPair(t testing.TB) (*Client, *Server, authority) {
	t.Helper()
	c, s := pair(t)
	ca := newAuthority(t, "pool CA")
	s.ServerTLS = ca.issue(t, pkix.Name{CommonName: "server"}, func(x *x509.Certificate) { x.DNSNames = []string{"other.test", "*.pool.test"} })
	s.ServerTLS.CAFiles, c.ClientTLS.CAFiles = []string{"/nothing", ca.file}, []string{ca.file}
	return c, s, ca
}

func with(f TLSFiles, cas []string) TLSFiles {
	f.CAFiles = cas
	return f
}

func TestSSL(t *testing.T) {
	t.Parallel()
	alice := pkix.Name{Country: []string{"DE"}, Organization: []string{"Pool/Lab"}, CommonName: "Alice Ä"}
	const aliceName = `/C=DE/O=Pool\/Lab/CN=Alice \xC3\x84`
	tests := []struct {
		name    string
		arrange func(t *testing.T, c *Client, s *Server, ca authority, cp *Peer)
		client  string // Identity.Name at the server
		user    string
		// If it is to fail:
		clientSays, serverSays string
	}{
		{name: "no client certificate", client: "unauthenticated", user: "unauthenticated@unmapped"},
		{
			name: "a client certificate", client: aliceName, user: "ssl@unmapped",
			arrange: func(t *testing.T, c *Client, _ *Server, ca authority, _ *Peer) {
				c.ClientTLS = with(ca.issue(t, alice, nil), c.ClientTLS.CAFiles)
			},
		},
		{
			name: "a client certificate that is mapped", client: aliceName, user: "ssl@unmapped",
			arrange: func(t *testing.T, c *Client, s *Server, ca authority, _ *Peer) {
				c.ClientTLS = with(ca.issue(t, alice, nil), c.ClientTLS.CAFiles)
				s.RequireClientMapping = true
				s.Mapped = func(m Method, name string) bool { return m == SSL && name == aliceName }
			},
		},
		{
			name: "one that is not mapped", clientSays: "gave up", serverSays: "the map file does not know",
			arrange: func(t *testing.T, c *Client, s *Server, ca authority, _ *Peer) {
				c.ClientTLS = with(ca.issue(t, alice, nil), c.ClientTLS.CAFiles)
				s.RequireClientMapping = true
			},
		},
		{
			name: "the common name", client: "unauthenticated", user: "unauthenticated@unmapped",
			arrange: func(_ *testing.T, _ *Client, _ *Server, _ authority, cp *Peer) { cp.Alias = "SERVER" },
		},
		{
			name: "no host check", client: "unauthenticated", user: "unauthenticated@unmapped",
			arrange: func(_ *testing.T, c *Client, _ *Server, _ authority, cp *Peer) {
				cp.Alias, c.SkipHostCheck = "", true
			},
		},
		{
			name: "a directory of authorities", client: "unauthenticated", user: "unauthenticated@unmapped",
			arrange: func(_ *testing.T, c *Client, _ *Server, ca authority, _ *Peer) {
				c.ClientTLS = TLSFiles{CADir: strings.TrimSuffix(ca.file, "/ca.pem")}
			},
		},
		{
			name: "another host", clientSays: "not for \"ep.elsewhere.test\"", serverSays: "gave up",
			arrange: func(_ *testing.T, _ *Client, _ *Server, _ authority, cp *Peer) { cp.Alias = "ep.elsewhere.test" },
		},
		{
			name: "no alias", clientSays: "no host name (alias)", serverSays: "gave up",
			arrange: func(_ *testing.T, _ *Client, _ *Server, _ authority, cp *Peer) { cp.Alias = "" },
		},
		{
			name: "an unknown authority", clientSays: "unknown authority", serverSays: "gave up",
			arrange: func(t *testing.T, c *Client, _ *Server, _ authority, _ *Peer) {
				c.ClientTLS.CAFiles = []string{newAuthority(t, "another CA").file}
			},
		},
		{
			name: "no authority", clientSays: "unknown authority", serverSays: "gave up",
			arrange: func(_ *testing.T, c *Client, _ *Server, _ authority, _ *Peer) { c.ClientTLS = TLSFiles{} },
		},
		{
			name: "a server's certificate that is over", clientSays: "expired", serverSays: "gave up",
			arrange: func(_ *testing.T, c *Client, _ *Server, _ authority, _ *Peer) {
				c.Now = func() time.Time { return noon().Add(2 * time.Hour) }
			},
		},
		{
			name: "a client's certificate as the server's", clientSays: "incompatible key usage", serverSays: "gave up",
			arrange: func(t *testing.T, c *Client, s *Server, ca authority, _ *Peer) {
				s.ServerTLS = with(ca.issue(t, pkix.Name{CommonName: "ep.pool.test"}, func(x *x509.Certificate) {
					x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
				}), s.ServerTLS.CAFiles)
			},
		},
		{
			name: "a client of an unknown authority", clientSays: "gave up", serverSays: "unknown authority",
			arrange: func(t *testing.T, c *Client, _ *Server, _ authority, _ *Peer) {
				c.ClientTLS = with(newAuthority(t, "another CA").issue(t, alice, nil), c.ClientTLS.CAFiles)
			},
		},
		{
			name: "a client must have one", clientSays: "gave up", serverSays: "AUTH_SSL_REQUIRE_CLIENT_CERTIFICATE",
			arrange: func(_ *testing.T, _ *Client, s *Server, _ authority, _ *Peer) { s.RequireClientCert = true },
		},
		{
			name: "a client that should have one", clientSays: "AUTH_SSL_REQUIRE_CLIENT_CERTIFICATE", serverSays: "the client is not ready",
			arrange: func(_ *testing.T, c *Client, _ *Server, _ authority, _ *Peer) { c.RequireClientCert = true },
		},
		{
			name: "a server without one", clientSays: "the server is not ready", serverSays: "no certificate that can be read",
			arrange: func(_ *testing.T, _ *Client, s *Server, _ authority, _ *Peer) { s.ServerTLS.KeyFiles = nil },
		},
		{
			name: "a proxy certificate", clientSays: "gave up", serverSays: "proxy certificates",
			arrange: func(t *testing.T, c *Client, _ *Server, ca authority, _ *Peer) {
				c.ClientTLS = with(ca.issue(t, alice, func(x *x509.Certificate) {
					x.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}, Value: []byte{0x30, 0}}}
				}), c.ClientTLS.CAFiles)
			},
		},
		{
			name: "a name that is too long", clientSays: "gave up", serverSays: "want 1 to 1023",
			arrange: func(t *testing.T, c *Client, _ *Server, ca authority, _ *Peer) {
				c.ClientTLS = with(ca.issue(t, pkix.Name{Organization: []string{strings.Repeat("x", 1100)}}, nil), c.ClientTLS.CAFiles)
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, s, ca := sslPair(t)
			cp, sp := ends()
			if tt.arrange != nil {
				tt.arrange(t, c, s, ca, &cp)
			}
			// After a failure the two agree on what comes next: another method.
			client, server := meetAs(t, c, s, cp, sp, []Method{SSL, Anonymous}, []Method{SSL, Anonymous})
			if client.err != nil || server.err != nil {
				t.Fatalf("client: %v\nserver: %v", client.err, server.err)
			}
			if tt.clientSays != "" {
				if server.Identity.Method != Anonymous || client.Identity.Method != Anonymous {
					t.Fatalf("it succeeded: %+v", server.Identity)
				}
				if err := client.Failed[0].Err; !strings.Contains(err.Error(), tt.clientSays) {
					t.Errorf("client: %v, want %q", err, tt.clientSays)
				}
				if err := server.Failed[0].Err; !strings.Contains(err.Error(), tt.serverSays) {
					t.Errorf("server: %v, want %q", err, tt.serverSays)
				}
				return
			}
			if id := server.Identity; id.Method != SSL || id.Name != tt.client || id.FQU() != tt.user {
				t.Errorf("client %+v, want %q and %q", id, tt.client, tt.user)
			}
			if id := client.Identity; id.Method != SSL || id.Name != "/CN=server" || id.FQU() != "ssl@unmapped" {
				t.Errorf("server %+v", id)
			}
			if !client.Wraps() {
				t.Error("there is no key to wrap with")
			}
			sameWrap(t, client.Result, server.Result)
		})
	}
}

// The turns that the original takes are taken with TLS 1.2 as well, which
// needs one more of them.
func TestSSLTurns(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c, s, _ := sslPair(t)
		config, err := s.serverTLS()
		if err != nil {
			t.Fatal(err)
		}
		config.MaxVersion = version
		a, b := cedartest.Pipe()
		left, right := cedar.NewConn(a, cedar.Limits{}), cedar.NewConn(b, cedar.Limits{})
		t.Cleanup(func() { left.Close(); right.Close() })
		var heard []int64
		done := make(chan error, 1)
		go func() { done <- turns(right, config, &heard) }()
		id, key, err := c.sslClient(context.Background(), left, Peer{Alias: "ep.pool.test"})
		if err != nil || id.Name != "/CN=server" || len(key) != sslKeySize || key[0] != 7 || key[255] != 7 {
			t.Fatalf("%#x: %+v, %d bytes, %v", version, id, len(key), err)
		}
		if err := <-done; err != nil {
			t.Fatalf("%#x: %v", version, err)
		}
		want := "[0 2 4 4]" // ready; hello; finished; key received
		if version == tls.VersionTLS12 {
			want = "[0 2 2 4 4]"
		}
		if got := strings.ReplaceAll(sprint(heard), ",", ""); got != want {
			t.Errorf("%#x: the client's statuses are %s, want %s", version, got, want)
		}
	}
}

// turns is a server written down turn by turn, as the original's code does it.
func turns(conn *cedar.Conn, config *tls.Config, heard *[]int64) error {
	engine := newTLSEngine()
	defer engine.Close()
	side := tls.Server(engine, config)
	hear := func() (int64, error) {
		r := reader{conn: conn}
		status := r.int()
		if len(*heard) > 0 {
			if err := engine.feed(r.bytes(maxTLSRecords)); err != nil {
				return 0, err
			}
		}
		*heard = append(*heard, status)
		return status, r.end()
	}
	say := func(status int64) error {
		conn.PutInt(status)
		putSized(conn, engine.take(), true)
		return conn.EndMessage()
	}
	conn.PutInt(0)
	if err := conn.EndMessage(); err != nil {
		return err
	}
	if status, err := hear(); err != nil || status != 0 {
		return errors.Join(err, errors.New("the client is not ready"))
	}
	engine.start(side.Handshake)
	for {
		client, err := hear()
		if err != nil {
			return err
		}
		ended, err := engine.settle()
		if err != nil {
			return err
		}
		mine := int64(2)
		if ended {
			mine = 4
		}
		if ended && client == 4 && side.ConnectionState().Version == tls.VersionTLS12 {
			break // it has heard our end already
		}
		if err := say(mine); err != nil {
			return err
		}
		if ended && client == 4 {
			break
		}
	}
	key := make([]byte, sslKeySize)
	for i := range key {
		key[i] = 7
	}
	engine.start(func() error { _, err := side.Write(key); return err })
	if _, err := engine.settle(); err != nil {
		return err
	}
	if err := say(4); err != nil {
		return err
	}
	if status, err := hear(); err != nil || status != 4 {
		return errors.Join(err, errors.New("the key did not arrive"))
	}
	return nil
}

// A peer that sends what nobody reads cannot fill the memory.
func TestSSLFlood(t *testing.T) {
	t.Parallel()
	a, b := cedartest.Pipe()
	left, right := cedar.NewConn(a, cedar.Limits{Timeout: 10 * time.Second}), cedar.NewConn(b, cedar.Limits{Timeout: 10 * time.Second})
	t.Cleanup(func() { left.Close(); right.Close() })
	rounds := &sslRound{conn: right, engine: newTLSEngine()}
	done := make(chan error, 1)
	go func() {
		// The task is over at once, and with it all reading.
		done <- rounds.until(false, func() error { return nil })
	}()
	chunk := make([]byte, maxTLSRecords/4)
	for range 8 {
		left.PutInt(sslReceiving)
		putSized(left, chunk, true)
		if err := left.EndMessage(); err != nil {
			break
		}
	}
	if err := <-done; !errs.Is(err, errs.Exhausted) || !isBroken(err) || len(rounds.engine.in) > maxTLSRecords {
		t.Errorf("%v with %d bytes kept", err, len(rounds.engine.in))
	}
}

// A peer that keeps turning without ever getting anywhere is left.
func TestSSLWithoutEnd(t *testing.T) {
	t.Parallel()
	_, s, _ := sslPair(t)
	a, b := cedartest.Pipe()
	left, right := cedar.NewConn(a, cedar.Limits{Timeout: 10 * time.Second}), cedar.NewConn(b, cedar.Limits{Timeout: 10 * time.Second})
	go func() {
		defer left.Close()
		left.PutInt(sslOK)
		for left.EndMessage() == nil {
			left.PutInt(sslReceiving)
			left.PutInt(0)
		}
	}()
	go func() { _, _ = io.Copy(io.Discard, a) }()
	_, _, err := s.sslServer(context.Background(), right)
	_ = right.Close()
	if !errs.Is(err, errs.Exhausted) || !isBroken(err) {
		t.Errorf("%v", err)
	}
}

func TestHostMatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"ep.pool.test", "EP.pool.TEST", true},
		{"*.pool.test", "ep.pool.test", true},
		{"ep*.pool.test", "ep17.pool.test", true},
		{"*.pool.test", "a.b.pool.test", false},
		{"*.pool.test", "pool.test", false},
		{"e*p.pool.test", "ep.pool.test", false},
		{"**.pool.test", "ep.pool.test", false},
		{"ep.pool.test", "ep.pool.tes", false},
		{"ep.pool.test", "*.pool.test", false},
		{"*", "", false},
		{"", "", false},
		{strings.Repeat("a", 256), strings.Repeat("a", 256), false},
	}
	for _, tt := range tests {
		if got := hostMatches(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q for %q: %v", tt.pattern, tt.name, got)
		}
	}
}
