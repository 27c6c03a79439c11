// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

func TestTrackedBy(t *testing.T) {
	t.Parallel()
	const (
		marks   = "parentage, session and a mark in the environment"
		unseen  = "a process that has left its session and its environment, if its starter is killed before it was seen; " + outside
		groups2 = "control groups of version 2 below htcondor"
	)
	none, ns := errors.New("none are mounted"), errors.New("no rights")
	for _, tt := range []struct {
		name            string
		has             host.Tracking
		pids            bool
		gids            *gids
		root, dedicated bool
		want            tracking
	}{
		{name: "a user without groups", has: host.Tracking{NoGroups: none, NoSpaces: ns}, pids: true, want: tracking{marks, unseen, "none are mounted"}},
		{name: "a user with delegated ones", has: host.Tracking{Groups: 2, NoSpaces: ns}, dedicated: true,
			want: tracking{groups2 + "; " + marks, "a process that moves to another control group, which its user may; " + outside, ""}},
		{name: "root", has: host.Tracking{Groups: 1}, root: true, dedicated: true,
			want: tracking{"control groups of version 1 below htcondor; the account, where it is dedicated; " + marks,
				"a process that moves to another control group, for which it needs the rights of root; " + outside, ""}},
		{name: "root with group ids alone", has: host.Tracking{NoGroups: none}, root: true, gids: &gids{first: 750, last: 757},
			want: tracking{"a group id for each job, 750 to 757; " + marks, "a process that gives up its groups, for which it needs the rights of root; " + outside, "none are mounted"}},
		{name: "root with namespaces", has: host.Tracking{Groups: 2}, root: true, pids: true,
			want: tracking{"a PID namespace for each job; " + groups2 + "; " + marks, outside, ""}},
	} {
		set := &protocol.Settings{Cgroup: "htcondor", Space: protocol.SpaceSettings{PerJob: true, PIDs: tt.pids}}
		if got := trackedBy(set, tt.has, tt.gids, tt.root, tt.dedicated); got != tt.want {
			t.Errorf("%s:\n%+v, want\n%+v", tt.name, got, tt.want)
		}
	}
}
