// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// starterLog is the log of the starter of a job in the slot of that name, nil
// without STARTER_LOG. s is the configuration as the starter reads it, startd that of
// the startd, which says what is appended to the name.
func starterLog(s, startd *config.Snapshot, slotName string, job *classad.Ad) (*protocol.LogPlan, error) {
	return StarterLog(s, logSuffix(startd.String("STARTER_LOG_NAME_APPEND"), slotName, job))
}

// StarterLog is the log of a starter that reads the configuration s: STARTER_LOG with
// suffix behind it, nil without STARTER_LOG.
func StarterLog(s *config.Snapshot, suffix string) (*protocol.LogPlan, error) {
	const subsystem = "STARTER"
	set, err := observe.LogSettingsFrom(s, subsystem)
	if err != nil || set.Path == "" && !set.Syslog {
		return nil, err
	}
	debug := s.String(subsystem + "_DEBUG")
	if debug == "" {
		debug = s.String("DEFAULT_DEBUG")
	}
	stamps, _ := s.Bool("LOGS_USE_TIMESTAMP") // its errors are of LogSettingsFrom
	path := ""
	if !set.Syslog {
		path = set.Path + suffix
	}
	return &protocol.LogPlan{
		Path: path, Syslog: set.Syslog, Debug: []string{s.String("ALL_DEBUG"), debug},
		TimeFormat: s.String("DEBUG_TIME_FORMAT"), Stamps: stamps, MaxBytes: set.Limit.Bytes, MaxAge: set.Limit.Age, Keep: set.Keep,
	}, nil
}

// logSuffix is what STARTER_LOG_NAME_APPEND says: the slot's name unless it is
// a word that means no or one that means the job.
func logSuffix(knob, slotName string, job *classad.Ad) string {
	number := func(name string) string {
		n, _ := job.EvalInt(name, nil)
		return fmt.Sprint(n)
	}
	switch strings.ToLower(strings.TrimSpace(knob)) {
	case "false", "f", "no", "n", "0":
		return ""
	case "cluster", "clusterid":
		return "." + number("ClusterId")
	case "jobid":
		return "." + number("ClusterId") + "." + number("ProcId")
	}
	return "." + slotName
}
