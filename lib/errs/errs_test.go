// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package errs

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
		kind Kind
	}{
		{E("slot.Carve", Exhausted, "slot1", errors.New("4 cpus of 2")), "slot.Carve slot1: exhausted: 4 cpus of 2", Exhausted},
		{E("run", Other, "slot1", E("slot.Carve", Exhausted, "slot1", errors.New("4 cpus"))), "run: slot.Carve slot1: exhausted: 4 cpus", Exhausted},
		{E("open", NotFound, "/x", nil), "open /x: not found", NotFound},
		{E("open", Other, "", fs.ErrNotExist), "open: file does not exist", Other},
		{E("a", Invalid, "k", E("b", Broken, "j", nil)), "a k: invalid: b j: broken", Invalid},
		{fmt.Errorf("wrapped: %w", E("open", Denied, "f", nil)), "wrapped: open f: denied", Denied},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
		if got := KindOf(tt.err); got != tt.kind {
			t.Errorf("%v: kind %v, want %v", tt.err, got, tt.kind)
		}
	}
}

func TestErrorUnwraps(t *testing.T) {
	t.Parallel()
	err := E("open", Other, "f", fmt.Errorf("sandbox: %w", fs.ErrPermission))
	if !errors.Is(err, fs.ErrPermission) {
		t.Error("the cause is not reachable")
	}
	if Is(err, Denied) {
		t.Error("a plain cause must not invent a kind")
	}
	if Is(nil, Internal) || KindOf(nil) != Other {
		t.Error("nil has no kind")
	}
}
