// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
)

// mailbox is a socket for datagrams that keeps what is sent.
type mailbox struct {
	net.Conn
	remote string
	sent   [][]byte
	err    error // of the next datagram
}

func (m *mailbox) RemoteAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(m.remote))
}
func (m *mailbox) LocalAddr() net.Addr              { return m.RemoteAddr() }
func (m *mailbox) SetWriteDeadline(time.Time) error { return nil }
func (m *mailbox) Close() error                     { return nil }

func (m *mailbox) Write(b []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	m.sent = append(m.sent, bytes.Clone(b))
	return len(b), nil
}

// take returns the message that was sent, whole, and in how many datagrams.
func (m *mailbox) take(t *testing.T) (cedar.Datagram, int) {
	t.Helper()
	var a cedar.Assembler
	n := len(m.sent)
	for _, b := range m.sent {
		d, err := cedar.ParseDatagram(b)
		if err != nil {
			t.Fatal(err)
		}
		whole, ok, err := a.Add(time.Unix(1, 0), netip.MustParseAddrPort("10.9.9.9:5"), d)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			m.sent = nil
			return whole, n
		}
	}
	t.Fatalf("%d datagrams are no message", n)
	return cedar.Datagram{}, 0
}

// sealed adds the digest that HTCondor has in its protocol, with the key of the
// session that a message is encrypted under; one in clear stays as it is.
func (w *world) sealed(m cedar.Datagram) cedar.Datagram {
	w.t.Helper()
	if m.KeyID == "" {
		return m
	}
	id, _, _ := strings.Cut(m.KeyID, ",")
	s, ok := w.server.Sessions.Get(id)
	if !ok {
		w.t.Fatalf("the server has no session %q", id)
	}
	m.Sign(s.Key, m.KeyID)
	return m
}

func copied(m cedar.Datagram) cedar.Datagram {
	m.Payload = bytes.Clone(m.Payload)
	return m
}

var postAddress = must(cedar.ParseSinful("<10.0.0.1:9618>"))

func postWorld(t *testing.T, serverConfig, clientConfig string) (*world, *mailbox) {
	t.Helper()
	w := newWorld(t, serverConfig, clientConfig)
	box := &mailbox{remote: "10.0.0.1:9618"}
	w.client.Post = func(context.Context, cedar.Sinful) (net.Conn, error) { return box, nil }
	return w, box
}

func (w *world) datagram(m cedar.Datagram) (*Request, *cedar.Conn, error) {
	return w.server.Datagram(w.t.Context(), w.from, m)
}

// payload is what the commands of these tests carry.
func payload(c *cedar.Conn) {
	c.PutSecret("a secret")
	c.PutString(strings.Repeat("x", 3000))
}

const guarded = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_DEFAULT_INTEGRITY = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD\n"

