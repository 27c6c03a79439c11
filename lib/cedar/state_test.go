// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

// fixed is a source of IVs that is no secret.
type fixed byte

func (f fixed) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(f)
	}
	return len(b), nil
}

func aesPair(t *testing.T, clear, seal bool) (us, them *cedar.Conn, wire *tap) {
	t.Helper()
	a, b := cedartest.Pipe()
	wire = &tap{Conn: a}
	us, them = cedar.NewConn(wire, cedar.Limits{}), cedar.NewConn(b, cedar.Limits{})
	us.SetRand(fixed(1))
	them.SetRand(fixed(2))
	if clear {
		exchange(t, us, them, 1)
	}
	if seal {
		for _, c := range []*cedar.Conn{us, them} {
			if err := c.EnableAES(bytes.Repeat([]byte{7}, 32)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return us, them, wire
}

// tap keeps what is written.
type tap struct {
	net.Conn
	written bytes.Buffer
}

func (t *tap) Write(b []byte) (int, error) {
	t.written.Write(b)
	return t.Conn.Write(b)
}

// exchange sends a number each way.
func exchange(t *testing.T, a, b *cedar.Conn, n int64) {
	t.Helper()
	for _, x := range [][2]*cedar.Conn{{a, b}, {b, a}} {
		x[0].PutInt(n)
		x[0].PutString(strings.Repeat("text ", int(n)))
		if err := x[0].EndMessage(); err != nil {
			t.Fatal(err)
		}
		got, err := x[1].Int()
		text, err2 := x[1].String()
		if err != nil || err2 != nil || got != n || len(text) != int(n)*5 || x[1].EndOfMessage() != nil {
			t.Fatalf("message %d arrives as %d %q: %v %v", n, got, text, err, err2)
		}
	}
}

// moved is the stream in what could be another process.
func moved(t *testing.T, c *cedar.Conn) *cedar.Conn {
	t.Helper()
	s, err := c.State()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var there cedar.State
	if err := json.Unmarshal(text, &there); err != nil {
		t.Fatal(err)
	}
	if there.Encrypted() != c.Encrypted() || there.Peer() != c.Peer() {
		t.Errorf("%v arrives as %v", s, there)
	}
	n, err := cedar.Resume(c.NetConn(), c.Limits(), there)
	if err != nil {
		t.Fatal(err)
	}
	if n.Peer() != c.Peer() || n.PeerVersion() != c.PeerVersion() {
		t.Errorf("the peer is %s %s", n.Peer(), n.PeerVersion())
	}
	return n
}

// A stream that moves goes on as the one that stays, byte for byte.
func TestStateGoesOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		clear, seal bool
		before      int64
	}{
		{"nothing was said", false, false, 0},
		{"in clear", true, false, 3},
		{"encrypted, nothing was said", true, true, 0},
		{"encrypted at once", false, true, 0},
		{"amid encrypted messages", true, true, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var wires []string
			for _, moves := range []bool{false, true} {
				us, them, wire := aesPair(t, tt.clear, tt.seal)
				us.SetPeerVersion("25.14.0")
				us.SetPacketSize(cedar.ClassicPacket)
				for n := range tt.before {
					exchange(t, us, them, n+1)
				}
				if moves {
					us = moved(t, us)
				}
				for n := range int64(3) {
					exchange(t, us, them, 100+2000*n)
				}
				if moves {
					us = moved(t, us)
				}
				if !tt.seal { // what was said in clear is vouched for later
					us.SetRand(fixed(1))
					for _, c := range []*cedar.Conn{us, them} {
						if err := c.EnableAES(bytes.Repeat([]byte{7}, 32)); err != nil {
							t.Fatal(err)
						}
					}
				}
				exchange(t, us, them, 9)
				wires = append(wires, wire.written.String())
			}
			if wires[0] != wires[1] {
				t.Error("the stream that moved is another one")
			}
		})
	}
}

