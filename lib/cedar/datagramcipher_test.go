// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

// recorded is what the original sent over UDP.
type recorded struct {
	cipher    cedar.Cipher // "" for none
	key       []byte
	datagrams [][]byte
}

func readRecorded(t *testing.T, name string) recorded {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "datagrams", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		if word == "#" {
			continue
		}
		if word == "cipher" {
			r.cipher = cedar.Cipher(rest)
			continue
		}
		if word == "key" {
			word = rest
		}
		b, err := hex.DecodeString(word)
		if err != nil {
			t.Fatal(err)
		}
		if rest != "" {
			r.key = b
		} else {
			r.datagrams = append(r.datagrams, b)
		}
	}
	return r
}

// What the original sends is read, and what is written of it again is the same
// to the bit, in as many datagrams.
func TestRecordedDatagrams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		fragment  int
		datagrams int
		session   string // in the key id
	}{
		{"bare", 1000, 8, ""},
		{"blowfish", cedar.UDPLoopbackFragment, 2, "vm:"},
		{"fragments", 1000, 11, "vm:"},
		{"3des", cedar.UDPLoopbackFragment, 2, "vm:"},
	} {
		r := readRecorded(t, tt.name)
		if len(r.datagrams) != tt.datagrams {
			t.Errorf("%s: %d datagrams, want %d", tt.name, len(r.datagrams), tt.datagrams)
		}
		var a cedar.Assembler
		var ids []cedar.MessageID // of the messages
		var whole []cedar.Datagram
		for _, b := range r.datagrams {
			d, err := cedar.ParseDatagram(bytes.Clone(b))
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			m, ok, err := a.Add(udpTime, udpSender, d)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if ok {
				whole, ids = append(whole, m), append(ids, d.ID)
			}
		}
		if len(whole) != 2 {
			t.Fatalf("%s: %d messages, want 2", tt.name, len(whole))
		}
		var again [][]byte
		for i, d := range whole {
			if !strings.HasPrefix(d.KeyID, tt.session) || (d.KeyID == "") != (tt.session == "") || d.HashKeyID != "" {
				t.Errorf("%s: key ids %q and %q", tt.name, d.KeyID, d.HashKeyID)
			}
			form, keyID := cedar.Plain, d.KeyID
			if r.cipher != "" {
				form = cedar.Counted
				if err := d.Decrypt(r.cipher, r.key); err != nil {
					t.Fatal(err)
				}
			}
			readUpdate(t, tt.name, i, cedar.FormReader(bytes.Clone(d.Payload), form, cedar.Limits{}))
			d.KeyID = ""
			if r.cipher != "" {
				if err := d.Encrypt(r.cipher, r.key, keyID); err != nil {
					t.Fatal(err)
				}
			}
			parts, err := d.Split(ids[i], tt.fragment)
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, parts...)
		}
		for i := range again {
			if i >= len(r.datagrams) || !bytes.Equal(again[i], r.datagrams[i]) {
				t.Errorf("%s: datagram %d of %d is written differently", tt.name, i, len(again))
			}
		}
	}
}

