// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import "github.com/execpoint/execpoint/lib/host"

// jobOOMScore makes the kernel take a job before anything of the system's.
const jobOOMScore = 800

// cpuWeight is the share of one core.
const cpuWeight = 100

// limits are those of the job.
func (a *activation) limits() host.Limits {
	core, stack := a.job.Limits()
	return a.limitsOf(&core, &stack)
}

// limitsOf are the limits of the job, or of a program before or after it.
func (a *activation) limitsOf(core, stack *int64) host.Limits {
	score := jobOOMScore
	return host.Limits{Core: core, Stack: stack, OOMScore: &score, Group: host.GroupLimits{CPUWeight: cpuWeight * a.plan.Cpus}}
}
