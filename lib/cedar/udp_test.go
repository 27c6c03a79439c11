// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/errs"
)

var (
	udpID     = cedar.MessageID{IP: 0x7f000001, PID: 4711, Time: 1795188226, Number: 3}
	udpSender = netip.MustParseAddrPort("192.0.2.1:4000")
	udpTime   = time.Unix(1795188226, 0)
)

func TestDatagrams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		bytes string
		want  cedar.Datagram
	}{
		{"short", "12345678", cedar.Datagram{Payload: []byte("12345678")}},
		{
			"fragment", "MaGic6.0\x01\x00\x02\x00\x03\x7f\x00\x00\x01\x12\x67\x6b\x00\x64\x02\x00\x03abc",
			cedar.Datagram{Fragment: true, Last: true, Seq: 2, ID: cedar.MessageID{IP: 0x7f000001, PID: 4711, Time: 0x6b006402, Number: 3}, Payload: []byte("abc")},
		},
		{
			"hashed", "CRAP\x00\x01\x00\x03\x00\x00sid0123456789abcdefpayload.",
			cedar.Datagram{HashKeyID: "sid", MAC: [16]byte([]byte("0123456789abcdef")), Payload: []byte("payload.")},
		},
		{
			"hashed and encrypted", "CRAP\x00\x03\x00\x03\x00\x04sid0123456789abcdefsid2payload.",
			cedar.Datagram{HashKeyID: "sid", MAC: [16]byte([]byte("0123456789abcdef")), KeyID: "sid2", Payload: []byte("payload.")},
		},
	} {
		got, err := cedar.ParseDatagram([]byte(tt.bytes))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if b := string(got.Append(nil)); b != tt.bytes {
			t.Errorf("%s: written as %q", tt.name, b)
		}
	}
	for name, b := range map[string]string{
		"short":        "1234567",
		"cut header":   "MaGic6.0\x01\x00",
		"no payload":   "MaGic6.0\x01\x00\x02\x00\x03\x7f\x00\x00\x01\x12\x67\x6b\x00\x64\x02\x00\x03",
		"cut crypto":   "CRAP\x00\x01\x00\x03\x00",
		"cut MAC":      "CRAP\x00\x01\x00\x03\x00\x00sid0123",
		"cut key id":   "CRAP\x00\x02\x00\x00\x00\x09sid",
		"only headers": "CRAP\x00\x02\x00\x00\x00\x03sid",
		"too large":    strings.Repeat("x", 60001),
	} {
		if _, err := cedar.ParseDatagram([]byte(b)); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message comes together whatever the order of its fragments, and although
// some come twice.
func TestFragments(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{8, 975, 976, 2000, 50_000, 500_000} {
		message := pattern(size)
		parts, err := cedar.Datagram{Payload: message}.Split(udpID, cedar.UDPFragment)
		if err != nil {
			t.Fatal(err)
		}
		if want := (size + 974) / 975; len(parts) != want {
			t.Errorf("%d bytes are %d datagrams, want %d", size, len(parts), want)
		}
		parts = append(parts, parts[:len(parts)/2]...)
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		var a cedar.Assembler
		whole := 0
		for _, b := range parts {
			if len(b) > cedar.UDPFragment {
				t.Fatalf("a datagram of %d bytes", len(b))
			}
			b = bytes.Clone(b)
			d, err := cedar.ParseDatagram(b)
			if err != nil {
				t.Fatal(err)
			}
			m, ok, err := a.Add(udpTime, udpSender, d)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				whole++
				if !bytes.Equal(m.Payload, message) {
					t.Errorf("a message of %d bytes arrives differently", size)
				}
			}
			clear(b)
		}
		if whole != 1 {
			t.Errorf("a message of %d bytes arrives %d times", size, whole)
		}
	}
	for size, kind := range map[int]errs.Kind{7: errs.Invalid, 5 << 20: errs.Exhausted} {
		if _, err := (cedar.Datagram{Payload: make([]byte, size)}).Split(udpID, cedar.UDPFragment); !errs.Is(err, kind) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// What one sender and all of them can make an Assembler hold is bounded, and
// does not stay.
func TestAssemblerBounds(t *testing.T) {
	t.Parallel()
	var a cedar.Assembler
	fragment := func(i int, seq int, n int) cedar.Datagram {
		id := udpID
		id.Number, id.Time = uint16(i), uint32(i>>16)
		return cedar.Datagram{Fragment: true, Seq: seq, ID: id, Payload: make([]byte, n)}
	}
	for i := range 1000 {
		if _, _, err := a.Add(udpTime, udpSender, fragment(i, 0, 50_000)); err != nil {
			t.Fatal(err)
		}
	}
	if n, b := a.Held(); n != 8 || b != 8*50_000 {
		t.Errorf("one sender: %d messages, %d bytes", n, b)
	}
	for i := range 1000 {
		from := netip.AddrPortFrom(udpSender.Addr(), uint16(i+1))
		for seq := range 10 {
			if _, _, err := a.Add(udpTime, from, fragment(i, seq, 59_000)); err != nil {
				t.Fatal(err)
			}
		}
		if n, b := a.Held(); n > 64 || b > 16<<20 {
			t.Fatalf("many senders: %d messages, %d bytes", n, b)
		}
	}
	if _, _, err := a.Add(udpTime.Add(11*time.Second), udpSender, fragment(1, 0, 100)); err != nil {
		t.Fatal(err)
	}
	if n, b := a.Held(); n != 1 || b != 100 {
		t.Errorf("after a while: %d messages, %d bytes", n, b)
	}
	a = cedar.Assembler{}
	for i := range 64 {
		from := netip.AddrPortFrom(udpSender.Addr(), uint16(i+1))
		for seq := range 300 {
			if _, _, err := a.Add(udpTime, from, fragment(i, seq, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if _, b := a.Held(); b > 16<<10 {
			t.Fatalf("%d fragments of one byte are held", b)
		}
	}
	a = cedar.Assembler{}
	for i := range 30 {
		d := fragment(9, i, 1)
		d.KeyID = strings.Repeat("k", 50_000)
		if _, _, err := a.Add(udpTime, udpSender, d); err != nil {
			t.Fatal(err)
		}
	}
	if _, b := a.Held(); b != 50_030 {
		t.Errorf("with key ids %d bytes are held", b)
	}
	for name, send := range map[string][]cedar.Datagram{
		"endless": func() (all []cedar.Datagram) {
			for seq := range 30 {
				all = append(all, fragment(9, seq, 59_000))
			}
			return all
		}(),
		"behind the last": {{Fragment: true, Last: true, Seq: 1, Payload: []byte("x")}, {Fragment: true, Seq: 2, Payload: []byte("x")}},
		"last too early":  {{Fragment: true, Seq: 5, Payload: []byte("x")}, {Fragment: true, Seq: 0, Payload: []byte("x")}, {Fragment: true, Last: true, Seq: 2, Payload: []byte("x")}},
		"numbers":         {{Fragment: true, Seq: 5000, Payload: []byte("x")}},
	} {
		var a cedar.Assembler
		var err error
		for _, d := range send {
			if _, _, err = a.Add(udpTime, udpSender, d); err != nil {
				break
			}
		}
		if !errs.Is(err, errs.Exhausted) {
			t.Errorf("%s: %v", name, err)
		}
		if n, b := a.Held(); n != 0 || b != 0 {
			t.Errorf("%s: %d messages, %d bytes are held", name, n, b)
		}
	}
}

// A command in a datagram is an ordinary message.
func TestMessageOfDatagram(t *testing.T) {
	t.Parallel()
	b, err := cedar.WriteMessage(func(c *cedar.Conn) {
		c.PutInt(60008)
		c.PutString(strings.Repeat("x", 5000))
	})
	if err != nil {
		t.Fatal(err)
	}
	c := cedar.MessageReader(b, cedar.Limits{})
	i, err := c.Int()
	check(t, i, 60008, err)
	s, err := c.String()
	check(t, len(s), 5000, err)
	if err := c.EndOfMessage(); err != nil {
		t.Error(err)
	}
	if _, err := c.Int(); err == nil {
		t.Error("there is a second message")
	}
	for name, put := range map[string]func(c *cedar.Conn){
		"empty": func(*cedar.Conn) {}, "large": func(c *cedar.Conn) { c.PutBytes(make([]byte, 2<<20)) },
		"refused": func(c *cedar.Conn) { c.PutString("\x00") },
	} {
		if _, err := cedar.WriteMessage(put); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// An address that begins messages from many ports and ends none displaces its
// own and not those of others.
func TestUnfinishedMessagesOfOneAddress(t *testing.T) {
	t.Parallel()
	const unfinished = 64 // that an Assembler holds
	var a cedar.Assembler
	now := time.Unix(1_000_000, 0)
	honest := netip.MustParseAddrPort("192.0.2.1:9618")
	part := func(seq int, last bool) cedar.Datagram {
		return cedar.Datagram{Fragment: true, Seq: seq, Last: last, ID: cedar.MessageID{Number: 7}, Payload: []byte("half of it")}
	}
	if _, ok, err := a.Add(now, honest, part(0, false)); ok || err != nil {
		t.Fatalf("the first half: %t, %v", ok, err)
	}
	for port := range 3 * unfinished {
		now = now.Add(time.Millisecond)
		from := netip.AddrPortFrom(netip.MustParseAddr("198.51.100.1"), uint16(port+1))
		if _, _, err := a.Add(now, from, part(0, false)); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := a.Held(); n != unfinished {
		t.Errorf("%d messages are under way, want %d", n, unfinished)
	}
	if _, ok, err := a.Add(now, honest, part(1, true)); !ok || err != nil {
		t.Errorf("the second half of a message beside a flood: %t, %v", ok, err)
	}
}
