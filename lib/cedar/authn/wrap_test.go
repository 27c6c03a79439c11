// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"encoding/hex"
	"testing"
)

// The expected bytes are those of openssl enc -des-ede3-cfb.
func TestWrap(t *testing.T) {
	t.Parallel()
	key, err := hex.DecodeString("000102030405060708090a0b0c0d0e0f1011121314151617")
	if err != nil {
		t.Fatal(err)
	}
	r := Result{wrapKey: seal(key)}
	for text, want := range map[string]string{
		"session key of 24 bytes!": "fa2eb07b3d49ca613f48c5ef1804f79bf9d58e11187aa21f",
		"odd-sized 13b":            "e62fa725274fde243bc2751612",
	} {
		got, err := r.Wrap(Secret(text))
		if err != nil || hex.EncodeToString(got) != want {
			t.Errorf("%q: %x, %v, want %s", text, []byte(got), err, want)
		}
		if back, err := r.Unwrap(got); err != nil || string(back) != text {
			t.Errorf("%q came back as %q, %v", text, []byte(back), err)
		}
	}
	for _, bad := range []int{0, maxWrapped + 1} {
		if _, err := r.Wrap(make(Secret, bad)); err == nil {
			t.Errorf("%d bytes were wrapped", bad)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, want string }{
		{"ab", "ababa"},
		{"abcde", "abcde"},
		{"abcdefg", "\x07\x05cde"}, // f and g are added to a and b
	} {
		if got := fold([]byte(tt.key), 5); string(got) != tt.want {
			t.Errorf("%q: %q, want %q", tt.key, got, tt.want)
		}
	}
}
