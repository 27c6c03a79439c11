// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

func TestGIDsFrom(t *testing.T) {
	t.Parallel()
	root := Host{Account: func(string) (*host.Identity, error) { return nil, errors.New("nobody") }}
	for _, tt := range []struct {
		text        string
		host        Host
		doubt, want string // a part of what is said; "-" for groups
	}{
		{"", root, "", ""},
		{"USE_GID_PROCESS_TRACKING = false\nMIN_TRACKING_GID = 7", root, "", ""},
		{"USE_GID_PROCESS_TRACKING = 1 == 1\nMIN_TRACKING_GID = 750\nMAX_TRACKING_GID = 757", root, "", "-"},
		{"USE_GID_PROCESS_TRACKING = true\nMIN_TRACKING_GID = 750\nMAX_TRACKING_GID = 757", Host{}, "only root", ""},
		{"USE_GID_PROCESS_TRACKING = true", root, "", "it is 0 to 0"},
		{"USE_GID_PROCESS_TRACKING = true\nMIN_TRACKING_GID = 10\nMAX_TRACKING_GID = 9", root, "", "it is 10 to 9"},
		{"USE_GID_PROCESS_TRACKING = true\nMIN_TRACKING_GID = -5\nMAX_TRACKING_GID = 9", root, "", "it is -5 to 9"},
		{"USE_GID_PROCESS_TRACKING = true\nMIN_TRACKING_GID = 5\nMAX_TRACKING_GID = 4294967295", root, "", "it is 5 to 4294967295"},
		{"USE_GID_PROCESS_TRACKING = true\nMIN_TRACKING_GID = many", root, "", "MIN_TRACKING_GID"},
	} {
		s, err := config.Parse("test", tt.text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		g, doubt, err := gidsFrom(s, tt.host)
		switch {
		case tt.want == "-" && (g == nil || err != nil), tt.want != "-" && g != nil:
			t.Errorf("%q: %+v, %v", tt.text, g, err)
		case tt.want != "-" && (err == nil) != (tt.want == ""), err != nil && !strings.Contains(err.Error(), tt.want):
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		case (doubt == nil) != (tt.doubt == ""), doubt != nil && !strings.Contains(doubt.Error(), tt.doubt):
			t.Errorf("%q: doubt %v, want %q", tt.text, doubt, tt.doubt)
		}
	}
}

func TestGIDs(t *testing.T) {
	t.Parallel()
	var broken error
	g := &gids{first: 10, last: 13, used: make(map[uint32]bool), name: func(gid uint32) (string, error) {
		if gid == 11 {
			return "staff", nil
		}
		if broken != nil {
			return "", broken
		}
		return "", errs.E("test", errs.NotFound, "", errors.New("no such group"))
	}}
	take := func(want uint32) {
		t.Helper()
		if gid, err := g.take(); gid != want || err != nil {
			t.Fatalf("%d, %v; want %d", gid, err, want)
		}
	}
	take(10)
	take(12) // 11 has members
	take(13)
	gid, err := g.take()
	if gid != 0 || !errs.Is(err, errs.Transient) || !strings.Contains(err.Error(), "no tracking group id is left: 3 running jobs have one each, and 1 belong") {
		t.Errorf("%d, %v", gid, err)
	}
	g.give(12)
	g.give(0)
	take(12)
	g.give(10)
	broken = errors.New("/etc/group cannot be read")
	if gid, err := g.take(); gid != 0 || !errors.Is(err, broken) {
		t.Errorf("%d, %v", gid, err)
	}
	var none *gids
	none.give(3)
	if gid, err := none.take(); gid != 0 || err != nil {
		t.Errorf("%d, %v", gid, err)
	}
}