// A command goes under a session that was made over TCP, encrypted, in as many
// datagrams as it takes, and arrives as that of its sender, once.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, server, client string
		datagrams            int
		hidden               bool
		user                 string
	}{
		{"password", guarded + "ALLOW_ADMINISTRATOR = *\n", guarded, 4, true, "condor@password"},
		{"3DES", guarded + "ALLOW_ADMINISTRATOR = *\nFIPS = true\n", guarded + "FIPS = true\n", 4, true, "condor@password"},
		{"large datagrams", guarded + "ALLOW_ADMINISTRATOR = *\n", guarded + "UDP_NETWORK_FRAGMENT_SIZE = 5000\n", 1, true, "condor@password"},
		{"small datagrams", guarded + "ALLOW_ADMINISTRATOR = *\n", guarded + "UDP_NETWORK_FRAGMENT_SIZE = 200\n", 21, true, "condor@password"},
		{"in clear", "ALLOW_ADMINISTRATOR = *\n", "SEC_DEFAULT_NEGOTIATION = NEVER\n", 4, false, Unauthenticated},
	} {
		w, box := postWorld(t, tt.server, tt.client)
		d, err := w.client.Datagrams(t.Context(), postAddress, cmdOff)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if d.Encrypted() != tt.hidden {
			t.Errorf("%s: hidden %v", tt.name, d.Encrypted())
		}
		var before cedar.Datagram
		for range 3 {
			if err := d.Send(t.Context(), cmdOff, payload); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			m, n := box.take(t)
			if n != tt.datagrams {
				t.Errorf("%s: %d datagrams, want %d", tt.name, n, tt.datagrams)
			}
			if bytes.Contains(m.Payload, []byte("a secret")) == tt.hidden || tt.hidden != strings.HasSuffix(m.KeyID, ",<10.9.9.9:9618>") {
				t.Errorf("%s: the secret can be read, or the key id is %q", tt.name, m.KeyID)
			}
			if bytes.Equal(m.Payload, before.Payload) && tt.hidden {
				t.Errorf("%s: two messages are the same", tt.name)
			}
			before = copied(m)
			if _, _, err := w.datagram(copied(m)); tt.hidden && (!errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), "carries no digest")) {
				t.Errorf("%s, without a digest: %v", tt.name, err)
			}
			m = w.sealed(m)
			r, conn, err := w.datagram(copied(m))
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if r.Command != cmdOff || r.Peer.User != tt.user || r.Bare == tt.hidden || (r.Session != nil) != tt.hidden {
				t.Errorf("%s: %+v", tt.name, r)
			}
			secret, err1 := conn.Secret()
			text, err2 := conn.String()
			if err := errors.Join(err1, err2, conn.EndOfMessage()); err != nil || secret != "a secret" || len(text) != 3000 {
				t.Errorf("%s: %d bytes, %v", tt.name, len(text), err)
			}
			_, _, err = w.datagram(copied(m))
			if again := errs.Is(err, errs.Denied); again != tt.hidden {
				t.Errorf("%s: the same once more: %v", tt.name, err)
			}
		}
		if want := map[bool]int{true: 1, false: 0}[tt.hidden]; w.dials != want {
			t.Errorf("%s: %d connections, want %d", tt.name, w.dials, want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A message of which anything was changed acts for nobody: it cannot be read,
// or is taken for a copy.
func TestChangedDatagrams(t *testing.T) {
	t.Parallel()
	w, box := postWorld(t, guarded+"ALLOW_ADMINISTRATOR = *\nSEC_READ_AUTHENTICATION = REQUIRED\n", guarded)
	d, err := w.client.Datagrams(t.Context(), postAddress, cmdOff)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Send(t.Context(), cmdOff, func(*cedar.Conn) {}); err != nil {
		t.Fatal(err)
	}
	m, _ := box.take(t)
	m = w.sealed(m)
	for i := range m.MAC {
		c := copied(m)
		c.MAC[i] ^= 1
		if r, _, err := w.datagram(c); !errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), "digest of the message is wrong") {
			t.Fatalf("byte %d of the digest changed: %+v, %v", i, r, err)
		}
	}
	if _, _, err := w.datagram(copied(m)); err != nil {
		t.Fatal(err)
	}
	for i := range m.Payload {
		for _, bit := range []byte{1, 0x10, 0x80} {
			c := copied(m)
			c.Payload[i] ^= bit
			if r, _, err := w.datagram(c); err == nil {
				t.Fatalf("byte %d changed by %#x: %+v", i, bit, r)
			}
		}
	}
	for n := 8; n < len(m.Payload); n += 7 {
		c := copied(m)
		c.Payload = c.Payload[:n]
		if r, _, err := w.datagram(c); err == nil {
			t.Fatalf("cut at %d: %+v", n, r)
		}
	}
}

