// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/slot"
)

// Which cores a job is kept on, beside jobs that are on others. The cases with a name
// of the recordings have what jobs of HTCondor 25.14 saw.
func TestCoresOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config, job string
		cpus              float64
		cores             []int   // of the machine
		others            [][]int // of the jobs that run
		want              []int
		says              string
	}{
		{"aff-static", "ASSIGN_CPU_AFFINITY = True", "", 1, []int{0, 1}, nil, []int{0}, ""},
		{"aff-over", "ASSIGN_CPU_AFFINITY = True", "", 3, []int{0, 1}, nil, []int{0, 1}, ""},
		{"aff-enforce", "ENFORCE_CPU_AFFINITY = True\nSLOT1_CPU_AFFINITY = 1", "", 1, []int{0, 1}, nil, []int{1}, ""},
		{"the second job", "ASSIGN_CPU_AFFINITY = True", "", 1, []int{0, 1}, [][]int{{0}}, []int{1}, ""},
		{"those that are used least", "ASSIGN_CPU_AFFINITY = True", "", 2, []int{0, 1, 2, 3}, [][]int{{0, 1}, {0, 2}, nil}, []int{1, 3}, ""},
		{"a part of a core", "ASSIGN_CPU_AFFINITY = True", "", 0.5, []int{0, 1}, nil, []int{0}, ""},
		{"a machine's own numbers", "ASSIGN_CPU_AFFINITY = True", "", 1, []int{6, 7}, [][]int{{6}}, []int{7}, ""},
		{"a machine that does not tell", "ASSIGN_CPU_AFFINITY = True", "", 1, nil, nil, nil, ""},
		{"the job does not want it", "ASSIGN_CPU_AFFINITY = Wants", "Wants = false", 1, []int{0, 1}, nil, nil, ""},
		{"the job does", "ASSIGN_CPU_AFFINITY = MY.Wants", "Wants = 2", 1, []int{0, 1}, nil, []int{0}, ""},
		{"neither", "ASSIGN_CPU_AFFINITY = Wants", "", 1, []int{0, 1}, nil, nil, "neither true nor false"},
		{"by default", "SLOT1_CPU_AFFINITY = 1", "", 1, []int{0, 1}, nil, nil, ""},
		{"it goes before", "ASSIGN_CPU_AFFINITY = True\nENFORCE_CPU_AFFINITY = True\nSLOT1_CPU_AFFINITY = 1", "", 1, []int{0, 1}, nil, []int{0}, ""},
		{"by the slot's number", "ENFORCE_CPU_AFFINITY = True\nSLOT2_CPU_AFFINITY = 5", "", 1, []int{0, 1}, nil, []int{0}, ""},
		{"several", "ENFORCE_CPU_AFFINITY = True\nSLOT1_CPU_AFFINITY = 3, 1 , 3", "", 1, []int{0, 1}, nil, []int{1, 3}, ""},
		{"no number", "ENFORCE_CPU_AFFINITY = True\nSLOT1_CPU_AFFINITY = 0-3", "", 1, []int{0, 1}, nil, nil, "\"0-3\""},
		{"out of the world", "ENFORCE_CPU_AFFINITY = True\nSLOT1_CPU_AFFINITY = -1", "", 1, []int{0, 1}, nil, nil, "\"-1\""},
	} {
		s, err := config.Parse("ep.conf", tt.config+"\n", config.Options{Subsystem: "STARTER"})
		if err != nil {
			t.Fatal(tt.name, err)
		}
		job, err := classad.ParseAd(tt.job, classad.Old)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		var said strings.Builder
		n := &node{o: Options{}}
		n.o.Log = slog.New(slog.NewTextHandler(&said, nil))
		n.o.Host.Cores = func() []int { return tt.cores }
		n.starter.settings.Store(&starterSettings{any: typeSettings{config: s}})
		n.starter.live = map[claim.ActivationID]*activation{}
		for i, cores := range tt.others {
			n.starter.live[claim.ActivationID(rune('a'+i))] = &activation{cores: cores}
		}
		got := n.coresOf(ep.StartStarter{Slot: slot.ID{N: 1, Sub: 1}, Job: job, Given: slot.Quantities{Cpus: tt.cpus}}, clock.Instant{})
		if !slices.Equal(got, tt.want) || (tt.says == "") != (said.Len() == 0) || !strings.Contains(strings.ReplaceAll(said.String(), `\`, ""), tt.says) {
			t.Errorf("%s: %v, want %v; it says %q", tt.name, got, tt.want, said.String())
		}
	}
}
