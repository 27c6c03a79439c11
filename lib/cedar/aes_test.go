// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// A key is not used for more packets than the counter can tell apart.
func TestCounterExhausted(t *testing.T) {
	t.Parallel()
	c := NewConn(noConn{}, Limits{})
	c.SetRand(bytes.NewReader(make([]byte, ivSize)))
	if err := c.EnableAES(make([]byte, keySize)); err != nil {
		t.Fatal(err)
	}
	c.aes.out.counter, c.aes.out.started = 1<<32-2, true
	c.PutInt(1)
	if err := c.EndMessage(); err != nil {
		t.Fatalf("the last packet: %v", err)
	}
	for range 2 {
		c.PutInt(1)
		if err := c.EndMessage(); !errs.Is(err, errs.Exhausted) {
			t.Errorf("one packet more: %v", err)
		}
	}
	d := &aesDirection{counter: 1<<32 - 1, started: true}
	if _, _, err := d.next(make([]byte, headerSize), nil, nil); !errs.Is(err, errs.Exhausted) {
		t.Errorf("a direction used up: %v", err)
	}
}

// Nonces and additional data of recorded packets.
func TestRecordedNonces(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/vectors/primitives.json")
	if err != nil {
		t.Fatal(err)
	}
	type hexBytes = hexText
	var p struct {
		AES struct {
			BaseIV   hexBytes `json:"base_iv"`
			Sender   hexBytes `json:"sender_clear_digest"`
			Receiver hexBytes `json:"receiver_clear_digest"`
			Packets  []struct{ Nonce, AAD, Packet hexBytes }
		} `json:"aes_gcm_16_byte_nonce_with_counter_wrap"`
	}
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	d := &aesDirection{base: [ivSize]byte(p.AES.BaseIV)}
	mine, theirs := [digestSize]byte(p.AES.Sender), [digestSize]byte(p.AES.Receiver)
	for i, want := range p.AES.Packets {
		nonce, aad, err := d.next(want.Packet[:headerSize], &mine, &theirs)
		if err != nil || !bytes.Equal(nonce, want.Nonce) || !bytes.Equal(aad, want.AAD) {
			t.Errorf("packet %d: nonce %x, data %x, %v; want %x, %x", i, nonce, aad, err, want.Nonce, want.AAD)
		}
	}
}

// hexText is bytes written as hexadecimal digits.
type hexText []byte

func (h *hexText) UnmarshalText(b []byte) error {
	*h = make([]byte, hex.DecodedLen(len(b)))
	_, err := hex.Decode(*h, b)
	return err
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := Limits{Packet: 1 << 20, Message: 32 << 20, String: 10_000_000, AdLines: 1_000_000, Timeout: 20 * time.Second}
	if got := (Limits{Packet: 5 << 20}).withDefaults(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	c := NewConn(noConn{}, Limits{})
	c.SetTimeout(0)
	if c.Limits().Timeout >= 0 {
		t.Errorf("no timeout is %v", c.Limits().Timeout)
	}
}
