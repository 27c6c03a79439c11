// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

// Keys are in lines as OpenSSL's reader of base64 wants them, of which only
// the last is shorter, with no line end behind it.
func TestArmoured(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 47, 48, 49, 96, 97, 1679} {
		key := bytes.Repeat([]byte("k\x00"), n)[:n]
		text := armoured(key)
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if last := i == len(lines)-1; len(line) > 64 || !last && len(line) != 64 || last && line == "" && n > 0 {
				t.Errorf("%d bytes: line %d is %q", n, i, line)
			}
		}
		if back, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", "")); err != nil || !bytes.Equal(back, key) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
