// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/run"
)

// TestStrangers words what is found, and bounds it.
func TestStrangers(t *testing.T) {
	t.Parallel()
	self := host.ProcID{PID: 1, Start: 1}
	found := []host.Program{
		{Proc: self, Name: "condor_ep", Args: []string{"condor_ep", "run", "x"}},
		{Proc: host.ProcID{PID: 2}, Name: "condor_ep", Args: []string{"condor_ep", "starter"}},
		{Proc: host.ProcID{PID: 3}, Name: "condor_ep", Args: []string{"condor_ep"}},
		{Proc: host.ProcID{PID: 4}, Name: "condor_ep"},
		{Proc: host.ProcID{PID: 5}, UID: 7, Name: "condor_ep", Args: []string{"\x1b", "run"}},
	}
	for pid := 10; pid < 30; pid++ {
		found = append(found, host.Program{Proc: host.ProcID{PID: pid}, Name: "condor_startd"})
	}
	told := strangers(found, map[host.ProcID]bool{self: true}, func(uid uint32) string { return fmt.Sprintf("u%d", uid) })
	all, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"another condor_ep run (process 5 of u7)", "(process 10 of u0)", "(process 12 of u0)", "17 more processes are called condor_startd"} {
		if !strings.Contains(string(all), want) {
			t.Errorf("no %q in %q", want, told)
		}
	}
	if len(told) != 5 || strings.ContainsAny(string(all), "\x1b") {
		t.Errorf("%q", told)
	}
}

// TestOthers: runs that are recorded and live are told of once, and not this one.
func TestOthers(t *testing.T) {
	t.Parallel()
	self, other, dead := host.ProcID{PID: 1, Start: 1}, host.ProcID{PID: 2, Start: 1}, host.ProcID{PID: 3, Start: 1}
	m := Machine{
		Runs: func() ([]run.Dir, []run.Owner, error) {
			return []run.Dir{{Number: 7}, {Number: 8}, {Number: 9}, {Number: 10}}, []run.Owner{{Proc: self}, {Proc: other}, {Proc: dead}, {}}, nil
		},
		Alive: func(p host.ProcID) bool { return p != dead },
		Running: func(...string) ([]host.Program, error) {
			return []host.Program{{Proc: other, Name: "condor_ep", Args: []string{"condor_ep", "run"}}, {Proc: host.ProcID{PID: 5}, UID: 4, Name: "condor_startd"}}, nil
		},
		UserName: func(uint32) (string, error) { return "", errors.New("no such user") },
	}
	got := m.Others(7)
	if len(got) != 2 || !strings.HasPrefix(got[0], "run 8 (process 2) uses this machine, too; ") || !strings.HasPrefix(got[1], "a condor_startd (process 5 of user 4) uses this machine, too; ") {
		t.Errorf("%q", got)
	}
	m.Running = func(...string) ([]host.Program, error) { return nil, errors.New("no") }
	if got := m.Others(8); len(got) != 1 || !strings.HasPrefix(got[0], "run 7 ") {
		t.Errorf("%q", got)
	}
}

func TestWantsPrograms(t *testing.T) {
	t.Parallel()
	job := func(requirements string) []*classad.Ad {
		ad := classad.NewAd()
		if err := ad.SetText("Requirements", requirements); err != nil {
			t.Fatal(err)
		}
		return []*classad.Ad{classad.NewAd(), ad}
	}
	for _, tt := range []struct {
		config string
		jobs   []*classad.Ad
		want   bool
	}{
		{"", nil, false},
		{"START = Memory > 5", job("TARGET.HasFileTransfer"), false},
		{"", job("TARGET.hasjava =?= true"), true},
		{"", job(`versionGE(SingularityVersion, "3")`), true},
		{"START = HasDocker", job("true"), true},
	} {
		snap, err := config.Parse("ep.conf", tt.config, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		if got := WantsPrograms(tt.jobs, snap); got != tt.want {
			t.Errorf("%q: %v", tt.config, got)
		}
	}
}
