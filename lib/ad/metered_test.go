// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/slot"
)

// What monitors measured is told as averages and peaks; policies see the figures
// that these are made of.
func TestMetered(t *testing.T) {
	t.Parallel()
	const device = "DeviceSQUIDsAverageUsage = 0.25; DeviceSQUIDsMemoryPeakUsage = 90.0; "
	idle := "UptimeSQUIDsSeconds = 25.0; LastUpdateUptimeSQUIDsSeconds = 95; UptimeSQUIDsMemoryPeakUsage = 90.0; LastUpdateUptimeSQUIDsMemoryPeakUsage = 95; SQUIDsMemoryUsage = 7.0"
	started := idle + "; StartOfJobUptimeSQUIDsSeconds = 10.0"
	for _, c := range []struct{ lines, published, want string }{
		{"", "", ""},
		{"", idle, device + "SQUIDsMemoryUsage = 7.0; "},
		{"ADVERTISE_CMR_UPTIME_SECONDS = true\n", idle, device + "SQUIDsMemoryUsage = 7.0; UptimeSQUIDsSeconds = 25.0; "},
		{"", started, device + "SQUIDsMemoryUsage = 7.0; "},
		{"", started + "; FirstUpdateUptimeSQUIDsSeconds = 65", device + "SQUIDsAverageUsage = 0.5; SQUIDsMemoryUsage = 7.0; "},
		{"ADVERTISE_CMR_UPTIME_SECONDS = true\n", started + "; FirstUpdateUptimeSQUIDsSeconds = 65", device + "SQUIDsAverageUsage = 0.5; SQUIDsMemoryUsage = 7.0; "},
		{"", started + "; FirstUpdateUptimeSQUIDsSeconds = 95", device + "SQUIDsMemoryUsage = 7.0; "}, // no time to divide by
		{"", "uptimesquidsseconds = 25.0; UptimeSeconds = \"text\"; UptimeOther = 1; LastUpdate = 95", "DevicesquidsAverageUsage = 0.25; LastUpdate = 95; UptimeOther = 1; "},
	} {
		m, _ := machineWith(t, c.lines)
		a, _ := m.Slot(slot.ID{N: 1})
		published := classad.NewAd()
		for line := range strings.SplitSeq(c.published, "; ") {
			if name, value, ok := strings.Cut(line, " = "); ok {
				if err := published.SetText(name, value); err != nil {
					t.Fatal(err)
				}
			}
		}
		now := goldenStart.Add(100 * time.Second)
		before := a.Snapshot(now)
		m.Publish("monitor", slot.ID{}, published)
		got := ""
		after := a.Snapshot(now)
		for _, name := range slices.Sorted(slices.Values(after.Names())) {
			e, _ := after.Lookup(name)
			if old, ok := before.Lookup(name); !ok || old.String() != e.String() {
				got += name + " = " + e.String() + "; "
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s%s: %s", c.lines, c.published, d)
		}
		for name := range published.All() {
			if _, ok := a.Ad().Lookup(name); !ok {
				t.Errorf("policies do not see %s", name)
			}
		}
	}
}
