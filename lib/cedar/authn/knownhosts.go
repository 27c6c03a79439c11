// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	maxKnownHosts = 1 << 20  // bytes of the file
	maxKnownLine  = 64 << 10 // bytes of a line: a certificate and a host
	maxKnownHost  = 255      // bytes of a host name
)

// knownByCA stands for the certificate of a server that an authority vouched
// for.
const knownByCA = "@trusted"

// knownHost is a line of a known_hosts file: what is remembered of a server
// that was met.
type knownHost struct {
	host   string
	denied bool   // it is not trusted: '!' before the host
	method string // SSL
	info   string // a certificate, DER in base64, or knownByCA
}

func (k knownHost) line() string {
	mark := ""
	if k.denied {
		mark = "!"
	}
	return mark + k.host + " " + k.method + " " + k.info + "\n"
}

// parseKnownHosts reads lines "[!]host method information", where more words
// do not count, nor do empty lines and comments with #. One line that is not so
// makes the whole file Invalid, for what stands there decides whom we trust;
// the error names the line.
func parseKnownHosts(name string, text []byte) ([]knownHost, error) {
	var all []knownHost
	number := 0
	bad := func(format string, args ...any) error {
		return errs.E("authn.knownHosts", errs.Invalid, fmt.Sprintf("%s:%d", name, number), fmt.Errorf(format, args...))
	}
	if len(text) > maxKnownHosts {
		return nil, bad("the file is larger than %d bytes", maxKnownHosts)
	}
	for raw := range bytes.Lines(text) {
		number++
		if len(raw) > maxKnownLine {
			return nil, bad("the line is longer than %d bytes", maxKnownLine)
		}
		line := strings.Trim(string(raw), " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, bad("there are control characters in the line")
		}
		words := strings.Fields(line)
		if len(words) < 3 {
			return nil, bad("%d words, want a host, a method and a certificate", len(words))
		}
		host, denied := strings.CutPrefix(words[0], "!")
		if !isHostName(host) {
			return nil, bad("%.64q is no name of a host", host)
		}
		k := knownHost{host: host, denied: denied, method: words[1], info: words[2]}
		if k.method == "SSL" && k.info != knownByCA {
			der, err := base64.StdEncoding.Strict().DecodeString(k.info)
			if err != nil || len(der) == 0 {
				return nil, bad("the certificate of %s is no base64", host)
			}
		}
		all = append(all, k)
	}
	return all, nil
}

// isHostName reports whether s can stand in a line as the name of a host.
func isHostName(s string) bool {
	return s != "" && len(s) <= maxKnownHost && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:", r)
	})
}

// knownHostsFile is where the servers stand that were met: SEC_KNOWN_HOSTS, the
// user's own, or that of the machine.
func (c *Client) knownHostsFile() string {
	switch {
	case c.KnownHosts != "":
		return c.KnownHosts
	case c.Home != "":
		return filepath.Join(c.Home, ".condor", "known_hosts")
	}
	return c.SystemKnownHosts
}

// readKnownHosts returns what the file says. One that is not there says
// nothing.
func readKnownHosts(name string) ([]knownHost, error) {
	const op = "authn.knownHosts"
	info, err := os.Stat(name) // to open a pipe is to wait
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no plain file")
	}
	if err != nil {
		return nil, errs.E(op, errs.Broken, name, err)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, errs.E(op, errs.Broken, name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKnownHosts+1))
	if err != nil {
		return nil, errs.E(op, errs.Broken, name, err)
	}
	return parseKnownHosts(name, text)
}

