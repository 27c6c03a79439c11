// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delegation receives X.509 proxies by delegation: a key is made here, the
// other end signs a certificate for it with its own proxy, and the new key never
// goes over the wire.
//
//	receiver → sender   int length, that many bytes: a PKCS #10 request in DER
//	sender → receiver   int length, that many bytes: the new certificate in DER, that
//	                    of who signed it and the rest of its chain, one behind the
//	                    other; a length of 0 says that nothing could be signed
//
// How long a proxy lives and whether it is a limited one is the sender's choice. The
// package must never write a file or let a key into an error or a log.
package delegation

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

const (
	// MostChain bounds, in bytes, the certificates of one proxy. Those of VOMS, which
	// carry a signed list of a user's groups, have some ten thousand.
	MostChain = 1 << 20
	mostCerts = 100
	keyBits   = 2048 // as HTCondor's
)

// errNone says that the other end sent no proxy.
var errNone = errors.New("the other end has no proxy that it could delegate")

// Request is a proxy that is asked for.
type Request struct {
	key *rsa.PrivateKey
	der []byte
}

// NewRequest makes a key and the request to sign a certificate for it. It takes a
// tenth of a second.
func NewRequest() (*Request, error) {
	const op = "delegation.NewRequest"
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, errs.E(op, errs.Internal, "", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{SignatureAlgorithm: x509.SHA256WithRSA}, key)
	if err != nil {
		return nil, errs.E(op, errs.Internal, "", err)
	}
	return &Request{key, der}, nil
}

// DER is the request as it is sent.
func (r *Request) DER() []byte { return r.der }

// Put puts what one end sends: its length and the bytes.
func Put(conn *cedar.Conn, b []byte) {
	conn.PutInt(int64(len(b)))
	conn.PutBytes(b)
}

// Read reads what one end sends, without the end of the message.
func Read(conn *cedar.Conn) ([]byte, error) {
	n, err := conn.IntIn(0, MostChain)
	if err != nil || n == 0 {
		return nil, err
	}
	return conn.Bytes(int(n))
}

// Ask has the other end of conn sign the request, and returns what it sent: nothing
// if it could not. An error is the connection's.
func (r *Request) Ask(conn *cedar.Conn) (chain []byte, err error) {
	Put(conn, r.der)
	if err := conn.EndMessage(); err != nil {
		return nil, err
	}
	if chain, err = Read(conn); err != nil {
		return nil, err
	}
	return chain, conn.EndOfMessage()
}

// Accept makes the file of the proxy out of what the other end signed: the new
// certificate, its key, and the chain of the certificate, in PEM and in this order,
// in which proxies are read.
func (r *Request) Accept(chain []byte) ([]byte, error) {
	const op = "delegation.Accept"
	if len(chain) == 0 {
		return nil, errs.E(op, errs.Broken, "", errNone)
	}
	certs, err := split(chain)
	if err != nil {
		return nil, errs.E(op, errs.Invalid, "", err)
	}
	if err := r.fits(certs[0]); err != nil {
		return nil, errs.E(op, errs.Invalid, "", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(r.key)
	if err != nil {
		return nil, errs.E(op, errs.Internal, "", err)
	}
	var file bytes.Buffer
	blocks := []*pem.Block{{Type: "CERTIFICATE", Bytes: certs[0]}, {Type: "PRIVATE KEY", Bytes: key}}
	for _, c := range certs[1:] {
		blocks = append(blocks, &pem.Block{Type: "CERTIFICATE", Bytes: c})
	}
	for _, b := range blocks {
		if err := pem.Encode(&file, b); err != nil {
			return nil, errs.E(op, errs.Internal, "", err)
		}
	}
	return file.Bytes(), nil
}

// split takes certificates apart that stand one behind the other. Grids have some
// that Go's parser refuses, so nothing of them is read but where they end.
func split(chain []byte) ([][]byte, error) {
	var certs [][]byte
	for len(chain) > 0 {
		if len(certs) == mostCerts {
			return nil, fmt.Errorf("a chain of more than %d certificates", mostCerts)
		}
		var c asn1.RawValue
		rest, err := asn1.Unmarshal(chain, &c)
		if err != nil || c.Class != asn1.ClassUniversal || c.Tag != asn1.TagSequence || !c.IsCompound {
			return nil, errors.New("what came is no chain of certificates")
		}
		certs = append(certs, c.FullBytes)
		chain = rest
	}
	return certs, nil
}

// certificate is as much of one as its key lies behind.
type certificate struct {
	Signed struct {
		Version                                   asn1.RawValue `asn1:"optional,tag:0"`
		Serial                                    asn1.RawValue
		Algorithm, Issuer, Validity, Subject, Key asn1.RawValue
	}
}

// fits reports why a certificate is not for the key that was made here.
func (r *Request) fits(der []byte) error {
	ours, err := x509.MarshalPKIXPublicKey(&r.key.PublicKey)
	if err != nil {
		return err
	}
	var c certificate
	if _, err := asn1.Unmarshal(der, &c); err != nil {
		return errors.New("the first certificate of the chain cannot be read")
	}
	if !bytes.Equal(c.Signed.Key.FullBytes, ours) {
		return errors.New("the first certificate of the chain is not for the key that was sent")
	}
	return nil
}
