// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
)

// Key is the key of a session: 32 bytes for AES. It prints as "***".
type Key []byte

// keySize is the length of an AES key.
const keySize = 32

// String hides the key.
func (Key) String() string { return "***" }

// GoString hides the key.
func (Key) GoString() string { return "***" }

// Format hides the key under every verb.
func (Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("***")) }

// MarshalText hides the key from encoders.
func (Key) MarshalText() ([]byte, error) { return []byte("***"), nil }

// LogValue hides the key from slog.
func (Key) LogValue() slog.Value { return slog.StringValue("***") }

// DeriveKey makes a session key of a secret: the x coordinate of an ECDH
// exchange, or the key text of a claim id.
func DeriveKey(secret []byte) Key {
	key, err := hkdf.Key(sha256.New, secret, []byte("htcondor"), "keygen", keySize)
	if err != nil {
		panic(err) // only for a length that is too large
	}
	return key
}

// keyExchange is one side of an ECDH exchange.
type keyExchange interface {
	// Public is what the peer needs, as it is sent.
	Public() string
	// Secret is the shared x coordinate.
	Secret(peer string) ([]byte, error)
}

// p256 is the exchange that is spoken: P-256, points uncompressed in base64.
type p256 struct{ private *ecdh.PrivateKey }

func newKeyExchange(rand io.Reader) (keyExchange, error) {
	private, err := ecdh.P256().GenerateKey(rand)
	if err != nil {
		return nil, err
	}
	return p256{private}, nil
}

func (a p256) Public() string {
	return base64.StdEncoding.EncodeToString(a.private.PublicKey().Bytes())
}

func (a p256) Secret(peer string) ([]byte, error) {
	const most = 256 // a point takes 88 characters
	if len(peer) > most {
		return nil, fmt.Errorf("the peer's ECDHPublicKey has %d characters, a P-256 point has 88", len(peer))
	}
	point, err := base64.StdEncoding.DecodeString(peer)
	if err != nil {
		return nil, fmt.Errorf("the peer's ECDHPublicKey is not in base64")
	}
	public, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		return nil, fmt.Errorf("the peer's ECDHPublicKey is no point of P-256")
	}
	return a.private.ECDH(public)
}
