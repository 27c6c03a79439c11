// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
)

// What a program without root's rights cannot keep jobs from stands in the ads, and is
// said once; what the owner wants and does not get is a warning. Starters begin in a
// user namespace where one can be had and something of it was asked for.
func TestContainment(t *testing.T) {
	t.Parallel()
	refused := errors.New("max_user_namespaces is 0")
	nothing := errors.New("no control groups")
	const shared = "Mounts,Processes,Network"
	for _, tt := range []struct {
		name, config  string
		users, memory error
		not           string // of the attribute, after Accounts
		own           bool
		warns         string // words of the lines that are warnings
	}{
		{"nobody asked", "", nil, nil, shared, false, ""},
		{"asked", "USE_PID_NAMESPACES = True\n", nil, nil, "", true, ""},
		{"asked by the default itself", "PER_JOB_NAMESPACES = True\n", nil, nothing, "Memory", true, ""},
		{"refused, nobody asked", "", refused, nothing, shared + ",Memory", false, ""},
		{"refused", "PER_JOB_NAMESPACES = True\n", refused, nil, shared, false, "Mounts Processes"},
		{"no network refused", "NO_JOB_NETWORKING = True\n", refused, nil, shared, false, "Mounts Processes Network"},
		{"no group of one's own", "CREATE_CGROUP_WITHOUT_ROOT = True\nUSE_PID_NAMESPACES = True\n", nil, nothing, "Memory", true, "Memory"},
	} {
		var said strings.Builder
		tries := 0
		n := &node{o: Options{Log: slog.New(slog.NewTextHandler(&said, nil)), Host: Host{Rootless: &Rootless{
			Users:  func() error { tries++; return tt.users },
			Memory: func(host.GroupPlace) error { return tt.memory },
		}}}}
		conf, err := config.Parse("text", tt.config, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		set, err := n.startersOf(conf)
		if err != nil {
			t.Fatal(err)
		}
		ad := classad.NewAd()
		set.contain.advertise(ad)
		want := "Accounts"
		if tt.not != "" {
			want += "," + tt.not
		}
		if got, _ := ad.EvalString(attrNotContained, nil); got != want || set.contain.users != tt.own {
			t.Errorf("%s: %s, own users %v", tt.name, got, set.contain.users)
		}
		n.tellUncontained(nil, set)
		var warned []string
		for line := range strings.Lines(said.String()) {
			if _, rest, ok := strings.Cut(line, "level=WARN msg=\"not contained: "); ok {
				word, _, _ := strings.Cut(rest, ":")
				warned = append(warned, word)
			}
		}
		if got := strings.Join(warned, " "); got != tt.warns {
			t.Errorf("%s: warned of %q, want %q\n%s", tt.name, got, tt.warns, &said)
		}
		// Another configuration tries nothing again, and what was said is not said again.
		again, err := n.startersOf(conf)
		before := said.String()
		n.tellUncontained(set, again)
		if err != nil || tries != 1 || said.String() != before {
			t.Errorf("%s: %d tries, %v, and says\n%s", tt.name, tries, err, strings.TrimPrefix(said.String(), before))
		}
	}
	// Root has nothing to say.
	n := &node{}
	set, err := n.startersOf(func() *config.Snapshot {
		c, err := config.Parse("text", "USE_PID_NAMESPACES = True\n", config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}())
	if err != nil || set.contain.users || set.contain.not != nil {
		t.Errorf("%+v, %v", set.contain, err)
	}
}
