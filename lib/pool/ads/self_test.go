// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
)

// The share of a processor is that since the last measurement, and two that
// follow one another at once agree.
func TestMonitor(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	var m monitor
	for _, tt := range []struct {
		after, cpu time.Duration
		want       string
	}{
		{10 * time.Second, time.Second, "10.0"},
		{10*time.Second + time.Millisecond, 2 * time.Second, "10.0"},
		{20 * time.Second, 6 * time.Second, "50.0"},
		{30 * time.Second, 6 * time.Second, "0.0"},
	} {
		ad := classad.NewAd()
		m.show(ad, Self{Usage: host.Usage{UserCPU: tt.cpu, RSSKiB: 7, ImageSizeKiB: 9}, Sockets: 3, Sessions: 5}, start.Add(tt.after), start)
		for name, want := range map[string]string{
			"MonitorSelfCPUUsage": tt.want, "MonitorSelfResidentSetSize": "7", "MonitorSelfImageSize": "9",
			"MonitorSelfRegisteredSocketCount": "3", "MonitorSelfSecuritySessions": "5",
		} {
			e, _ := ad.Lookup(name)
			if e == nil || e.String() != want {
				t.Errorf("after %v: %s is %v, want %s", tt.after, name, e, want)
			}
		}
		if age, _ := ad.EvalInt("MonitorSelfAge", nil); age != int64(tt.after/time.Second) {
			t.Errorf("after %v the age is %d", tt.after, age)
		}
	}
}