// A message that is encrypted and not sealed is read, and is that of nobody,
// whatever it says: who has recorded messages under a session can put together one
// that nobody sent.
func TestUnsealedDatagrams(t *testing.T) {
	t.Parallel()
	w, box := postWorld(t, "SEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD\nALLOW_ADMINISTRATOR = condor@password/*\nALLOW_READ = *\n", guarded)
	d, err := w.client.Datagrams(t.Context(), postAddress, cmdOff)
	if err != nil {
		t.Fatal(err)
	}
	sent := func(command int) cedar.Datagram {
		t.Helper()
		if err := d.Send(t.Context(), command, payload); err != nil {
			t.Fatal(err)
		}
		m, _ := box.take(t)
		return m
	}
	if r, _, err := w.datagram(w.sealed(sent(cmdOff))); err != nil || r.Peer.User != "condor@password" || r.Session == nil {
		t.Errorf("sealed: %+v, %v", r, err)
	}
	if r, _, err := w.datagram(sent(cmdOff)); !errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), "carries no digest") || !strings.Contains(err.Error(), "over TCP") {
		t.Errorf("not sealed: %+v, %v", r, err)
	}
	for range 2 { // what changes nothing may come twice
		if r, conn, err := w.datagram(sent(cmdQuery)); err != nil || r.Peer.User != Unauthenticated || r.Session != nil || !r.Bare {
			t.Errorf("not sealed, for everybody: %+v, %v", r, err)
		} else if secret, err := conn.Secret(); secret != "a secret" || err != nil {
			t.Errorf("not sealed, for everybody, it cannot be read: %v", err)
		}
	}
	// Blocks of one message behind the beginning of another make no third one: the
	// last block can be chosen at will by who knows what it said.
	forged := copied(sent(cmdOff))
	forged.Payload[len(forged.Payload)-1] ^= 'x' ^ 'y'
	if r, _, err := w.datagram(forged); err == nil {
		t.Errorf("the last byte changed: %+v", r)
	}
	// What was sealed and then lost its digest acts no more than what never had one.
	stripped := w.sealed(sent(cmdOff))
	stripped.HashKeyID, stripped.MAC = "", [16]byte{}
	if r, _, err := w.datagram(stripped); !errs.Is(err, errs.Denied) {
		t.Errorf("stripped: %+v, %v", r, err)
	}
}

