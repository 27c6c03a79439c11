// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/daemon"
)

// Knobs are the configuration that a starter reads from Plan.Config. A knob
// that is not in the plan is unset: defaults are applied by who writes the
// plan. For each custom resource of the machine there are two more, see
// ResourceKnobs.
var Knobs = [...]string{
	"ALLOW_OUTPUT_OUTSIDE_SCRATCH",
	"ALWAYS_REUSEADDR",
	"AUTO_SET_NVIDIA_VISIBLE_DEVICES",
	"BASE_CGROUP",
	"BIN",
	"BIND_ALL_INTERFACES",
	"CCB_CLIENT_STREAMING",
	"CGROUP_POLLING_INTERVAL",
	"CHECK_REACTIVATE_AFTER_CHECKPOINT",
	"CHIRP_DELAYED_UPDATE_MAX_ATTRS",
	"CHIRP_DELAYED_UPDATE_PREFIX",
	"CONDOR_SSH_TO_JOB_FAKE_PASSWD_ENTRY",
	"CREATE_CGROUP_WITHOUT_ROOT",
	"DAEMON_SOCKET_DIR",
	"ENABLE_CHIRP",
	"ENABLE_CHIRP_DELAYED",
	"ENABLE_CHIRP_IO",
	"ENABLE_CHIRP_UPDATES",
	"ENABLE_PEEK_JOB",
	"ENABLE_SSH_TO_JOB",
	"ENABLE_URL_TRANSFERS",
	"FILETRANSFER_PLUGINS",
	"FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT",
	"FILE_TRANSFER_STATS_LOG",
	"HIGHPORT",
	"IN_HIGHPORT",
	"IN_LOWPORT",
	"JOB_EXECDIR_PERMISSIONS",
	"JOB_INHERITS_STARTER_ENVIRONMENT",
	"JOB_RENICE_INCREMENT",
	"KILLING_TIMEOUT",
	"LIB",
	"LOCK",
	"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE",
	"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS",
	"LOWPORT",
	"MAX_FILE_TRANSFER_PLUGIN_LIFETIME",
	"MEMORY_USAGE_METRIC",
	"MY_POPEN_KEEPALIVE_INTERVAL",
	"NETWORK_INTERFACE",
	"OUT_HIGHPORT",
	"OUT_LOWPORT",
	"PRIVATE_NETWORK_NAME",
	"RUN_FILETRANSFER_PLUGINS_WITH_ROOT",
	"SEC_CREDENTIAL_REFRESH",
	"SHUTDOWN_FAST_TIMEOUT",
	"SINGULARITY_JOB",
	"SSH_TO_JOB_SSHD",
	"SSH_TO_JOB_SSHD_ARGS",
	"SSH_TO_JOB_SSHD_CONFIG_TEMPLATE",
	"SSH_TO_JOB_SSH_KEYGEN",
	"SSH_TO_JOB_SSH_KEYGEN_ARGS",
	"STARTER_ALLOW_JOB_PRE_AND_POST_CMD",
	"STARTER_DEBUG",
	"STARTER_INITIAL_UPDATE_INTERVAL",
	"STARTER_JOB_ENVIRONMENT",
	"STARTER_NUM_THREADS_ENV_VARS",
	"STARTER_SETS_HOME_ENV",
	"STARTER_UPDATE_INTERVAL",
	"STARTER_UPLOAD_TIMEOUT",
	"STARTER_USE_SHARED_PORT",
	"STATISTICS_WINDOW_SECONDS",
	"TCP_FORWARDING_HOST",
	"USE_DEFAULT_CONTAINER",
	"USE_SHARED_PORT",
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

	killingTimeout = 30 * time.Second
	shutdownFast   = 300 * time.Second
)

// outgoing are the ports that connections to the shadow come from.
func (p *Plan) outgoing() listen.Ports {
	for _, n := range [...][2]string{{"OUT_LOWPORT", "OUT_HIGHPORT"}, {"LOWPORT", "HIGHPORT"}} {
		low, err1 := strconv.ParseUint(strings.TrimSpace(p.knob(n[0])), 10, 16)
		high, err2 := strconv.ParseUint(strings.TrimSpace(p.knob(n[1])), 10, 16)
		if err1 == nil && err2 == nil && 0 < low && low <= high {
			return listen.Ports{Low: int(low), High: int(high)}
		}
	}
	return listen.Ports{}
}

// source are the addresses that connections to the shadow come from.
func (p *Plan) source() (listen.Source, error) {
	if p.knob("BIND_ALL_INTERFACES") == "" || p.truth("BIND_ALL_INTERFACES") {
		return listen.Source{}, nil
	}
	n := daemon.Network{Interface: strings.TrimSpace(p.knob("NETWORK_INTERFACE"))}
	if n.Interface == "" {
		n.Interface = "*"
	}
	all, err := daemon.Interfaces()
	if err != nil {
		return listen.Source{}, err
	}
	return n.Source(all)
}

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
