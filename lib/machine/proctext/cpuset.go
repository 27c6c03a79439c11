// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"bytes"
	"iter"
	"math/bits"
)

// maxCPU bounds a processor number. Linux itself is built for at most 8192.
const maxCPU = 1 << 16

// CPUSet is a set of processor numbers. The zero value is the empty set.
type CPUSet struct{ words []uint64 }

// ParseCPUSet reads the kernel's list form, such as "0-3,8,10-11". An empty
// text is the empty set.
func ParseCPUSet(text []byte) (CPUSet, error) {
	var s CPUSet
	rest := bytes.TrimSpace(text)
	for len(rest) > 0 {
		var item []byte
		var more bool
		item, rest, more = bytes.Cut(rest, []byte(","))
		if more && len(rest) == 0 {
			return CPUSet{}, malformed("processor list", text)
		}
		from, to, isRange := bytes.Cut(bytes.TrimSpace(item), []byte("-"))
		lo, err := atoi(from)
		hi := lo
		if err == nil && isRange {
			hi, err = atoi(to)
		}
		if err != nil || hi < lo || hi >= maxCPU {
			return CPUSet{}, malformed("processor list", text)
		}
		for n := lo; n <= hi; n++ {
			s.Add(int(n))
		}
	}
	return s, nil
}

// Add puts n, which must be in [0, 65536), into the set.
func (s *CPUSet) Add(n int) {
	for len(s.words) <= n/64 {
		s.words = append(s.words, 0)
	}
	s.words[n/64] |= 1 << (n % 64)
}

// Has reports whether n is in the set.
func (s CPUSet) Has(n int) bool {
	return n >= 0 && n/64 < len(s.words) && s.words[n/64]&(1<<(n%64)) != 0
}

// Len returns the number of processors in the set.
func (s CPUSet) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Min returns the lowest processor of the set, -1 when it is empty.
func (s CPUSet) Min() int {
	for i, w := range s.words {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// And returns the processors that are in both sets.
func (s CPUSet) And(t CPUSet) CPUSet {
	n := min(len(s.words), len(t.words))
	and := CPUSet{words: make([]uint64, n)}
	for i := range n {
		and.words[i] = s.words[i] & t.words[i]
	}
	return and
}

// All yields the processors of the set in ascending order.
func (s CPUSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}
