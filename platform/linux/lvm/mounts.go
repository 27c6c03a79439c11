// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lvm

import "strings"

// mountOf reads where a device is mounted by a line of mountinfo.
func mountOf(line, device string) (string, bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 5 || len(right) < 2 || unescape(right[1]) != device {
		return "", false
	}
	return unescape(left[4]), true
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
