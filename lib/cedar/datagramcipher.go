// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"crypto/des"
	"crypto/md5"
	"crypto/subtle"
	"errors"
	"fmt"

	//lint:ignore SA1019 deprecated for new protocols, which this is not
	"golang.org/x/crypto/blowfish"

	"github.com/execpoint/execpoint/lib/errs"
)

// Cipher is what a datagram can be encrypted with. AES is for streams alone.
type Cipher string

// The ciphers, with the names that lists of crypto methods have.
const (
	Blowfish  Cipher = "BLOWFISH"
	TripleDES Cipher = "3DES"
)

// tripleSize is the length of a key of TripleDES.
const tripleSize = 24

// datagramCipher is a block cipher of 64 bits in the mode CFB, which encrypts
// datagrams. It begins anew with each message and with a first block of zeros, as
// HTCondor has it, so equal beginnings look equal.
type datagramCipher struct {
	block func(dst, src []byte)
	last  [8]byte // ciphertext, and then its encryption
	used  int     // bytes of last that were used up
}

// shortestBlowfish is the length of the shortest key that the cipher's author
// allows; the package takes shorter ones.
const shortestBlowfish = 4

func newDatagramCipher(c Cipher, key []byte) (*datagramCipher, error) {
	bad := func(k errs.Kind, err error) (*datagramCipher, error) {
		return nil, errs.E("cedar.newDatagramCipher", k, string(c), err)
	}
	if len(key) == 0 {
		return bad(errs.Invalid, errors.New("there is no key"))
	}
	v := &datagramCipher{used: 8}
	switch c {
	case Blowfish:
		if len(key) < shortestBlowfish {
			return bad(errs.Invalid, fmt.Errorf("the key has %d bytes, want at least %d", len(key), shortestBlowfish))
		}
		b, err := blowfish.NewCipher(key)
		if err != nil {
			return bad(errs.Invalid, err)
		}
		v.block = b.Encrypt
	case TripleDES:
		b, err := des.NewTripleDESCipher(stretch(key, tripleSize))
		if err != nil {
			return bad(errs.Invalid, err)
		}
		v.block = b.Encrypt
	default:
		return bad(errs.Unsupported, fmt.Errorf("no cipher of datagrams; there are %s and %s", Blowfish, TripleDES))
	}
	return v, nil
}

// stretch makes a key of n bytes: one that is shorter is repeated, of one that
// is longer the rest is mixed in from the front.
func stretch(key []byte, n int) []byte {
	out := make([]byte, n)
	for i := range max(n, len(key)) {
		if i < n {
			out[i] = key[i%len(key)]
		} else {
			out[i%n] ^= key[i]
		}
	}
	return out
}

// encrypt encrypts b in place, going on from what was encrypted before.
func (v *datagramCipher) encrypt(b []byte) {
	for i := range b {
		v.turn()
		b[i] ^= v.last[v.used]
		v.last[v.used] = b[i]
		v.used++
	}
}

// decrypt decrypts b in place.
func (v *datagramCipher) decrypt(b []byte) {
	for i := range b {
		v.turn()
		c := b[i]
		b[i] ^= v.last[v.used]
		v.last[v.used] = c
		v.used++
	}
}

func (v *datagramCipher) turn() {
	if v.used == len(v.last) {
		v.block(v.last[:], v.last[:])
		v.used = 0
	}
}

// digest proves that a payload is unchanged and comes from a peer that has the key.
func digest(key, payload []byte) [udpMACSize]byte {
	h := md5.New()
	h.Write(key)
	h.Write(payload)
	return [udpMACSize]byte(h.Sum(nil))
}

// Encrypt encrypts the payload of a whole message, in place. keyID tells the
// receiver which session that is.
func (d *Datagram) Encrypt(c Cipher, key []byte, keyID string) error {
	v, err := newDatagramCipher(c, key)
	if err != nil {
		return err
	}
	v.encrypt(d.Payload)
	d.KeyID = keyID
	return nil
}

// Decrypt decrypts the payload of a whole message, in place. The cipher does not
// tell whether the key was right: what comes out may be anything.
func (d *Datagram) Decrypt(c Cipher, key []byte) error {
	v, err := newDatagramCipher(c, key)
	if err != nil {
		return err
	}
	v.decrypt(d.Payload)
	return nil
}

// Sign adds the digest of the payload of a whole message, after Encrypt.
func (d *Datagram) Sign(key []byte, keyID string) {
	d.MAC, d.HashKeyID = digest(key, d.Payload), keyID
}

// Verify reports whether the digest of a whole message is there and right,
// before Decrypt.
func (d *Datagram) Verify(key []byte) bool {
	want := digest(key, d.Payload)
	return d.HashKeyID != "" && subtle.ConstantTimeCompare(want[:], d.MAC[:]) == 1
}
