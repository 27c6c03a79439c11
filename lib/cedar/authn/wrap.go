// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/cipher"
	"crypto/des" //nolint:gosec // what peers before 9.0 speak
	"errors"

	"github.com/execpoint/execpoint/lib/errs"
)

// Wraps reports whether Wrap hides anything: FS, CLAIMTOBE and ANONYMOUS have
// no key of their own.
func (r Result) Wraps() bool { return len(r.wrapKey.open()) > 0 }

// Wrap encrypts a session key for the key-exchange message of a peer without
// ECDH, under the key that the method agreed on. A method without a key leaves
// it as it is.
func (r Result) Wrap(key Secret) (Secret, error) { return r.crypt("authn.Wrap", key, true) }

// Unwrap is the reverse of Wrap.
func (r Result) Unwrap(wrapped []byte) (Secret, error) {
	return r.crypt("authn.Unwrap", wrapped, false)
}

// maxWrapped bounds a wrapped key; real ones have 16 to 32 bytes.
const maxWrapped = 4096

func (r Result) crypt(op string, in []byte, encrypt bool) (Secret, error) {
	if len(in) == 0 || len(in) > maxWrapped {
		return nil, errs.E(op, errs.Invalid, "", errors.New("the key is empty or too long"))
	}
	out := make(Secret, len(in))
	if !r.Wraps() {
		copy(out, in)
		return out, nil
	}
	block, err := des.NewTripleDESCipher(fold(r.wrapKey.open(), 24))
	if err != nil {
		return nil, errs.E(op, errs.Internal, "", err)
	}
	cfb(block, out, in, encrypt)
	return out, nil
}

// cfb is cipher feedback with whole blocks and a zero IV.
func cfb(block cipher.Block, out, in []byte, encrypt bool) {
	n := block.BlockSize()
	feedback, stream := make([]byte, n), make([]byte, n)
	for len(in) > 0 {
		block.Encrypt(stream, feedback)
		k := min(n, len(in))
		for i := range k {
			c := in[i] ^ stream[i]
			if encrypt {
				feedback[i] = c
			} else {
				feedback[i] = in[i]
			}
			out[i] = c
		}
		in, out = in[k:], out[k:]
	}
}

// fold makes a key of n bytes out of one of any length: a short one is
// repeated, of a longer one the rest is added to the start.
func fold(key []byte, n int) []byte {
	out := make([]byte, n)
	if len(key) > n {
		copy(out, key)
		for i := n; i < len(key); i++ {
			out[i%n] ^= key[i]
		}
		return out
	}
	for i := range out {
		out[i] = key[i%len(key)]
	}
	return out
}