// Who only names a session, or has another key, is nobody.
func TestForgedDatagrams(t *testing.T) {
	t.Parallel()
	w, _ := postWorld(t, "ALLOW_ADMINISTRATOR = condor@password/*\nALLOW_READ = *\n", guarded)
	s := &Session{ID: "known", Key: DeriveKey([]byte("k")), Negotiated: true, Encryption: true, Ciphers: []cedar.Cipher{cedar.Blowfish}, Peer: Peer{User: "condor@password", Method: "PASSWORD"}}
	open := &Session{ID: "open", Negotiated: true, Peer: Peer{User: "condor@password", Method: "PASSWORD"}}
	aes := &Session{ID: "aes", Key: DeriveKey([]byte("k")), Negotiated: true, Encryption: true}
	for _, s := range []*Session{s, open, aes} {
		if err := w.server.Sessions.Add(s, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	_, key, err := s.cipher(false)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	make := func(form cedar.Form, first int64, change func(ad *literals)) cedar.Datagram {
		n++
		var ad literals
		ad.set("Command", int64(cmdOff))
		ad.set("Nonce", must(nonce(bytes.NewReader(bytes.Repeat([]byte{byte(n)}, 33)))))
		ad.set("Sid", "known")
		ad.set("UseSession", "YES")
		if change != nil {
			change(&ad)
		}
		b := must(cedar.WriteForm(form, "", func(c *cedar.Conn) {
			c.PutInt(first)
			if first == command.DCAuthenticate {
				put(c, ad)
			}
		}))
		return cedar.Datagram{Payload: b}
	}
	hidden := func(m cedar.Datagram, key Key, id string) cedar.Datagram {
		if err := m.Encrypt(cedar.Blowfish, key, id); err != nil {
			t.Fatal(err)
		}
		return m
	}
	sealed := func(m cedar.Datagram, key Key, id string) cedar.Datagram {
		m.Sign(key, id)
		return m
	}
	is := func(name string, value any) func(*literals) {
		return func(ad *literals) {
			for i := range *ad {
				if (*ad)[i].name == name {
					(*ad)[i].value = value
					return
				}
			}
			ad.set(name, value)
		}
	}
	read := is("Command", int64(cmdQuery))
	for _, tt := range []struct {
		name string
		m    cedar.Datagram
		kind errs.Kind // errs.Other: it is allowed
		user string
	}{
		{"encrypted alone", hidden(make(cedar.Counted, command.DCAuthenticate, nil), key, "known"), errs.Denied, ""},
		{"encrypted alone, for everybody", hidden(make(cedar.Counted, command.DCAuthenticate, read), key, "known"), errs.Other, Unauthenticated},
		{"sealed in clear", sealed(make(cedar.Plain, command.DCAuthenticate, nil), s.Key, "known"), errs.Other, "condor@password"},
		{"sealed with the shorter key", sealed(make(cedar.Plain, command.DCAuthenticate, nil), key, "known,<10.1.1.1:5>"), errs.Other, "condor@password"},
		{"sealed and encrypted", sealed(hidden(make(cedar.Counted, command.DCAuthenticate, nil), key, "known"), s.Key, "known"), errs.Other, "condor@password"},
		{"wrong seal", sealed(make(cedar.Plain, command.DCAuthenticate, nil), Key("x"), "known"), errs.Denied, ""},
		{"two sessions", sealed(hidden(make(cedar.Counted, command.DCAuthenticate, nil), key, "known"), aes.Key, "aes"), errs.Invalid, ""},
		{"in clear", make(cedar.Plain, command.DCAuthenticate, nil), errs.Denied, ""},
		{"in clear, for everybody", make(cedar.Plain, command.DCAuthenticate, read), errs.Other, Unauthenticated},
		{"a session without a key", make(cedar.Plain, command.DCAuthenticate, is("Sid", "open")), errs.Denied, ""},
		{"a key that it has not", hidden(make(cedar.Counted, command.DCAuthenticate, nil), key, "open"), errs.Invalid, ""},
		{"a session for streams", hidden(make(cedar.Counted, command.DCAuthenticate, nil), key, "aes"), errs.Unsupported, ""},
		{"another key", hidden(make(cedar.Counted, command.DCAuthenticate, nil), Key("another key of 24 bytes."), "known"), errs.Denied, ""},
		{"another session inside", hidden(make(cedar.Counted, command.DCAuthenticate, is("Sid", "open")), key, "known"), errs.Invalid, ""},
		{"unknown", hidden(make(cedar.Counted, command.DCAuthenticate, nil), key, "other"), errs.NotFound, ""},
		{"unknown, in clear", make(cedar.Plain, command.DCAuthenticate, is("Sid", "other")), errs.NotFound, ""},
		{"no nonce", sealed(hidden(make(cedar.Counted, command.DCAuthenticate, is("Nonce", "")), key, "known"), s.Key, "known"), errs.Denied, ""},
		{"sealed, another session inside", sealed(make(cedar.Plain, command.DCAuthenticate, is("Sid", "open")), s.Key, "known"), errs.Invalid, ""},
		{"a cookie", hidden(make(cedar.Counted, command.DCAuthenticate, is("Cookie", "x")), key, "known"), errs.Denied, ""},
		{"a new session", hidden(make(cedar.Counted, command.DCAuthenticate, is("UseSession", "NO")), key, "known"), errs.Unsupported, ""},
		{"security alone", hidden(make(cedar.Counted, command.DCAuthenticate, is("Command", int64(command.DCSecQuery))), key, "known"), errs.Unsupported, ""},
		{"no such command", hidden(make(cedar.Counted, command.DCAuthenticate, is("Command", int64(4711))), key, "known"), errs.NotFound, ""},
		{"no command", hidden(make(cedar.Counted, command.DCAuthenticate, is("Command", "x")), key, "known"), errs.Invalid, ""},
		{"a bare one, encrypted", hidden(make(cedar.Counted, cmdOff, nil), key, "known"), errs.Denied, ""},
		{"a bare one", make(cedar.Plain, cmdOff, nil), errs.Denied, ""},
		{"a bare one for everybody", make(cedar.Plain, cmdQuery, nil), errs.Other, Unauthenticated},
		{"cut", cedar.Datagram{Payload: []byte("1234567")}, errs.Invalid, ""},
	} {
		r, _, err := w.datagram(tt.m)
		switch {
		case tt.kind == errs.Other && err != nil, tt.kind != errs.Other && !errs.Is(err, tt.kind):
			t.Errorf("%s: %v, want %v", tt.name, err, tt.kind)
		case err == nil && r.Peer.User != tt.user:
			t.Errorf("%s: %s, want %s", tt.name, r.Peer.User, tt.user)
		}
	}
}

// Where no datagram can be sent, that is said, and nothing is sent.
func TestNoDatagrams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, server, client, to, want string
	}{
		{"not encrypted", "ALLOW_ADMINISTRATOR = *\n", "SEC_DEFAULT_AUTHENTICATION = NEVER\n", "", "not to encrypt"},
		{"AES alone here", guarded, guarded + "SEC_CLIENT_CRYPTO_METHODS = AES\n", "", "BLOWFISH"},
		{"AES alone there", guarded + "SEC_DEFAULT_CRYPTO_METHODS = AES\n", guarded, "", "BLOWFISH"},
		{"no 3DES there", guarded + "SEC_DEFAULT_CRYPTO_METHODS = AES,BLOWFISH\n", guarded + "FIPS = true\n", "", "3DES"},
		{"it says so", guarded, guarded, "<10.0.0.1:9618?noUDP>", "takes no datagrams"},
		{"shared port", guarded, guarded, "<10.0.0.1:9618?sock=collector>", "takes no datagrams"},
		{"broker", guarded, guarded, "<10.0.0.1:9618?CCBID=10.0.0.2:9618#3>", "takes no datagrams"},
	} {
		w, box := postWorld(t, tt.server+"ALLOW_ADMINISTRATOR = *\n", tt.client)
		to := postAddress
		if tt.to != "" {
			to = must(cedar.ParseSinful(tt.to))
		}
		_, err := w.client.Datagrams(t.Context(), to, cmdOff)
		if !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), tt.want) || len(box.sent) > 0 {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A server that would take an old cipher for the stream as well gets no
// datagrams, and a stream with AES.
func TestOldCipherForStreams(t *testing.T) {
	t.Parallel()
	w, _ := postWorld(t, guarded+"ALLOW_ADMINISTRATOR = *\n", guarded)
	offered := ""
	w.client.arrange = func(ad *literals) { offered = ad.str("CryptoMethods") }
	w.server.arrange = func(ad *literals) {
		for i := range *ad {
			if (*ad)[i].name == "CryptoMethods" && offered != "AES" {
				(*ad)[i].value = "3DES"
			}
		}
	}
	if _, err := w.client.Datagrams(t.Context(), postAddress, cmdOff); !errs.Is(err, errs.Unsupported) {
		t.Error(err)
	}
	<-w.requests
	if conn, _, _, err := w.open(cmdOff, Options{}); err != nil || !conn.Encrypted() {
		t.Error(err)
	}
}

// A stream to the same daemon may take up the session of datagrams, but
// datagrams make one of their own.
func TestDatagramsBesideStreams(t *testing.T) {
	t.Parallel()
	w, box := postWorld(t, guarded+"ALLOW_ADMINISTRATOR = *\n", guarded)
	conn, stream, err := w.client.Command(t.Context(), postAddress, cmdOff, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	d, err := w.client.Datagrams(t.Context(), postAddress, cmdOff)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Send(t.Context(), cmdOff, payload); err != nil {
		t.Fatal(err)
	}
	m, _ := box.take(t)
	if id, _, _ := strings.Cut(m.KeyID, ","); id == stream.ID || w.dials != 2 {
		t.Errorf("session %q after %d connections", id, w.dials)
	}
	// It is short, and then made anew.
	w.clock.Advance(datagramSession + time.Second)
	if err := d.Send(t.Context(), cmdOff, payload); err != nil {
		t.Fatal(err)
	}
	next, _ := box.take(t)
	if next.KeyID == m.KeyID || w.dials != 3 {
		t.Errorf("session %q again, %d connections", next.KeyID, w.dials)
	}
	if _, _, err := w.datagram(w.sealed(next)); err != nil {
		t.Error(err)
	}
	// Who is told that nobody listens begins anew as well.
	box.err = syscall.ECONNREFUSED
	if err := d.Send(t.Context(), cmdOff, payload); !errs.Is(err, errs.Transient) {
		t.Error(err)
	}
	box.err = nil
	if err := d.Send(t.Context(), cmdOff, payload); err != nil || w.dials != 4 {
		t.Errorf("%d connections, %v", w.dials, err)
	}
}

// Whoever has a claim id gives commands under it, without TCP.
func TestDatagramsOfClaims(t *testing.T) {
	t.Parallel()
	for _, fips := range []string{"", "FIPS = true\n"} {
		w, box := postWorld(t, fips, fips)
		id := claim.NewID("<10.0.0.1:9618>", 1795188226, 1, claim.Secret(DefaultInfo("25.14.0").String()+strings.Repeat("ab", 32)))
		if _, err := w.server.Sessions.AddClaim(id); err != nil {
			t.Fatal(err)
		}
		c := must(ParseCapabilityID(id.Wire()))
		c.Info.ValidCommands = []int{cmdClaim}
		if _, err := w.client.Sessions.addNonNegotiated("test", c, Peer{User: ExecuteSide, Method: MethodMatch}, postAddress.String(), 0); err != nil {
			t.Fatal(err)
		}
		d, err := w.client.Datagrams(t.Context(), postAddress, cmdClaim)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Send(t.Context(), cmdClaim, payload); err != nil {
			t.Fatal(err)
		}
		m, _ := box.take(t)
		r, _, err := w.datagram(w.sealed(m))
		if err != nil || r.Peer.User != SubmitSide || w.dials != 0 {
			t.Errorf("%+v, %v, %d connections", r, err, w.dials)
		}
	}
}

// Whatever arrives, who has not the key of a session does not act under it.
func FuzzDatagram(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x05"))
	f.Add([]byte("CRAP\x00\x02\x00\x00\x00\x05known0123456789abcdef"))
	f.Add([]byte("CRAP\x00\x03\x00\x05\x00\x05known0123456789abcdefknown0123456789abcdef"))
	var ad literals
	ad.set("Command", int64(cmdOff))
	ad.set("Nonce", strings.Repeat("A", 44))
	ad.set("Sid", "known")
	ad.set("UseSession", "YES")
	b := must(cedar.WriteMessage(func(c *cedar.Conn) {
		c.PutInt(command.DCAuthenticate)
		put(c, ad)
	}))
	f.Add(b)
	f.Add(append([]byte("CRAP\x00\x01\x00\x05\x00\x00known0123456789abcdef"), b...))
	w := newWorld(f, "ALLOW_ADMINISTRATOR = *\nALLOW_READ = *\n", "")
	s := &Session{ID: "known", Key: DeriveKey([]byte("k")), Negotiated: true, Encryption: true, Ciphers: []cedar.Cipher{cedar.Blowfish}, Peer: Peer{User: "condor@password", Method: "PASSWORD"}}
	if err := w.server.Sessions.Add(s, 0); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := cedar.ParseDatagram(bytes.Clone(b))
		if err != nil || d.Fragment {
			return
		}
		r, conn, err := w.server.Datagram(t.Context(), w.from, d)
		if err != nil {
			return
		}
		if r.Session != nil || r.Peer.User != Unauthenticated || conn == nil {
			t.Fatalf("it acts as %s under %v", r.Peer.User, r.Session)
		}
		_, _ = conn.String()
		_ = conn.EndOfMessage()
	})
}

// The datagrams that are remembered of a session are bounded.
func TestDatagramMarks(t *testing.T) {
	t.Parallel()
	w, _ := postWorld(t, "", "")
	if err := w.server.Sessions.Add(&Session{ID: "s", Negotiated: true}, time.Hour); err != nil {
		t.Fatal(err)
	}
	name := func(i int) string {
		return strings.Repeat("m", i%7) + string(rune('a'+i%26)) + time.Duration(i).String()
	}
	for i := range maxDatagramMarks + 10 {
		if !w.server.Sessions.freshMarks("s", name(i)) {
			t.Fatalf("mark %d is known", i)
		}
	}
	for _, i := range []int{10, 2000, maxDatagramMarks + 9} {
		if w.server.Sessions.freshMarks("s", name(i)) {
			t.Errorf("mark %d is forgotten", i)
		}
	}
	if e := w.server.Sessions.live("s"); len(e.marks) != maxDatagramMarks || len(e.marked) != maxDatagramMarks {
		t.Errorf("%d marks are remembered, in %d places", len(e.marks), len(e.marked))
	}
	if w.server.Sessions.freshMarks("other", "x") {
		t.Error("a session that is not there has marks")
	}
}
