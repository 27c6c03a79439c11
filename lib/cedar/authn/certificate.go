// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// TLSFiles are the certificates of one role.
type TLSFiles struct {
	// CAFiles are candidates: the last that can be read counts. CADir is a
	// directory of certificates. SystemCAs trusts what the system trusts.
	CAFiles   []string
	CADir     string
	SystemCAs bool
	// CertFiles and KeyFiles belong together in pairs: the last pair that can
	// be read counts.
	CertFiles, KeyFiles []string
}

// clientTLS is the client's side of TLS. A certificate of our own is optional.
// meet decides about a server that no authority vouches for.
func (c *Client) clientTLS(meet *unknownServer) (*tls.Config, error) {
	roots, err := c.pool(c.ClientTLS)
	if err != nil {
		return nil, err
	}
	cert, err := c.pair(c.ClientTLS)
	if err != nil {
		return nil, err
	}
	if cert == nil && c.RequireClientCert {
		return nil, errs.E("", errs.NotFound, "AUTH_SSL_CLIENT_CERTFILE", errors.New("there is no certificate and AUTH_SSL_REQUIRE_CLIENT_CERTIFICATE asks for one"))
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		Time:       c.now,
		// The chain is verified below and the host name after the handshake,
		// as the protocol has it: the name is that of the address's alias.
		InsecureSkipVerify: true, //nolint:gosec
		VerifyConnection: func(state tls.ConnectionState) error {
			return meet.verify(state.PeerCertificates, roots, func(roots *x509.CertPool) error {
				return c.verify(state, roots, x509.ExtKeyUsageServerAuth)
			})
		},
	}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return config, nil
}

// serverTLS is the server's side: clients are asked for a certificate, and
// one that is shown must be good.
func (s *Server) serverTLS() (*tls.Config, error) {
	roots, err := s.pool(s.ServerTLS)
	if err != nil {
		return nil, err
	}
	cert, err := s.pair(s.ServerTLS)
	if err != nil {
		return nil, err
	}
	if cert == nil {
		return nil, errs.E("", errs.NotFound, "AUTH_SSL_SERVER_CERTFILE", errors.New("there is no certificate that can be read"))
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		Time:                   s.now,
		Certificates:           []tls.Certificate{*cert},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequestClientCert,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return nil
			}
			return s.verify(state, roots, x509.ExtKeyUsageClientAuth)
		},
	}, nil
}

// hasCertificate reports whether a pair can be read.
func (s *Server) hasCertificate() bool {
	cert, err := s.pair(s.ServerTLS)
	return err == nil && cert != nil
}

// Bounds of a chain, which is looked at before anybody is trusted. The bytes
// are those that OpenSSL takes, and so HTCondor. Real chains have two to five
// certificates.
const (
	maxChain      = 16
	maxChainBytes = 100 << 10
)

// bounded says why a chain is not looked at.
func bounded(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("the other side has no certificate")
	}
	if len(chain) > maxChain {
		return fmt.Errorf("the other side shows %d certificates; want %d at most: its own and those that lead to its authority", len(chain), maxChain)
	}
	size := 0
	for _, cert := range chain {
		size += len(cert.Raw)
	}
	if size > maxChainBytes {
		return fmt.Errorf("the certificates of the other side have %d bytes; want %d at most", size, maxChainBytes)
	}
	return nil
}

// verify checks the peer's chain.
func (s *System) verify(state tls.ConnectionState, roots *x509.CertPool, use x509.ExtKeyUsage) error {
	if err := bounded(state.PeerCertificates); err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: s.now(), KeyUsages: []x509.ExtKeyUsage{use},
	})
	return err
}

// pool collects the certificates that are trusted.
func (s *System) pool(f TLSFiles) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if f.SystemCAs {
		system, err := x509.SystemCertPool()
		if err != nil {
			return nil, errs.E("", errs.Broken, "", fmt.Errorf("the certificates of the system: %w", err))
		}
		pool = system
	}
	var file string
	var contents []byte
	for _, name := range f.CAFiles {
		if b, err := s.read(name); err == nil {
			file, contents = name, b
		}
	}
	if file != "" && !pool.AppendCertsFromPEM(contents) {
		return nil, errs.E("", errs.Invalid, file, errors.New("there is no certificate in the file"))
	}
	if f.CADir != "" {
		names, err := list(f.CADir)
		if err != nil {
			return nil, errs.E("", errs.Broken, f.CADir, err)
		}
		for _, name := range names {
			if b, err := s.read(filepath.Join(f.CADir, name)); err == nil {
				pool.AppendCertsFromPEM(b) // what is no certificate does not matter
			}
		}
	}
	return pool, nil
}

// pair reads our own certificate; nil when there is none that can be read.
func (s *System) pair(f TLSFiles) (*tls.Certificate, error) {
	var found *tls.Certificate
	for i, certFile := range f.CertFiles {
		if i >= len(f.KeyFiles) {
			break
		}
		cert, err := s.read(certFile)
		if err != nil {
			continue
		}
		key, err := s.read(f.KeyFiles[i])
		if err != nil {
			continue
		}
		pair, err := tls.X509KeyPair(cert, key)
		clear(key)
		if err != nil {
			return nil, errs.E("", errs.Invalid, certFile, errors.New("certificate and key do not belong together or cannot be read"))
		}
		found = &pair
	}
	return found, nil
}

