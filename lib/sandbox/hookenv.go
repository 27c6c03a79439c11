// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"

	"github.com/execpoint/execpoint/lib/jobenv"
)

// HookEnvironment returns the environment of a program of the machine's owner that runs
// beside the job, sorted by name: the starter's own, and over that what the starter says
// to each program of a job. Nothing of it is the job's to choose: a job that could set
// LD_PRELOAD or PATH would say what the owner's program does.
func HookEnvironment(s EnvSpec) (list []string, problems []string) {
	env := make(jobenv.Env, 48)
	for _, entry := range s.Inherited {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	problems = assigned(env, s)
	s.publish(env)
	s.threads(env)
	env.MergeList(s.More)
	return env.List(), problems
}
