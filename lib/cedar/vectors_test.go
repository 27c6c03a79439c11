// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

const vectors = "testdata/vectors"

func eachConnection(t *testing.T, f func(t *testing.T, c *cedartest.Connection)) {
	for _, v := range cedartest.LoadDir(t, vectors) {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			for _, c := range v.Connections {
				t.Run(c.Note, func(t *testing.T) { f(t, c) })
			}
		})
	}
}

// Every recorded message reads as its items, and its items write the message.
func TestVectorItems(t *testing.T) {
	t.Parallel()
	eachConnection(t, func(t *testing.T, c *cedartest.Connection) {
		for i, m := range c.Messages {
			if m.Event != "" {
				continue
			}
			if err := cedartest.CheckItems(cedartest.Reader(t, m.Plaintext, m.Encrypted), m.Items); err != nil {
				t.Errorf("message %d (%s): %v", i, m.Note, err)
			}
			got := cedartest.Encode(t, m.Encrypted, func(w *cedar.Conn) { cedartest.PutItems(w, m.Items) })
			if err := cedartest.Diff(m.Plaintext, got); err != nil {
				t.Errorf("message %d (%s): %v", i, m.Note, err)
			}
		}
	})
}

// Either end, having sent what its record says, decrypts all packets of the
// other one and encrypts its own to the recorded bytes.
func TestVectorPackets(t *testing.T) {
	t.Parallel()
	eachConnection(t, func(t *testing.T, c *cedartest.Connection) {
		for _, role := range []cedartest.Role{cedartest.Client, cedartest.Server} {
			t.Run(string(role), func(t *testing.T) { playExactly(t, c, role) })
		}
	})
}

// playExactly lets a Conn be the end role of a recorded connection.
func playExactly(t *testing.T, c *cedartest.Connection, role cedartest.Role) {
	p := &cedartest.Player{Conn: c, Role: role.Other(), Exact: true}
	nc, wait := p.Start(t)
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.SetRand(c.Rand(role))
	for i, m := range c.Messages {
		var err error
		switch {
		case m.Event == cedartest.EncryptionOn:
			err = conn.EnableAES(c.Session.Key)
		case m.Event == cedartest.DigestsRestart:
			conn.ResetDigests()
		case m.Event != "":
			err = closed(conn, m.Event, role)
		case m.From != role:
			var got []byte
			if got, err = conn.Rest(); err == nil {
				err = cedartest.Diff(m.Plaintext, got)
				conn.DiscardMessage()
			}
		default:
			conn.SetPacketSize(cedar.MaxPacket)
			if len(m.Packets) > 1 {
				conn.SetPacketSize(cedar.ClassicPacket)
			}
			conn.PutBytes(m.Plaintext)
			err = conn.EndMessage()
		}
		if err != nil {
			t.Fatalf("message %d (%s%s): %v", i, m.Event, m.Note, err)
		}
	}
	_ = conn.Close()
	wait()
}

func closed(conn *cedar.Conn, event string, role cedartest.Role) error {
	if (event == cedartest.ClientClosed) == (role == cedartest.Client) {
		return conn.Close()
	}
	return nil
}

// A live peer that encrypts by itself with the recorded key has the recorded
// conversation too.
func TestVectorLive(t *testing.T) {
	t.Parallel()
	eachConnection(t, func(t *testing.T, c *cedartest.Connection) {
		p := &cedartest.Player{Conn: c, Role: cedartest.Server}
		nc, wait := p.Start(t)
		q := &cedartest.Player{Conn: c, Role: cedartest.Client}
		if err := q.Play(nc); err != nil {
			t.Error(err)
		}
		_ = nc.Close()
		wait()
	})
}

