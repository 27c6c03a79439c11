// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// Words are JobState.
var Words = [...]string{Runs: "Running", Suspended: "Suspended", Exited: "Exited"}

// cpuSeconds are whole seconds, cut off.
func cpuSeconds(d time.Duration) float64 { return float64(d / time.Second) }

// RanFor is how long the present run has lasted, 0 before its end.
func (s State) RanFor() time.Duration {
	if s.Started.IsZero() || s.Ended.IsZero() {
		return 0
	}
	return s.Ended.Sub(s.Started)
}

// Publish says in ad what is known of the job's processes. word is its JobState.
func (s State) Publish(ad *classad.Ad, word string) {
	ad.SetReal("RemoteSysCpu", cpuSeconds(s.Usage.SysCPU))
	ad.SetReal("RemoteUserCpu", cpuSeconds(s.Usage.UserCPU))
	if run := s.RanFor(); run > 0 {
		ad.SetReal("CpusUsage", (s.Usage.SysCPU+s.Usage.UserCPU).Seconds()/run.Seconds())
	}
	ad.SetInt("ImageSize", s.Usage.ImageSizeKiB)
	ad.SetString("JobState", word)
	ad.SetInt("NumPids", int64(s.Usage.Procs))
	if s.Grouped {
		ad.SetBool("CgroupEnforced", true)
	}
	if !s.Main.IsZero() {
		ad.SetInt("JobPid", int64(s.Main.PID))
	}
	if !s.Started.IsZero() {
		ad.SetInt("JobStartDate", s.Started.Unix())
	}
	if s.Ended.IsZero() {
		return
	}
	ad.SetReal("JobDuration", s.RanFor().Seconds())
	if s.Status.Core {
		ad.SetBool("JobCoreDumped", true)
	}
	ad.SetBool("ExitBySignal", s.Status.Signal != 0)
	if s.Status.Signal != 0 {
		ad.SetInt("ExitSignal", int64(s.Status.Signal))
		ad.SetString("ExitReason", "died on "+SignalText(s.Status.Signal))
	} else {
		ad.SetInt("ExitCode", int64(s.Status.Code))
	}
}
