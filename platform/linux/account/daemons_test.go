// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package account

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

func TestDaemons(t *testing.T) {
	t.Parallel()
	us := uint32(os.Geteuid())
	for _, tt := range []struct {
		ids string
		has []uint32
		bad bool
	}{
		{ids: "64.65", has: []uint32{0, us, 64}},
		{ids: " 64.65 ", has: []uint32{0, us, 64}},
		{ids: "64", bad: true},
		{ids: "condor.condor", bad: true},
		{ids: "-1.1", bad: true},
		{ids: "64.", bad: true},
	} {
		got, err := Daemons(tt.ids)
		if tt.bad != errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", tt.ids, err)
		}
		for _, uid := range tt.has {
			if !slices.Contains(got, uid) {
				t.Errorf("%q: %v lacks %d", tt.ids, got, uid)
			}
		}
		if slices.Contains(got, 65) {
			t.Errorf("%q: %v has the group", tt.ids, got)
		}
	}
	got, err := Daemons("")
	if err != nil || !slices.Contains(got, 0) || !slices.Contains(got, us) {
		t.Errorf("%v, %v", got, err)
	}
	if u, err := user.Lookup("condor"); err == nil {
		if id, _ := strconv.Atoi(u.Uid); !slices.Contains(got, uint32(id)) {
			t.Errorf("%v lacks condor's %s", got, u.Uid)
		}
	}
}
