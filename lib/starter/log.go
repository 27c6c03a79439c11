// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"log/slog"
	"time"
)

// LogPlan is the log that a starter writes: STARTER_LOG with what
// STARTER_LOG_NAME_APPEND puts behind it, shown as STARTER_DEBUG says. Many
// starters may write the same file after one another, and at the same time.
type LogPlan struct {
	Path       string        `json:"path,omitempty"`
	Syslog     bool          `json:"syslog,omitempty"`      // to the system's log instead: LOG_TO_SYSLOG
	Debug      []string      `json:"debug,omitempty"`       // lists of categories, as ALL_DEBUG and STARTER_DEBUG
	TimeFormat string        `json:"time_format,omitempty"` // DEBUG_TIME_FORMAT
	Stamps     bool          `json:"stamps,omitempty"`      // LOGS_USE_TIMESTAMP
	MaxBytes   int64         `json:"max_bytes,omitempty"`   // MAX_STARTER_LOG as a size, 0 for none
	MaxAge     time.Duration `json:"max_age,omitempty"`     // MAX_STARTER_LOG as a time, 0 for none
	Keep       int           `json:"keep,omitempty"`        // MAX_NUM_STARTER_LOG
}

// openLog begins the log that the plan wants. Without it the starter is
// silent; that it cannot be written keeps no job from running.
func (a *activation) openLog() {
	if a.plan.Log == nil || a.host.OpenLog == nil {
		return
	}
	log, err := a.host.OpenLog(*a.plan.Log)
	if err != nil {
		a.problem(err)
		return
	}
	a.host.Log, a.log = log, log
	log.Info("** condor_starter STARTING UP", "activation", a.plan.Activation, "slot", a.plan.SlotName, "execute", a.plan.Execute)
}

// logReport writes down what is reported to the startd.
func (a *activation) logReport(r Report) {
	log := a.log
	if log == nil {
		return
	}
	with := make([]slog.Attr, 0, 8)
	add := func(name, value string) {
		if value != "" {
			with = append(with, slog.String(name, value))
		}
	}
	level, msg := slog.LevelInfo, r.Op
	switch r.Op {
	case OpUsage:
		level = slog.LevelDebug
		if u := r.Usage; u != nil {
			with = append(with, slog.Duration("user_cpu", u.UserCPU), slog.Duration("sys_cpu", u.SysCPU), slog.Int64("rss_kib", u.RSSKiB), slog.Int("processes", u.Procs))
		}
	case OpSandbox:
		msg = "scratch directory made"
	case OpRunning:
		msg = "job is running"
		if a.job != nil {
			add("cmd", a.job.cmd)
		}
	case OpSuspended:
		msg = "job suspended"
		with = append(with, slog.Int("processes", r.Count))
	case OpContinued:
		msg = "job continues"
	case OpTransferInStart, OpTransferOutStart:
	case OpTransferInDone, OpTransferOutDone:
		with = append(with, slog.Int("files", r.Files), slog.Int64("bytes", r.Bytes))
	case OpHeld:
		level, msg = slog.LevelWarn, "job is to be held"
		if r.Hold != nil {
			with = append(with, slog.Int("code", r.Hold.Code), slog.Int("subcode", r.Hold.Subcode), slog.String("reason", r.Hold.Reason))
		}
	case OpRefused:
		level, msg = slog.LevelWarn, "order refused"
		add("order", r.Order)
		add("why", r.Why)
	case OpEnded:
		msg = "activation ended"
		if rec := r.Record; rec != nil {
			add("job", rec.Status.String())
			if rec.Evicted {
				with = append(with, slog.Int("code", rec.Code), slog.Int("subcode", rec.Subcode))
				add("asked", rec.Asked)
				add("reason", rec.Reason)
			}
			for _, p := range rec.Problems {
				log.Warn("problem", "what", p)
			}
		}
	}
	add("dir", r.Dir)
	add("address", r.Address)
	if r.Proc != nil {
		with = append(with, slog.String("pid", r.Proc.String()))
	}
	log.LogAttrs(context.Background(), level, msg, with...)
}

// logOrder writes down what the startd orders.
func (a *activation) logOrder(o Order) {
	if log := a.log; log != nil {
		log.Info("ordered", "what", o.Op, "manner", o.Manner, "asked", o.Asked, "reason", o.Reason, "code", o.Code, "subcode", o.Subcode)
	}
}
