// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a version of HTCondor.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads "$CondorVersion: X.Y.Z … $" or just "X.Y.Z".
func ParseVersion(s string) (Version, bool) {
	if rest, ok := strings.CutPrefix(s, "$CondorVersion: "); ok {
		number, words, _ := strings.Cut(rest, " ")
		if !strings.HasSuffix(words, " $") || strings.TrimSpace(strings.TrimSuffix(words, "$")) == "" {
			return Version{}, false
		}
		s = number
	}
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return Version{}, false
	}
	var n [3]int
	for i, p := range parts {
		u, err := strconv.ParseUint(p, 10, 16)
		if err != nil || i > 0 && u > 99 {
			return Version{}, false
		}
		n[i] = int(u)
	}
	return Version{n[0], n[1], n[2]}, n[0] >= 6
}

// AtLeast reports whether v is that version or a newer one.
func (v Version) AtLeast(major, minor, patch int) bool {
	if v.Major != major {
		return v.Major > major
	}
	if v.Minor != minor {
		return v.Minor > minor
	}
	return v.Patch >= patch
}

// String returns "X.Y.Z".
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }
