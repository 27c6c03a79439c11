// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"sync"
)

// blowfish is the cipher of Bruce Schneier, 1993, a cipher.Block. It has no
// place in new protocols, for its blocks are of 64 bits; here it is because
// datagrams know nothing better. The standard library has none.
type blowfish struct {
	p [blowfishRounds + 2]uint32
	s [4][256]uint32
}

const (
	blowfishRounds = 16
	blowfishBlock  = 8
	blowfishMin    = 4 // bytes of a key
	blowfishMax    = 56
)

// blowfishStart are the boxes before a key was mixed in: the digits of pi
// behind the point, 32 bits each, p first. It takes some milliseconds once.
var blowfishStart = sync.OnceValue(func() *blowfish {
	const words = blowfishRounds + 2 + 4*256
	const bits, spare = 32 * words, 64
	one := new(big.Int).Lsh(big.NewInt(1), bits+spare)
	// Machin: pi = 16 atan(1/5) - 4 atan(1/239).
	pi := new(big.Int).Lsh(inverseTangent(one, 5), 4)
	pi.Sub(pi, new(big.Int).Lsh(inverseTangent(one, 239), 2))
	pi.Rsh(pi, spare)
	pi.Sub(pi, new(big.Int).Lsh(big.NewInt(3), bits))
	digits := pi.FillBytes(make([]byte, bits/8))
	next := func() uint32 {
		w := binary.BigEndian.Uint32(digits)
		digits = digits[4:]
		return w
	}
	b := &blowfish{}
	for i := range b.p {
		b.p[i] = next()
	}
	for i := range b.s {
		for j := range b.s[i] {
			b.s[i][j] = next()
		}
	}
	return b
})

// inverseTangent returns one times the arc tangent of 1/n.
func inverseTangent(one *big.Int, n int64) *big.Int {
	square := big.NewInt(n * n)
	power := new(big.Int).Quo(one, big.NewInt(n))
	sum, term := new(big.Int).Set(power), new(big.Int)
	for k := int64(3); power.Sign() > 0; k += 2 {
		power.Quo(power, square)
		term.Quo(power, big.NewInt(k))
		if k%4 == 3 {
			sum.Sub(sum, term)
		} else {
			sum.Add(sum, term)
		}
	}
	return sum
}

func newBlowfish(key []byte) (*blowfish, error) {
	if len(key) < blowfishMin || len(key) > blowfishMax {
		return nil, fmt.Errorf("a Blowfish key of %d bytes, want %d to %d", len(key), blowfishMin, blowfishMax)
	}
	b := *blowfishStart()
	at := 0
	for i := range b.p {
		for shift := 24; shift >= 0; shift -= 8 {
			b.p[i] ^= uint32(key[at]) << shift
			at = (at + 1) % len(key)
		}
	}
	var l, r uint32
	for i := 0; i < len(b.p); i += 2 {
		l, r = b.halves(l, r)
		b.p[i], b.p[i+1] = l, r
	}
	for i := range b.s {
		for j := 0; j < len(b.s[i]); j += 2 {
			l, r = b.halves(l, r)
			b.s[i][j], b.s[i][j+1] = l, r
		}
	}
	return &b, nil
}

// halves encrypts the halves of a block.
func (b *blowfish) halves(l, r uint32) (uint32, uint32) {
	for i := 0; i < blowfishRounds; i += 2 {
		l ^= b.p[i]
		r ^= b.mix(l)
		r ^= b.p[i+1]
		l ^= b.mix(r)
	}
	return r ^ b.p[blowfishRounds+1], l ^ b.p[blowfishRounds]
}

func (b *blowfish) mix(x uint32) uint32 {
	return (b.s[0][x>>24] + b.s[1][x>>16&0xff] ^ b.s[2][x>>8&0xff]) + b.s[3][x&0xff]
}

// encrypt encrypts a block. Only this direction is needed: see feedback.
func (b *blowfish) encrypt(dst, src []byte) {
	l, r := b.halves(binary.BigEndian.Uint32(src), binary.BigEndian.Uint32(src[4:]))
	binary.BigEndian.PutUint32(dst, l)
	binary.BigEndian.PutUint32(dst[4:], r)
}