// readUpdate reads message i of a recording: an update, then an invalidation.
func readUpdate(t *testing.T, name string, i int, c *cedar.Conn) {
	t.Helper()
	command := []int64{0, 13}[i]
	n, err := c.Int()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if n == 60010 { // with the ad of a resumed session
		ad, err := c.Ad(cedar.AdOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if use, _ := ad.EvalString("UseSession", nil); use != "YES" {
			t.Errorf("%s: UseSession is %q", name, use)
		}
		n, _ = ad.EvalInt("Command", nil)
	}
	if n != command {
		t.Errorf("%s: command %d, want %d", name, n, command)
	}
	ad, err := c.Ad(cedar.AdOptions{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if slot, _ := ad.EvalString("Name", nil); slot != "slot1@vm" {
		t.Errorf("%s: ad of %q", name, slot)
	}
	if command == 0 {
		private, err := c.Ad(cedar.AdOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if id, _ := private.EvalString("ClaimId", nil); !strings.Contains(id, `CryptoMethodsList="AES.BLOWFISH.3DES"`) {
			t.Errorf("%s: no claim id in the private ad", name)
		}
	}
	if err := c.EndOfMessage(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// The ciphers do what their authors published, the first block of CFB being
// the cipher itself.
func TestDatagramCipherVectors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cipher           cedar.Cipher
		key, clear, want string
	}{
		// Eric Young's vectors of Blowfish: the keystream of the second block is
		// the encryption of the first ciphertext, of zeros that of zeros.
		{cedar.Blowfish, "0000000000000000", "0000000000000000", "4ef997456198dd78"},
		{cedar.Blowfish, "ffffffffffffffff", "0000000000000000", "f21e9a77b71c49bc"},
		{cedar.Blowfish, "0123456789abcdef", "0000000000000000", "245946885754369a"},
		// His CFB-64, with the first block of his IV made what it is there.
		{cedar.TripleDES, "0101010101010101" + "0101010101010101" + "0101010101010101", "0000000000000000", "8ca64de9c1b123a7"},
	} {
		key, clear, want := unhex(t, tt.key), unhex(t, tt.clear), unhex(t, tt.want)
		d := cedar.Datagram{Payload: bytes.Clone(clear)}
		if err := d.Encrypt(tt.cipher, key, "id"); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(d.Payload, want) {
			t.Errorf("%s %s: %x, want %x", tt.cipher, tt.key, d.Payload, want)
		}
		if err := d.Decrypt(tt.cipher, key); err != nil || !bytes.Equal(d.Payload, clear) {
			t.Errorf("%s: %x %v", tt.cipher, d.Payload, err)
		}
	}
	long := cedar.Datagram{Payload: pattern(1001)}
	short := cedar.Datagram{Payload: pattern(1001)}
	key := []byte("0123456789abcdef") // 3DES repeats it, longer ones are folded
	if err := errsOf(long.Encrypt(cedar.TripleDES, append(bytes.Clone(key), key[:8]...), "id"), short.Encrypt(cedar.TripleDES, key, "id")); err != nil || !bytes.Equal(long.Payload, short.Payload) {
		t.Errorf("a short key is not repeated: %v", err)
	}
	for name, c := range map[string]struct {
		cipher cedar.Cipher
		key    []byte
		kind   errs.Kind
	}{
		"no key": {cedar.Blowfish, nil, errs.Invalid}, "short key": {cedar.Blowfish, key[:3], errs.Invalid},
		"long key": {cedar.Blowfish, make([]byte, 57), errs.Invalid}, "other": {"AES", key, errs.Unsupported},
	} {
		d := cedar.Datagram{Payload: pattern(8)}
		if err := errsOf(d.Encrypt(c.cipher, c.key, "id")); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Decrypt(c.cipher, c.key); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func errsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A digest is of key and payload, and of nothing else.
func TestSealed(t *testing.T) {
	t.Parallel()
	d := cedar.Datagram{Payload: []byte("message digest")}
	if d.Verify(nil) {
		t.Error("a datagram without a digest is right")
	}
	d.Sign(nil, "id") // MD5 alone, as RFC 1321 has it
	if got := hex.EncodeToString(d.MAC[:]); got != "f96b697d7cb7938d525a2f31aaf161d0" {
		t.Error(got)
	}
	d.Sign([]byte("key"), "id")
	if !d.Verify([]byte("key")) || d.Verify([]byte("kez")) {
		t.Error("the key does not count")
	}
	d.Payload[0]++
	if d.Verify([]byte("key")) {
		t.Error("a change is not noticed")
	}
}

// FuzzDatagramMessage reads a datagram as a receiver does; what is whole is written
// and read again.
func FuzzDatagramMessage(f *testing.F) {
	for _, name := range []string{"bare", "blowfish", "fragments"} {
		text, err := os.ReadFile(filepath.Join("testdata", "datagrams", name+".txt"))
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if b, err := hex.DecodeString(strings.TrimSpace(line)); err == nil {
				f.Add(b[:min(len(b), 200)]) // long ones take the fuzzer ages to shorten
			}
		}
	}
	f.Add([]byte("CRAP\x00\x03\x00\x03\x00\x04sid0123456789abcdefsid2payload."))
	first := cedar.Datagram{Payload: pattern(8)} // what is done once does not belong to any input
	if err := first.Encrypt(cedar.Blowfish, []byte("0123456789abcdef"), "session"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := cedar.ParseDatagram(b)
		if err != nil {
			return
		}
		var a cedar.Assembler
		m, ok, err := a.Add(udpTime, udpSender, d)
		if n, held := a.Held(); n > 1 || held > 2*len(b) {
			t.Fatalf("%d messages, %d bytes of %d", n, held, len(b))
		}
		if err != nil || !ok {
			return
		}
		for _, form := range []cedar.Form{cedar.Plain, cedar.Counted} {
			c := cedar.FormReader(bytes.Clone(m.Payload), form, cedar.Limits{})
			if _, err := c.Int(); err == nil {
				if _, err := c.Ad(cedar.AdOptions{Restricted: true}); err == nil {
					_ = c.EndOfMessage()
				}
			}
		}
		if m.Payload = bytes.Clone(m.Payload); len(m.Payload) < 8 {
			return
		}
		clear := bytes.Clone(m.Payload)
		m.HashKeyID = ""
		if err := m.Encrypt(cedar.Blowfish, []byte("0123456789abcdef"), "session"); err != nil {
			t.Fatal(err)
		}
		parts, err := m.Split(udpID, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range parts {
			d, err := cedar.ParseDatagram(part)
			if err != nil {
				t.Fatal(err)
			}
			m, ok, err = a.Add(udpTime, udpSender, d)
			if err != nil || ok != (i == len(parts)-1) {
				t.Fatalf("part %d of %d: %v %v", i, len(parts), ok, err)
			}
		}
		m.Payload = bytes.Clone(m.Payload)
		if err := m.Decrypt(cedar.Blowfish, []byte("0123456789abcdef")); err != nil || m.KeyID != "session" || !bytes.Equal(m.Payload, clear) {
			t.Fatalf("it comes back as another: %v", err)
		}
	})
}
