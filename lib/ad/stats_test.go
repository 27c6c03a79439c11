// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/machine"
)

// Statistics count since the beginning and for the last five quanta of four
// minutes.
func TestStatistics(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "")
	now := goldenStart
	look := func(names ...string) string {
		d := m.Daemon(nil, now)
		var out []string
		for _, n := range names {
			for _, prefix := range []string{"", "Recent"} {
				if e, ok := d.Lookup(prefix + n); ok {
					out = append(out, e.String())
				} else {
					out = append(out, "-")
				}
			}
		}
		return strings.Join(out, " ")
	}
	expect(t, "at first", look("JobStarts", "JobPreemptions", "JobBusyTimeCount", "JobBusyTimeAvg"), "0 0 0 0 0 0 - -")
	m.JobStarted(now)
	m.JobStarted(now)
	m.Preempted(true, now)
	m.Preempted(false, now)
	m.Preempted(false, now)
	m.StarterLived(3*time.Second, now)
	m.StarterLived(time.Second, now)
	m.JobLasted(500*time.Millisecond, now)
	expect(t, "counts", look("JobStarts", "JobPreemptions", "JobRankPreemptions", "JobUserPrioPreemptions"), "2 2 3 3 1 1 2 2")
	expect(t, "starters", look("JobBusyTimeCount", "JobBusyTimeAvg", "JobBusyTimeMin", "JobBusyTimeMax"), "2 2 2.0 2.0 1.0 1.0 3.0 3.0")
	m.ClaimAsked(now)
	m.ActivationAsked(now)
	m.ActivationAsked(now)
	expect(t, "requests", look("ClaimRequests", "ActivationRequests"), "1 1 2 2")
	m.Refresh(machine.Sample{At: now}, now)
	shared := m.Ad()
	for name, want := range map[string]int64{"JobStarts": 2, "RecentJobStarts": 2, "JobRankPreemptions": 1, "ClaimRequests": 1, "RecentActivationRequests": 2} {
		if got, ok := shared.EvalInt(name, nil); !ok || got != want {
			t.Errorf("slots show %s = %d, %v; want %d", name, got, ok, want)
		}
	}
	expect(t, "jobs", look("JobDurationCount", "JobDurationAvg"), "1 1 0.5 0.5")
	now = goldenStart.Add(19 * time.Minute)
	m.JobStarted(now)
	m.StarterLived(8*time.Second, now)
	expect(t, "within the window", look("JobStarts", "JobBusyTimeMax", "JobBusyTimeMin"), "3 3 8.0 8.0 1.0 1.0")
	now = goldenStart.Add(20 * time.Minute)
	expect(t, "the first quantum is gone", look("JobStarts", "JobBusyTimeMax", "JobBusyTimeMin"), "3 1 8.0 8.0 1.0 8.0")
	now = goldenStart.Add(1000 * time.Hour)
	expect(t, "long after", look("JobStarts", "JobBusyTimeCount", "JobBusyTimeMin"), "3 0 3 0 1.0 -")
}