// What was read ahead moves too.
func TestStateTakesAhead(t *testing.T) {
	t.Parallel()
	us, them, _ := aesPair(t, true, true)
	for n := range int64(3) {
		them.PutInt(n)
		if err := them.EndMessage(); err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(3) {
		if got, err := us.Int(); err != nil || got != n || us.EndOfMessage() != nil {
			t.Fatalf("%d, %v; want %d", got, err, n)
		}
		if n == 0 && us.Buffered() == 0 {
			t.Fatal("nothing was read ahead")
		}
		us = moved(t, us)
	}
}

func TestStateInsideMessage(t *testing.T) {
	t.Parallel()
	us, them, _ := aesPair(t, true, true)
	us.PutInt(1)
	if _, err := us.State(); !errs.Is(err, errs.Conflict) {
		t.Errorf("while a message is written: %v", err)
	}
	if err := us.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if _, err := them.Int(); err != nil {
		t.Fatal(err)
	}
	if _, err := them.State(); !errs.Is(err, errs.Conflict) {
		t.Errorf("while a message is read: %v", err)
	}
	us.Close()
	if err := them.EndOfMessage(); err != nil {
		t.Fatal(err)
	}
	if _, err := them.Int(); err == nil {
		t.Fatal("a closed connection was read")
	}
	if _, err := them.State(); err == nil {
		t.Error("the state of a broken stream")
	}
}

// A state shows nothing of what it holds, but in JSON.
func TestStateIsSecret(t *testing.T) {
	t.Parallel()
	us, them, _ := aesPair(t, true, true)
	exchange(t, us, them, 2)
	s, err := us.State()
	if err != nil {
		t.Fatal(err)
	}
	key := bytes.Repeat([]byte{7}, 32)
	whole, err := json.Marshal(s)
	if err != nil || !bytes.Contains(whole, []byte(base64.StdEncoding.EncodeToString(key))) {
		t.Fatalf("the key is not in %s (%v)", whole, err)
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", &s)
		fmt.Fprintf(&out, verb+"\n", struct{ S cedar.State }{s})
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("state", "s", s)
	slog.New(slog.NewTextHandler(&out, nil)).Info("state", "s", s)
	for _, leak := range []string{string(key), "0707", "7 7 7", base64.StdEncoding.EncodeToString(key)[:8], "0x7"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in:\n%s", leak, out.String())
		}
	}
}

func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	us, them, _ := aesPair(t, true, true)
	exchange(t, us, them, 2)
	s, err := us.State()
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := json.Marshal(s)
	for _, tt := range []struct{ name, from, to string }{
		{"a short key", `"key":"Bw`, `"key":"`},
		{"no key", `"key":"`, `"kay":"`},
		{"no IV", `"base":"`, `"bass":"`},
		{"no digest", `"received":"`, `"recieved":"`},
	} {
		text := strings.Replace(string(whole), tt.from, tt.to, 1)
		if strings.HasPrefix(tt.name, "a short") {
			text = strings.Replace(string(whole), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)), "Bwc=", 1)
		}
		var bad cedar.State
		if err := json.Unmarshal([]byte(text), &bad); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if _, err := cedar.Resume(us.NetConn(), cedar.Limits{}, bad); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func FuzzResume(f *testing.F) {
	f.Add([]byte(`{"peer":"<10.0.0.1:1>","packet":4091,"ahead":"AQAAAAgAAAAAAAAABQ==","clear":{"sent_bytes":3}}`))
	f.Add([]byte(`{"aes":{"key":"","out":{"base":"","counter":1,"started":true}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s cedar.State
		if json.Unmarshal(b, &s) != nil {
			return
		}
		nc, peer := cedartest.Pipe()
		peer.Close()
		c, err := cedar.Resume(nc, cedar.Limits{}, s)
		if err != nil {
			return
		}
		_, _ = c.Int()
		c.DiscardMessage()
		c.PutInt(1)
		_ = c.EndMessage()
	})
}

func BenchmarkStateMoves(b *testing.B) {
	nc, _ := cedartest.Pipe()
	c := cedar.NewConn(nc, cedar.Limits{})
	if err := c.EnableAES(make([]byte, 32)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := c.State()
		if err != nil {
			b.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			b.Fatal(err)
		}
		var there cedar.State
		if err := json.Unmarshal(text, &there); err != nil {
			b.Fatal(err)
		}
		if _, err := cedar.Resume(nc, cedar.Limits{}, there); err != nil {
			b.Fatal(err)
		}
	}
}
