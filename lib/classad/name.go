// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"hash/maphash"
	"math/bits"
)

// name is an attribute name as written, with what the evaluator wants to know
// about it worked out once: names are compared without regard to the case of
// ASCII letters.
type name struct {
	text string
	hash uint32
	role role
}

// role marks the names that mean something without being an attribute.
type role uint8

const (
	roleNone role = iota
	// Found in every ad that has no attribute of that name.
	roleMy // MY, SELF
	roleParent
	roleRoot // ROOT, TOPLEVEL
	roleCurrentTime
	// Found around the two ads of a match.
	roleTarget // TARGET, OTHER
	roleAd     // AD
	roleLeft
	roleRight
	roleLeftContext
	roleRightContext
	roleSymmetricMatch
	roleLeftMatchesRight
	roleRightMatchesLeft
	roleLeftRank
	roleRightRank
)

// firstContextRole is the first role that only a match gives a meaning.
const firstContextRole = roleTarget

// roleOf returns what a name means without being an attribute.
func roleOf(s string) role {
	is := func(word string, r role) role {
		if equalNames(s, word) {
			return r
		}
		return roleNone
	}
	switch len(s) {
	case 2:
		return max(is("my", roleMy), is("ad", roleAd))
	case 4:
		switch lower(s[0]) {
		case 's':
			return is("self", roleMy)
		case 'r':
			return max(is("root", roleRoot), is("rctx", roleRightContext))
		case 'l':
			return max(is("left", roleLeft), is("lctx", roleLeftContext))
		}
	case 5:
		return max(is("other", roleTarget), is("right", roleRight))
	case 6:
		return max(is("target", roleTarget), is("parent", roleParent))
	case 8:
		return is("toplevel", roleRoot)
	case 11:
		return is("currenttime", roleCurrentTime)
	case 13:
		return is("leftrankvalue", roleLeftRank)
	case 14:
		return max(is("symmetricmatch", roleSymmetricMatch), is("rightrankvalue", roleRightRank))
	case 16:
		return max(is("leftmatchesright", roleLeftMatchesRight), is("rightmatchesleft", roleRightMatchesLeft))
	}
	return roleNone
}

func newName(s string) name {
	return name{text: s, hash: hashName(s), role: roleOf(s)}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// hashKey makes hashes differ from process to process, so that nobody can
// prepare an ad of names that collide.
var hashKey = maphash.String(maphash.MakeSeed(), "classad")

// hashName hashes a name without regard to case: bit 5, in which the cases
// differ, is set in every byte.
func hashName(s string) uint32 {
	const fold, factor = 0x2020202020202020, 0x9E3779B97F4A7C15
	h := hashKey ^ uint64(len(s))
	for ; len(s) > 8; s = s[8:] {
		hi, lo := bits.Mul64(h^(load(s)|fold), factor)
		h = hi ^ lo
	}
	var w uint64
	if len(s) == 8 {
		w = load(s)
	} else {
		for i := range len(s) {
			w |= uint64(s[i]) << (8 * i)
		}
	}
	hi, lo := bits.Mul64(h^(w|fold), factor^hashKey<<1)
	h = hi ^ lo
	return uint32(h ^ h>>32)
}

// load returns the first eight bytes of s.
func load(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// equalNames compares without regard to the case of ASCII letters.
func equalNames(a, b string) bool {
	return a == b || len(a) == len(b) && compareFold(a, b) == 0
}

// compareFold orders like strcasecmp in the C locale.
func compareFold(a, b string) int {
	for i := range min(len(a), len(b)) {
		ca, cb := a[i], b[i]
		if ca == cb {
			continue
		}
		if ca, cb = lower(ca), lower(cb); ca != cb {
			return int(ca) - int(cb)
		}
	}
	return len(a) - len(b)
}

// canonicalLess is the order in which an ad shows its attributes: the
// shortest name first, names of one length alphabetically without case.
func canonicalLess(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return compareFold(a, b)
}
