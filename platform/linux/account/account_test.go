// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package account

import (
	"slices"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	u, err := Lookup("daemon")
	if err != nil || u.UID != 1 || u.GID != 1 || u.Home != "/usr/sbin" || slices.Contains(u.Groups, u.GID) {
		t.Errorf("daemon: %+v, %v", u, err)
	}
	for name, kind := range map[string]errs.Kind{"nobody-of-this-name": errs.NotFound, `domain\user`: errs.NotFound, "": errs.NotFound, "root": errs.Denied} {
		if u, err := Lookup(name); !errs.Is(err, kind) || u != nil {
			t.Errorf("%q: %+v, %v", name, u, err)
		}
	}
	for _, text := range []string{"", "-1", "4294967295", "x"} {
		if n, err := number(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}

func TestGroupName(t *testing.T) {
	t.Parallel()
	for gid, want := range map[uint32]string{0: "root", 1: "daemon"} {
		if got, err := GroupName(gid); got != want || err != nil {
			t.Errorf("%d: %q, %v", gid, got, err)
		}
	}
	if got, err := GroupName(1<<32 - 2); got != "" || !errs.Is(err, errs.NotFound) {
		t.Errorf("nobody's: %q, %v", got, err)
	}
}
