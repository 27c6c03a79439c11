// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

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

var roleNames = map[string]role{
	"my": roleMy, "self": roleMy, "parent": roleParent, "root": roleRoot, "toplevel": roleRoot,
	"currenttime": roleCurrentTime, "target": roleTarget, "other": roleTarget, "ad": roleAd,
	"left": roleLeft, "right": roleRight, "lctx": roleLeftContext, "rctx": roleRightContext,
	"symmetricmatch": roleSymmetricMatch, "leftmatchesright": roleLeftMatchesRight,
	"rightmatchesleft": roleRightMatchesLeft, "leftrankvalue": roleLeftRank, "rightrankvalue": roleRightRank,
}

// longestRole is the length of the longest name in roleNames.
const longestRole = len("leftmatchesright")

func newName(s string) name {
	n := name{text: s, hash: hashName(s)}
	if len(s) <= longestRole {
		var buf [longestRole]byte
		for i := range len(s) {
			buf[i] = lower(s[i])
		}
		n.role = roleNames[string(buf[:len(s)])]
	}
	return n
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// hashName is FNV-1a over the lower-case bytes of s.
func hashName(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h ^= uint32(lower(s[i]))
		h *= 16777619
	}
	return h
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
