// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

func FuzzParseToken(f *testing.F) {
	f.Add("eyJhbGciOiJIUzI1NiIsImtpZCI6IlBPT0wifQ.eyJpYXQiOjE3OTUxODgyMjUsImlzcyI6IndpcmV2LnRlc3QiLCJqdGkiOiI0YmJjODkxMzY0YjlhMzJkNTA5MDM4OTgwNWM5MzExNCIsInNjb3BlIjoiY29uZG9yOlwvQURWRVJUSVNFX1NUQVJURCBjb25kb3I6XC9SRUFEIiwic3ViIjoiY29uZG9yQHdpcmV2LnRlc3QifQ.Cv3ix26tPnCzbNvlRYmXaMEgrdUhY3vbZTjiM2DoK0c")
	f.Add("e30.e30.")
	f.Add("..")
	f.Add(signedPart(poolHeader, `{"exp":1e9,"iat":-1,"sub":"a@b","cap":null,"x":[{}],"scope":"condor:/READ x"}`) + ".AA")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			if len(text) > 40 && strings.Contains(err.Error(), text) {
				t.Error("the error quotes the token")
			}
			return
		}
		if string(token.Text()) != text && !strings.ContainsAny(text[strings.LastIndexByte(text, '.'):], "_-") {
			// Only unused bits of the last character may differ.
			if again, err := ParseToken(string(token.Text())); err != nil || !again.signature.open().Equal(token.signature.open()) {
				t.Errorf("%q became %q", text, string(token.Text()))
			}
		}
		_ = Rules{}.Check(token.Claims, noon())
		_, _ = token.Claims.ad()
	})
}

func FuzzKeyFile(f *testing.F) {
	f.Add([]byte("secret"))
	f.Add([]byte{0xDE, 0xAD, 0xBE, 0xEF})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		if !bytes.Equal(Scramble(Scramble(file)), file) {
			t.Error("scrambling twice is not nothing")
		}
		if p, err := PoolPassword(file); err == nil && (len(p) == 0 || bytes.IndexByte(p, 0) >= 0) {
			t.Errorf("password of %d bytes with NUL", len(p))
		}
		for _, id := range []string{PoolKey, "x"} {
			if k, err := NewSigningKey(id, file); (err == nil) != (len(file) > 0) || err == nil && len(k.key.open()) != 32 {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}

// FuzzMessages throws any message at each decoder, and any conversation at
// both sides of each method.
func FuzzMessages(f *testing.F) {
	v := cedartest.LoadDir(f, vectors)
	for _, vector := range v {
		for _, c := range vector.Connections {
			for _, m := range c.Messages {
				if strings.HasPrefix(m.Note, "AKEP2") || strings.HasPrefix(m.Note, "FS:") {
					f.Add(uint16(0), []byte(m.Plaintext))
				}
			}
		}
	}
	f.Add(uint16(SSL), []byte("\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x05hello"))
	f.Add(uint16(ClaimToBe), []byte("\x00\x00\x00\x00\x00\x00\x00\x01alice\x00"))
	client, server, _ := sslPair(f)
	f.Fuzz(func(t *testing.T, method uint16, message []byte) {
		if len(message) == 0 || len(message) > 8192 {
			return
		}
		for _, decode := range []func(c *cedar.Conn) error{
			func(c *cedar.Conn) error { _, err := readFirst(c, Token); return err },
			func(c *cedar.Conn) error { _, err := readFirst(c, Password); return err },
			func(c *cedar.Conn) error { _, err := readSecond(c); return err },
			func(c *cedar.Conn) error { _, err := readThird(c); return err },
		} {
			_ = decode(cedartest.Reader(t, message, false))
		}
		m := Method(method)
		if !m.Supported() {
			m = Token
		}
		cp, sp := ends()
		for _, side := range []func(c *cedar.Conn) error{
			func(c *cedar.Conn) error {
				_, err := client.Authenticate(context.Background(), c, cp, []Method{m})
				return err
			},
			func(c *cedar.Conn) error {
				_, err := server.Authenticate(context.Background(), c, sp, []Method{m})
				return err
			},
		} {
			a, b := cedartest.Pipe()
			peer := cedar.NewConn(b, cedar.Limits{})
			peer.PutInt(int64(m)) // mask or choice
			_ = peer.EndMessage()
			for range 3 {
				peer.PutBytes(message)
				_ = peer.EndMessage()
			}
			err := side(cedar.NewConn(&halfClosed{Conn: a, end: b}, cedar.Limits{Timeout: 5 * time.Second}))
			if err == nil && (m == Token || m == Password || m == SSL) {
				t.Errorf("%v succeeded with garbage", m)
			}
		}
	})
}

func FuzzSubjectName(f *testing.F) {
	f.Add([]byte{0x30, 0})
	f.Add([]byte("\x30\x0f\x31\x0d\x30\x0b\x06\x03\x55\x04\x03\x0c\x04a/b+"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		name, err := subjectName(&x509.Certificate{RawSubject: raw})
		if err != nil {
			return
		}
		if len(name) > maxSubject || name[0] != '/' || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q", name)
		}
	})
}

func FuzzHostMatches(f *testing.F) {
	f.Add("*.pool.test", "ep.pool.test")
	f.Add("ep*", "ep")
	f.Add("a..b", "a.b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if hostMatches(pattern, name) && !strings.Contains(pattern, "*") && !strings.EqualFold(squeeze(pattern), squeeze(name)) {
			t.Errorf("%q matches %q", pattern, name)
		}
	})
}

func squeeze(s string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '.' }), "."))
}

// heard copies what is written.
type heard struct {
	net.Conn
	wrote bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.wrote.Write(b)
	return h.Conn.Write(b)
}

// FuzzSSLRounds plays either side of the rounds of SSL from bytes. The seeds are
// what the two sides say to each other, which is good once: whoever plays it
// again has not the other's key.
func FuzzSSLRounds(f *testing.F) {
	client, server, _ := sslPair(f)
	cp, _ := ends()
	x, y := cedartest.Pipe()
	a, b := &heard{Conn: x}, &heard{Conn: y}
	done := make(chan error, 1)
	go func() {
		_, _, err := server.sslServer(f.Context(), cedar.NewConn(b, cedar.Limits{}))
		done <- err
	}()
	if _, key, err := client.sslClient(f.Context(), cedar.NewConn(a, cedar.Limits{}), cp); err != nil || len(key) != sslKeySize {
		f.Fatal(len(key), err)
	}
	if err := <-done; err != nil {
		f.Fatal(err)
	}
	for _, said := range [][]byte{a.wrote.Bytes(), b.wrote.Bytes()} {
		f.Add(said, true)
		f.Add(said, false)
		f.Add(said[:len(said)/2], true)
	}
	f.Fuzz(func(t *testing.T, said []byte, asClient bool) {
		mine, yours := cedartest.Pipe()
		_, _ = yours.Write(said)
		conn := cedar.NewConn(&halfClosed{Conn: mine, end: yours}, cedar.Limits{Timeout: 5 * time.Second})
		var id Identity
		var key Secret
		var err error
		if asClient {
			id, key, err = client.sslClient(context.Background(), conn, cp)
		} else {
			id, key, err = server.sslServer(context.Background(), conn)
		}
		if err == nil || key != nil || id.Method != 0 {
			t.Errorf("%q passes for %v with a key of %d bytes, %v", said, id, len(key), err)
		}
	})
}
