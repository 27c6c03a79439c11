// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

// byteConn yields bytes and then the end.
type byteConn struct {
	sink
	r io.Reader
}

func (c byteConn) Read(b []byte) (int, error) { return c.r.Read(b) }

// recordedBytes calls add with the bytes that one end sent on each recorded
// connection, and the key.
func recordedBytes(f *testing.F, add func(sent []byte, c *cedartest.Connection, m *cedartest.Message)) {
	for _, name := range []string{"shared-port", "collector-refusals", "ep-collector-updates", "ep-claim-minimal-info"} {
		for _, c := range cedartest.Load(f, vectors+"/"+name+".json").Connections {
			for _, m := range c.Messages {
				if m.Event == "" {
					add(bytes.Join(hexes(m.Packets), nil), c, m)
				}
			}
		}
	}
}

func hexes(all []cedartest.Hex) [][]byte {
	b := make([][]byte, len(all))
	for i := range all {
		b[i] = all[i]
	}
	return b
}

// Whatever packets come, reading ends, within its limits, and what was read
// can be written.
func FuzzFrame(f *testing.F) {
	recordedBytes(f, func(sent []byte, _ *cedartest.Connection, m *cedartest.Message) { f.Add(sent, m.Encrypted) })
	f.Add(packet(0, 1, "x"), false)
	f.Add(packet(1, 1<<20, "x"), false)
	f.Fuzz(func(t *testing.T, b []byte, encrypted bool) {
		const limit = 4096
		c := cedar.NewConn(byteConn{r: bytes.NewReader(b)}, cedar.Limits{Message: limit})
		if encrypted {
			if err := c.EnableAES(make([]byte, 32)); err != nil {
				t.Fatal(err)
			}
		}
		total := 0
		for {
			m, err := c.Rest()
			if err != nil {
				break
			}
			if len(m) > limit || len(m) == 0 {
				t.Fatalf("a message of %d bytes", len(m))
			}
			if total += len(m); total > len(b) {
				t.Fatalf("%d bytes of %d", total, len(b))
			}
			if err := c.EndOfMessage(); err != nil {
				t.Fatal(err)
			}
		}
		if !c.Broken() {
			t.Error("the stream is not at its end")
		}
	})
}

// Whatever a message holds, its items are read or refused, and an ad that is
// read writes and reads again as the same.
func FuzzAd(f *testing.F) {
	recordedBytes(f, func(_ []byte, _ *cedartest.Connection, m *cedartest.Message) {
		f.Add([]byte(m.Plaintext), m.Encrypted, false)
	})
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01A = 1\x00\x00\x00"), false, true)
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01ZKM\x00ClaimId = \"x\"\x00\x00\x00"), false, false)
	f.Fuzz(func(t *testing.T, b []byte, encrypted, restricted bool) {
		if len(b) == 0 {
			return
		}
		ad, err := cedartest.Reader(t, b, encrypted).Ad(cedar.AdOptions{Restricted: restricted})
		if err != nil {
			return
		}
		again := cedartest.Encode(t, encrypted, func(c *cedar.Conn) { c.PutAd(ad, cedar.AdOptions{PeerVersion: "25.14.0"}) })
		got, err := cedartest.Reader(t, again, encrypted).Ad(cedar.AdOptions{})
		if err != nil {
			t.Fatalf("%v of %q", err, again)
		}
		if got.Len() != ad.Len() {
			t.Errorf("%d attributes, then %d: %q", ad.Len(), got.Len(), again)
		}
	})
}

// All getters in all orders.
func FuzzItems(f *testing.F) {
	recordedBytes(f, func(_ []byte, _ *cedartest.Connection, m *cedartest.Message) {
		f.Add([]byte(m.Plaintext), []byte("isafnm"), m.Encrypted)
	})
	f.Fuzz(func(t *testing.T, b, getters []byte, encrypted bool) {
		if len(b) == 0 {
			return
		}
		c := cedartest.Reader(t, b, encrypted)
		c.SetLimits(cedar.Limits{Timeout: 1})
		for _, g := range getters {
			switch g {
			case 'i':
				_, _ = c.Int()
			case 's':
				_, _ = c.Secret()
			case 'a':
				_, _ = c.RawAd(cedar.AdOptions{})
			case 'f':
				_, _ = c.Float()
			case 'n':
				_, _, _ = c.NullableString()
			case 'm':
				_, _, _ = c.FileMode()
			case 'p':
				_, _ = c.SharedPortRequest()
			case 'g':
				_, _ = c.GetFile(t.Context(), io.Discard, 1<<20)
			case 'e':
				_ = c.EndOfMessage()
			default:
				_, _ = c.Bytes(int(g) - 100)
			}
		}
	})
}

// An address that is read prints as one that is the same.
func FuzzSinful(f *testing.F) {
	for _, r := range recordedSinfuls(f) {
		f.Add(r.In)
	}
	f.Add("[::1%0]:0")
	f.Add(`{[p="primary";port=0;n="0";a="0 "]}`)
	f.Add("::[")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := cedar.ParseSinful(text)
		if err != nil {
			return
		}
		printed := s.String()
		again, err := cedar.ParseSinful(printed)
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, printed, err)
		}
		if again.String() != printed {
			t.Errorf("%q prints as %q, then as %q", text, printed, again.String())
		}
		v1 := s.AddressV1()
		if v1 == "{}" {
			return
		}
		if _, err := cedar.ParseSinful(v1); err != nil {
			t.Errorf("%q has AddressV1 %q: %v", text, v1, err)
		}
	})
}

// A datagram that is read is written as it was, but for fields that nobody
// reads.
func FuzzDatagram(f *testing.F) {
	f.Add([]byte("12345678"))
	f.Add([]byte("MaGic6.0\x01\x00\x02\x00\x03\x7f\x00\x00\x01\x12\x67\x6b\x00\x64\x02\x00\x03abc"))
	f.Add([]byte("CRAP\x00\x03\x00\x03\x00\x04sid0123456789abcdefsid2payload."))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := cedar.ParseDatagram(b)
		if err != nil || bytes.HasPrefix(d.Payload, []byte("CRAP")) || bytes.HasPrefix(d.Payload, []byte("MaGic6.0")) {
			return // a payload that looks like a header cannot be told from one
		}
		again, err := cedar.ParseDatagram(d.Append(nil))
		if err == nil && (again.KeyID != d.KeyID || again.Seq != d.Seq || !bytes.Equal(again.Payload, d.Payload)) {
			t.Errorf("%+v, then %+v", d, again)
		}
		var a cedar.Assembler
		for range 3 {
			_, _, _ = a.Add(udpTime, udpSender, d)
			if n, held := a.Held(); n > 1 || held > len(b) {
				t.Errorf("%d messages, %d bytes are held", n, held)
			}
		}
	})
}