// matchHost checks that a certificate is for a host: one of its names, or
// else its common name, is that of the host.
func matchHost(cert *x509.Certificate, hostName string) error {
	if hostName == "" {
		return errors.New("the server's address has no host name (alias) to compare its certificate with")
	}
	for _, name := range cert.DNSNames {
		if hostMatches(name, hostName) {
			return nil
		}
	}
	if strings.EqualFold(cert.Subject.CommonName, hostName) {
		return nil
	}
	return fmt.Errorf("the certificate is for %.256q, not for %.256q", append(cert.DNSNames, cert.Subject.CommonName), hostName)
}

// hostMatches compares names label by label. A label of the pattern may end in
// one star, which stands for the rest of that label.
func hostMatches(pattern, name string) bool {
	if len(pattern) > 255 || len(name) > 255 || strings.Contains(name, "*") {
		return false
	}
	labels := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == '.' })
	}
	want, have := labels(pattern), labels(name)
	if len(want) != len(have) || len(want) == 0 {
		return false
	}
	for i, label := range want {
		prefix, star := strings.CutSuffix(label, "*")
		switch {
		case strings.Contains(prefix, "*"):
			return false
		case star && !strings.HasPrefix(have[i], prefix):
			return false
		case !star && label != have[i]:
			return false
		}
	}
	return true
}

// maxSubject bounds the name of a certificate. A longer one would be cut by
// HTCondor, and with it what the map file decides on.
const maxSubject = 1023

// oidProxyCert marks proxy certificates, which stand for another one.
const oidProxyCert = "1.3.6.1.5.5.7.1.14"

// subjectName is the subject of a certificate in the form of one line that map
// files are written for: "/DC=org/DC=example/CN=Some Body".
func subjectName(cert *x509.Certificate) (string, error) {
	for _, e := range cert.Extensions {
		if e.Id.String() == oidProxyCert {
			return "", errors.New("proxy certificates are not accepted")
		}
	}
	// The bytes of a value count, whatever kind of text they are.
	type attribute struct {
		Type  asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	type relativeSET []attribute // asn1 knows a set by the end of its name
	var rdns []relativeSET
	if rest, err := asn1.Unmarshal(cert.RawSubject, &rdns); err != nil || len(rest) > 0 {
		return "", errors.New("the certificate's subject cannot be read")
	}
	var b strings.Builder
	for _, rdn := range rdns {
		for i, attr := range rdn {
			separator := "/"
			if i > 0 {
				separator = "+"
			}
			fmt.Fprintf(&b, "%s%s=", separator, attributeName(attr.Type.String()))
			escape(&b, string(attr.Value.Bytes))
		}
	}
	if b.Len() == 0 || b.Len() > maxSubject {
		return "", fmt.Errorf("the certificate's subject has %d bytes, want 1 to %d", b.Len(), maxSubject)
	}
	return b.String(), nil
}

func escape(b *strings.Builder, value string) {
	for i := range len(value) {
		switch c := value[i]; {
		case c == '/' || c == '+':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(b, `\x%02X`, c)
		default:
			b.WriteByte(c)
		}
	}
}

// attributeName is the short name of an attribute type, its number if it has
// none.
func attributeName(oid string) string {
	switch oid {
	case "2.5.4.3":
		return "CN"
	case "2.5.4.4":
		return "SN"
	case "2.5.4.5":
		return "serialNumber"
	case "2.5.4.6":
		return "C"
	case "2.5.4.7":
		return "L"
	case "2.5.4.8":
		return "ST"
	case "2.5.4.9":
		return "street"
	case "2.5.4.10":
		return "O"
	case "2.5.4.11":
		return "OU"
	case "2.5.4.12":
		return "title"
	case "2.5.4.13":
		return "description"
	case "2.5.4.15":
		return "businessCategory"
	case "2.5.4.20":
		return "telephoneNumber"
	case "2.5.4.17":
		return "postalCode"
	case "2.5.4.41":
		return "name"
	case "2.5.4.42":
		return "GN"
	case "2.5.4.43":
		return "initials"
	case "2.5.4.44":
		return "generationQualifier"
	case "2.5.4.46":
		return "dnQualifier"
	case "2.5.4.51":
		return "houseIdentifier"
	case "2.5.4.65":
		return "pseudonym"
	case "2.5.4.97":
		return "organizationIdentifier"
	case "1.2.840.113549.1.9.1":
		return "emailAddress"
	case "1.2.840.113549.1.9.2":
		return "unstructuredName"
	case "1.3.6.1.4.1.311.60.2.1.1":
		return "jurisdictionL"
	case "1.3.6.1.4.1.311.60.2.1.2":
		return "jurisdictionST"
	case "1.3.6.1.4.1.311.60.2.1.3":
		return "jurisdictionC"
	case "0.9.2342.19200300.100.1.1":
		return "UID"
	case "0.9.2342.19200300.100.1.25":
		return "DC"
	}
	return oid
}