// remember adds k to the file unless it stands there. The file does not grow
// beyond what is read of it: a server that shows a new certificate each time
// cannot fill the disk.
func remember(name string, known []knownHost, k knownHost) error {
	const op = "authn.remember"
	for _, old := range known {
		if old == k {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return errs.E(op, errs.Broken, name, err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return errs.E(op, errs.Broken, name, err)
	}
	line := k.line()
	info, err := f.Stat()
	switch {
	case err != nil:
	case len(line) > maxKnownLine || info.Size()+int64(len(line)) > maxKnownHosts:
		err = errors.New("the file is full")
	default:
		_, err = f.WriteString(line)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errs.E(op, errs.Broken, name, err)
	}
	return nil
}

// unknownServer decides about the certificate of one server that no authority
// we know vouches for.
type unknownServer struct {
	c     *Client
	alias string // the name by which we know the server
	known bool   // it was not an authority that vouched for it
}

// verify verifies the server's chain. If only an authority is lacking, the
// known_hosts file decides: the certificate that stands there for the host is
// trusted as an authority would be, another one is refused and noted, and a host
// that does not stand there is noted, and trusted if BOOTSTRAP_SSL_SERVER_TRUST
// says so. No question is asked: this is a daemon.
func (i *unknownServer) verify(chain []*x509.Certificate, roots *x509.CertPool, verify func(*x509.CertPool) error) error {
	err := verify(roots)
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) || !isHostName(i.alias) {
		return err
	}
	name := i.c.knownHostsFile()
	if name == "" {
		return err
	}
	known, kerr := readKnownHosts(name)
	if kerr != nil {
		return errors.Join(err, kerr)
	}
	top := highest(chain, (*x509.Certificate).CheckSignatureFrom)
	shown := knownHost{host: i.alias, method: "SSL", info: base64.StdEncoding.EncodeToString(top.Raw)}
	trusted := false
	if first, ok := firstAbout(known, i.alias); ok {
		switch {
		case first.denied || first.method != "SSL":
			return fmt.Errorf("%w; %s says that %s is not to be trusted", err, name, i.alias)
		case first.info != shown.info:
			shown.denied = true
			return errors.Join(fmt.Errorf("%w; %s has another certificate of %s", err, name, i.alias), remember(name, known, shown))
		}
		trusted = true
	} else {
		trusted, shown.denied = i.c.TrustFirst, !i.c.TrustFirst
		if rerr := remember(name, known, shown); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	if !trusted {
		return fmt.Errorf("%w; %s is in %s now, to be trusted take the '!' away there (BOOTSTRAP_SSL_SERVER_TRUST is off)", err, i.alias, name)
	}
	i.known = true
	with := x509.NewCertPool()
	if roots != nil {
		with = roots.Clone()
	}
	with.AddCert(top)
	return verify(with)
}

// vouched notes a server that an authority vouched for. That it cannot be noted
// matters to nobody.
func (i *unknownServer) vouched() {
	name := i.c.knownHostsFile()
	if i.known || name == "" || !isHostName(i.alias) {
		return
	}
	if known, err := readKnownHosts(name); err == nil {
		_ = remember(name, known, knownHost{host: i.alias, method: "SSL", info: knownByCA})
	}
}

// firstAbout is the first line about a host; it alone counts.
func firstAbout(all []knownHost, host string) (knownHost, bool) {
	for _, k := range all {
		if k.host == host {
			return k, true
		}
	}
	return knownHost{}, false
}

// highest is the certificate of a chain that nothing else in it vouches for,
// going up from the first. It comes from a server that no authority has vouched for
// yet: signed, which says whether a certificate has the signature of another,
// is asked about each but once.
func highest(chain []*x509.Certificate, signed func(cert, by *x509.Certificate) error) *x509.Certificate {
	top := chain[0]
	others := slices.Clone(chain[1:])
	for range chain {
		up := top
		others = slices.DeleteFunc(others, func(cert *x509.Certificate) bool {
			if cert.Equal(top) || !bytes.Equal(cert.RawSubject, top.RawIssuer) {
				return false
			}
			if signed(top, cert) == nil {
				up = cert
			}
			return true
		})
		if up == top || bytes.Equal(top.RawIssuer, top.RawSubject) {
			return top
		}
		top = up
	}
	return top
}
