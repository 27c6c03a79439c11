// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package mount

import "strings"

// Point is what mountinfo says of one mount.
type Point struct {
	Number string // of the file system's device, "8:1"
	Dir    string // where it is mounted
	Type   string // "ext4"
	Source string // "/dev/sda1", for one that lies on a device
}

// ParsePoint reads a line of mountinfo; false if it is none.
func ParsePoint(line string) (Point, bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 5 || len(right) < 2 {
		return Point{}, false
	}
	return Point{Number: left[2], Dir: unescape(left[4]), Type: unescape(right[0]), Source: unescape(right[1])}, true
}

// unescape undoes \040 and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			n := 0
			for _, c := range []byte(s[i+1 : i+4]) {
				if c < '0' || c > '7' {
					n = -1
					break
				}
				n = n*8 + int(c-'0')
			}
			if n >= 0 && n < 256 {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
