// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delegationtest is the end of a delegation that has a proxy, for tests: it
// signs as HTCondor's shadow does. It must never be imported by anything else.
package delegationtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/delegation"
)

// Limited is the policy of a limited proxy.
var Limited = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 3536, 1, 1, 1, 9}

// proxyCertInfo is the extension that makes a certificate a proxy.
var proxyCertInfo = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}

// Credential is a user's certificate with its key.
type Credential struct {
	key  crypto.Signer
	cert *x509.Certificate
	next int64
}

// New makes the credential of a user by that name.
func New(t testing.TB, name string) *Credential {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"HTCondor"}, CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(72 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Credential{key: key, cert: cert, next: 100}
}

// File is the credential as a file, in the order in which proxies are read:
// certificate, then key.
func (c *Credential) File(t testing.TB) []byte {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
}

// Delegate signs a proxy for a request, and returns it with its chain. Each is told
// by its number, which begins at 101.
func (c *Credential) Delegate(request []byte) ([]byte, error) {
	csr, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, err
	}
	info, err := asn1.Marshal(struct {
		Policy struct{ Language asn1.ObjectIdentifier }
	}{struct{ Language asn1.ObjectIdentifier }{Limited}})
	if err != nil {
		return nil, err
	}
	c.next++
	names := append(c.cert.Subject.Names[:len(c.cert.Subject.Names):len(c.cert.Subject.Names)],
		pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: strconv.FormatInt(c.next, 10)})
	about := &x509.Certificate{
		SerialNumber: big.NewInt(c.next), Subject: pkix.Name{ExtraNames: names},
		NotBefore: c.cert.NotBefore, NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtraExtensions: []pkix.Extension{{Id: proxyCertInfo, Critical: true, Value: info}},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, c.cert, csr.PublicKey, c.key)
	if err != nil {
		return nil, err
	}
	return append(der, c.cert.Raw...), nil
}

// Send delegates over conn. A nil Credential has nothing to delegate and says so.
func (c *Credential) Send(conn *cedar.Conn) error {
	request, err := delegation.Read(conn)
	if err == nil {
		err = conn.EndOfMessage()
	}
	if err != nil {
		return err
	}
	var chain []byte
	if c != nil {
		if chain, err = c.Delegate(request); err != nil {
			return err
		}
	}
	delegation.Put(conn, chain)
	return conn.EndMessage()
}
