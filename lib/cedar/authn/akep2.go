// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's MAC
	"encoding/hex"
	"slices"
)

// Sizes of AKEP2.
const (
	nonceSize = 256
	macSize   = sha1.Size
)

// The two constants of the protocol from which K and K' are derived, in hex.
const (
	seedA = "3e4a502047d5f4e5dc7c69bb5210cbb6167add8084f7dd9ef3ad2cca71d283dd114a4fbb7b1ee90adfa862c44304de5473a3172f735c2cbb6e775b5d40d39fac" +
		"e873182523f9252b623be0d4b167a3a8040cacfee9ee3da02c0abbf4d9d8b11f89004c943923ce5d9508bb3f04bc66a3fa20a13a416c5e6f4e0d3187d45fc783" +
		"35c5e485db2c5a3717970cc26e7b6b9d1965b47a67df77a31f22f08a6c0ba57097a21a9ca7c60424f72739ab5cb915a4185bd109828e35e42108ab851c08a3df" +
		"fde0e3b06f3d3938cdad6df6ef9a6f6dc2cb74f0228512eb7a3d6823010684b015c12ac3014c4f9f938e384dad1e3bd745ff8c141fd70b465ba8af5d1b98b4b1"
	seedB = "010026ad75dfc6c190a5a266b0d1b5d860f7cfa38467205501cd460d4a88d473fa52e0b3e9141e33c97d851eee2dd33632f3886768ef010ec8dfdd668ade92d5" +
		"c34308bb243895d84ed785e27268cc5ee7560de49828fab766c2ad8c0b2c0afb435c382db5d2ff36a8aead5820470a9ad45d79856f5e2ece894bd2507929dcf2" +
		"6f7d09f0028f1ac4d971f4820c5f54717e9dcdabeb215f61655dead4b72c3d3b5f66fa4b30b85888d62facd4129c1304919f69ad6d8c2c43d9ce5cdb31d45803" +
		"52c7362b8d80b7ef1bba5d676660a944764502f91d1d3c54910c088bccb72b11948a5e1a1dcd04369c17d298804c216e7a2690b8c0e970363300d092df24fb8c"
)

// akep2Keys are the shared keys of one exchange: k authenticates, wrap
// encrypts a session key for a peer without ECDH.
type akep2Keys struct {
	k       Secret
	wrapKey func(rb []byte) (Secret, error)
}

// tokenKeys derives the keys from a token: its signature is the shared secret.
func tokenKeys(signed string, signature Secret) (akep2Keys, error) {
	k, err := derive(signature, append(seed(seedA), signed...), "master ka")
	if err != nil {
		return akep2Keys{}, err
	}
	// K' does not enter the key for wrapping with tokens.
	return akep2Keys{k: k, wrapKey: func(rb []byte) (Secret, error) {
		return derive(rb, []byte("session key"), "htcondor")
	}}, nil
}

// passwordKeys derives the keys from the pool's password.
func passwordKeys(password Secret) akep2Keys {
	twice := slices.Concat(password, password)
	prime := mac(seed(seedB), twice)
	return akep2Keys{k: mac(seed(seedA), twice), wrapKey: func(rb []byte) (Secret, error) {
		return mac(prime, rb), nil
	}}
}

// hkt proves to the client that the server has the keys.
func (k akep2Keys) hkt(a, b string, ra, rb []byte) Secret {
	return mac(k.k, []byte(a+" "+b+"\x00"), ra, rb)
}

// hk proves to the server that the client has them.
func (k akep2Keys) hk(a string, rb []byte) Secret {
	return mac(k.k, []byte(a+"\x00"), rb)
}

func mac(key Secret, parts ...[]byte) Secret {
	h := hmac.New(sha1.New, key)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

func seed(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		panic("authn: a seed is no hex: " + err.Error())
	}
	return b
}
