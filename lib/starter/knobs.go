// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// Knobs are the configuration that a starter reads from Plan.Config. A knob
// that is not in the plan is unset: defaults are applied by who writes the
// plan. For each custom resource of the machine there are two more, see
// ResourceKnobs.
var Knobs = [...]string{
	"AUTO_SET_NVIDIA_VISIBLE_DEVICES",
	"BASE_CGROUP",
	"BIN",
	"CGROUP_POLLING_INTERVAL",
	"CHIRP_DELAYED_UPDATE_PREFIX",
	"CREATE_CGROUP_WITHOUT_ROOT",
	"JOB_EXECDIR_PERMISSIONS",
	"JOB_INHERITS_STARTER_ENVIRONMENT",
	"JOB_RENICE_INCREMENT",
	"STARTER_INITIAL_UPDATE_INTERVAL",
	"STARTER_JOB_ENVIRONMENT",
	"STARTER_NUM_THREADS_ENV_VARS",
	"STARTER_SETS_HOME_ENV",
	"STARTER_UPDATE_INTERVAL",
}

// ResourceKnobs are the knobs that say how a job is told which assets of the
// custom resource name it has.
func ResourceKnobs(name string) [2]string {
	return [2]string{"ENVIRONMENT_FOR_Assigned" + name, "ENVIRONMENT_VALUE_FOR_UnAssigned" + name}
}

// Intervals that hold where the plan says nothing.
const (
	firstUpdate = 8 * time.Second
	nextUpdates = 300 * time.Second
	polling     = 5 * time.Second
)

func (p *Plan) knob(name string) string { return p.Config[name] }

// truth reads a knob that is a boolean.
func (p *Plan) truth(name string) bool {
	switch strings.ToLower(strings.TrimSpace(p.knob(name))) {
	case "true", "t", "yes", "y", "1":
		return true
	}
	return false
}

// seconds reads a knob that is a number of seconds, at least one.
func (p *Plan) seconds(name string, otherwise time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(p.knob(name)), 64)
	if err != nil || !(n >= 1 && n <= 1e9) { // NaN too
		return otherwise
	}
	return time.Duration(n * float64(time.Second))
}

// nice evaluates JOB_RENICE_INCREMENT against the job ad alone. What is no
// number counts as 10.
func (p *Plan) nice(job *classad.Ad, now time.Time) int {
	text := strings.TrimSpace(p.knob("JOB_RENICE_INCREMENT"))
	if text == "" {
		return 0
	}
	if n, err := strconv.Atoi(text); err == nil {
		return min(max(n, 0), 19)
	}
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		return 10
	}
	n, ok := e.Eval(&classad.Env{My: job, Now: now}).AsNumber()
	if !ok {
		return 10
	}
	return int(min(max(n, 0), 19))
}
