// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation_test

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/delegation"
	"github.com/execpoint/execpoint/lib/cedar/delegation/delegationtest"
)

func request(t testing.TB) *delegation.Request {
	t.Helper()
	r, err := delegation.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is received is a proxy that its key belongs to, in the order in which proxies
// are read: certificate, key, chain. The key is not what went over the wire.
func TestDelegation(t *testing.T) {
	t.Parallel()
	x, y := cedartest.Pipe()
	ours, theirs := cedar.NewConn(x, cedar.Limits{}), cedar.NewConn(y, cedar.Limits{})
	sent := make(chan error, 1)
	user := delegationtest.New(t, "Test Credential")
	go func() { sent <- user.Send(theirs) }()
	r := request(t)
	chain, err := r.Ask(ours)
	if serr := <-sent; err != nil || serr != nil {
		t.Fatalf("%v, %v", err, serr)
	}
	file, err := r.Accept(chain)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for b, rest := pem.Decode(file); b != nil; b, rest = pem.Decode(rest) {
		types = append(types, b.Type)
	}
	if got := strings.Join(types, ","); got != "CERTIFICATE,PRIVATE KEY,CERTIFICATE" {
		t.Errorf("the file is %s", got)
	}
	pair, err := tls.X509KeyPair(file, file)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if names := proxy.Subject.Names; len(names) != 3 || names[2].Value != "101" || proxy.Issuer.CommonName != "Test Credential" {
		t.Errorf("%s, signed by %s", proxy.Subject, proxy.Issuer)
	}
	if key, ok := pair.PrivateKey.(*rsa.PrivateKey); !ok || key.N.BitLen() != 2048 {
		t.Errorf("a key of %T", pair.PrivateKey)
	}
}

// What is no proxy for the key that was made here becomes no file.
func TestAcceptRefuses(t *testing.T) {
	t.Parallel()
	r, user := request(t), delegationtest.New(t, "u")
	other := chainFor(t, user, request(t))
	own := chainFor(t, user, r)
	if _, err := r.Accept(own); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		chain []byte
		want  string
	}{
		"nothing":                 {nil, "has no proxy"},
		"for another key":         {other, "is not for the key"},
		"the chain alone":         {tail(t, own), "is not for the key"},
		"a half":                  {own[:len(own)/2], "no chain of certificates"},
		"a byte more":             {append(bytes.Clone(own), 0), "no chain of certificates"},
		"text":                    {[]byte("-----BEGIN CERTIFICATE-----"), "no chain of certificates"},
		"an empty sequence":       {[]byte{0x30, 0}, "cannot be read"},
		"more than can be read":   {append(bytes.Clone(own), bytes.Repeat([]byte{0x30, 0}, 100)...), "more than 100"},
		"a length beyond the end": {[]byte{0x30, 0x84, 0x7f, 0xff, 0xff, 0xff}, "no chain of certificates"},
	} {
		file, err := r.Accept(c.chain)
		if err == nil || file != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// chainFor is what user signs for r.
func chainFor(t testing.TB, user *delegationtest.Credential, r *delegation.Request) []byte {
	t.Helper()
	chain, err := user.Delegate(r.DER())
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

// tail is the last certificate of a chain of two.
func tail(t testing.TB, chain []byte) []byte {
	t.Helper()
	certs, err := x509.ParseCertificates(chain)
	if err != nil || len(certs) != 2 {
		t.Fatalf("%d certificates, %v", len(certs), err)
	}
	return certs[1].Raw
}

// A length that cannot be is refused before there is memory for it.
func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{-1, delegation.MostChain + 1, 1 << 62} {
		x, y := cedartest.Pipe()
		ours, theirs := cedar.NewConn(x, cedar.Limits{}), cedar.NewConn(y, cedar.Limits{})
		ours.PutInt(n)
		if err := ours.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if b, err := delegation.Read(theirs); err == nil || b != nil {
			t.Errorf("%d: %d bytes, %v", n, len(b), err)
		}
	}
}

// FuzzAccept lets anything be the chain: either it is refused, or the file holds the
// key of the request.
func FuzzAccept(f *testing.F) {
	r, user := request(f), delegationtest.New(f, "u")
	own := chainFor(f, user, r)
	f.Add(own)
	f.Add(chainFor(f, user, request(f)))
	f.Add(own[:7])
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(t *testing.T, chain []byte) {
		file, err := r.Accept(chain)
		if (err == nil) != (file != nil) {
			t.Fatalf("%d bytes, %v", len(file), err)
		}
		if err != nil && strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%v", err)
		}
	})
}