// A changed bit of what went in clear makes the first encrypted packet fail.
func TestVectorTampered(t *testing.T) {
	t.Parallel()
	v := cedartest.Load(t, vectors+"/collector-fs-aes-resume.json")
	c := v.Connections[1]
	for _, flip := range []bool{false, true} {
		a, b := cedartest.Pipe()
		conn := cedar.NewConn(b, cedar.Limits{})
		var err error
		for _, m := range c.Messages {
			switch {
			case m.Event == cedartest.EncryptionOn:
				err = conn.EnableAES(c.Session.Key)
			case m.Event != "":
			case m.From == cedartest.Client:
				for _, packet := range m.Packets {
					packet = bytes.Clone(packet)
					if flip && !m.Encrypted {
						packet[len(packet)-3] ^= 1
					}
					_, _ = a.Write(packet)
				}
				if _, err = conn.Rest(); err == nil {
					err = conn.EndOfMessage()
				}
			case !m.Encrypted:
				conn.PutBytes(m.Plaintext)
				err = conn.EndMessage()
			}
			if err != nil {
				break
			}
		}
		if flip != (err != nil) {
			t.Errorf("flipped %v: %v", flip, err)
		}
		_ = a.Close()
	}
}

type primitives struct {
	AES struct {
		Key      cedartest.Hex
		BaseIV   cedartest.Hex `json:"base_iv"`
		Sender   cedartest.Hex `json:"sender_clear_digest"`
		Receiver cedartest.Hex `json:"receiver_clear_digest"`
		Packets  []struct{ Nonce, AAD, Plaintext, Packet cedartest.Hex }
	} `json:"aes_gcm_16_byte_nonce_with_counter_wrap"`
	Primitives struct {
		Items             []cedartest.Item
		Clear, Encrypting cedartest.Hex
	}
	Ad struct {
		Lines             []string
		Clear, Encrypting cedartest.Hex
	}
}

func loadPrimitives(t *testing.T) *primitives {
	t.Helper()
	b, err := os.ReadFile(vectors + "/primitives.json")
	if err != nil {
		t.Fatal(err)
	}
	p := &primitives{}
	if err := json.Unmarshal(b, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPrimitives(t *testing.T) {
	t.Parallel()
	p := loadPrimitives(t)
	ad := []cedartest.Item{{Ad: &p.Ad.Lines, Types: []string{"", ""}}}
	for _, tt := range []struct {
		name      string
		items     []cedartest.Item
		want      []byte
		encrypted bool
	}{
		{"clear items", p.Primitives.Items, p.Primitives.Clear, false},
		{"encrypted items", p.Primitives.Items, p.Primitives.Encrypting, true},
		{"clear ad", ad, p.Ad.Clear, false},
		{"encrypted ad", ad, p.Ad.Encrypting, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := cedartest.Encode(t, tt.encrypted, func(c *cedar.Conn) { cedartest.PutItems(c, tt.items) })
			if err := cedartest.Diff(tt.want, got); err != nil {
				t.Error(err)
			}
			if err := cedartest.CheckItems(cedartest.Reader(t, tt.want, tt.encrypted), tt.items); err != nil {
				t.Error(err)
			}
		})
	}
}

// The counter wraps around within the first four bytes of the nonce.
func TestCounterWrap(t *testing.T) {
	t.Parallel()
	p := loadPrimitives(t).AES
	a, b := cedartest.Pipe()
	w, r := cedar.NewConn(a, cedar.Limits{}), cedar.NewConn(b, cedar.Limits{})
	w.SetRand(bytes.NewReader(p.BaseIV))
	for _, c := range []*cedar.Conn{w, r} {
		if err := c.EnableAES(p.Key); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range p.Packets {
		w.PutBytes(want.Plaintext)
		if err := w.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // it vouches for clear bytes that are not in the file
			if got, err := r.Rest(); err != nil || !bytes.Equal(got, want.Plaintext) {
				t.Fatalf("packet 0: %q, %v", got, err)
			}
			continue
		}
		got := make([]byte, len(want.Packet))
		if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, want.Packet) {
			t.Errorf("packet %d is %x, want %x, %v", i, got, want.Packet, err)
		}
	}
}
