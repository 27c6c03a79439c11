// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"time"

	"github.com/execpoint/execpoint/lib/host"
)

// rarestPoll is how long a job that does nothing may go without a look: the time that
// HTCondor's condor_procd has between its looks (PROCD_MAX_SNAPSHOT_INTERVAL).
const rarestPoll = time.Minute

// polls are the looks at what a running job uses, between the reports, for its peaks.
// A job that waits uses no processor time, so it can neither have grown nor have
// started anything: each look that finds nothing new puts the next one off.
type polls struct {
	timer *time.Timer
	pause time.Duration
	seen  host.Usage
}

// begin looks at a run of a job, every so often.
func (p *polls) begin(every time.Duration) {
	p.stop()
	*p = polls{timer: time.NewTimer(every), pause: every}
}

// again plans the look after one that found this usage.
func (p *polls) again(every time.Duration, is host.Usage) {
	p.pause = nextPause(every, p.pause, p.seen, is)
	p.seen = is
	p.timer.Reset(p.pause)
}

func (p *polls) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// nextPause is every when a job has done something since the last look, else twice
// the last pause, within rarestPoll. An owner who asks for rarer looks has them.
func nextPause(every, last time.Duration, was, is host.Usage) time.Duration {
	if was.UserCPU != is.UserCPU || was.SysCPU != is.SysCPU || was.Procs != is.Procs || was.RSSKiB != is.RSSKiB {
		return every
	}
	return max(every, min(2*last, rarestPoll))
}
