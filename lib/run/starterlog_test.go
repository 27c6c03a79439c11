// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

func TestStarterLog(t *testing.T) {
	t.Parallel()
	job := classad.NewAd()
	job.SetInt("ClusterId", 12)
	job.SetInt("ProcId", 3)
	base := protocol.LogPlan{Path: "/log/StarterLog.slot1_2", Debug: []string{"", "D_PID"}, TimeFormat: "%m/%d/%y %H:%M:%S", MaxBytes: 10 << 20, Keep: 1}
	with := func(change func(*protocol.LogPlan)) *protocol.LogPlan {
		p := base
		change(&p)
		return &p
	}
	for name, tt := range map[string]struct {
		text string
		want *protocol.LogPlan
		bad  bool
	}{
		"as it is":      {"", &base, false},
		"by the slot":   {"STARTER_LOG_NAME_APPEND = Slot\n", &base, false},
		"true":          {"STARTER_LOG_NAME_APPEND = true\n", &base, false},
		"one for all":   {"STARTER_LOG_NAME_APPEND = False\n", with(func(p *protocol.LogPlan) { p.Path = "/log/StarterLog" }), false},
		"by cluster":    {"STARTER_LOG_NAME_APPEND = ClusterId\n", with(func(p *protocol.LogPlan) { p.Path = "/log/StarterLog.12" }), false},
		"by job":        {"STARTER_LOG_NAME_APPEND = JobId\n", with(func(p *protocol.LogPlan) { p.Path = "/log/StarterLog.12.3" }), false},
		"elsewhere":     {"STARTER_LOG = /x/S\n", with(func(p *protocol.LogPlan) { p.Path = "/x/S.slot1_2" }), false},
		"nowhere":       {"STARTER_LOG =\n", nil, false},
		"by age":        {"MAX_STARTER_LOG = 2 days\nMAX_NUM_STARTER_LOG = 5\n", with(func(p *protocol.LogPlan) { p.MaxBytes, p.MaxAge, p.Keep = 0, 48*time.Hour, 5 }), false},
		"more of it":    {"STARTER_DEBUG = D_FULLDEBUG\nALL_DEBUG = D_CAT\nLOGS_USE_TIMESTAMP = True\n", with(func(p *protocol.LogPlan) { p.Debug, p.Stamps = []string{"D_CAT", "D_FULLDEBUG"}, true }), false},
		"by the system": {"LOG_TO_SYSLOG = True\n", with(func(p *protocol.LogPlan) { p.Path, p.Syslog = "", true }), false},
		"how large is":  {"MAX_STARTER_LOG = much\n", nil, true},
	} {
		s, err := config.Load(config.Options{Root: "c", ReadFile: func(string) ([]byte, error) { return []byte("LOG = /log\n" + tt.text), nil }})
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := starterLog(s, s, "slot1_2", job)
		if (err != nil) != tt.bad {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: want -, got +\n%s", name, diff)
		}
	}
}
