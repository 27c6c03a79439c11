// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobenv"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// openLog begins the log that the plan wants. Without it the starter is
// silent; that it cannot be written keeps no job from running.
func (a *activation) openLog() {
	if a.plan.Log == nil || a.host.OpenLog == nil {
		return
	}
	log, touched, err := a.host.OpenLog(*a.plan.Log)
	if err != nil {
		a.problem(err)
		return
	}
	a.host.Log, a.log = log, log
	banner := a.banner()
	banner.Touched = touched
	banner.Begin(log, "activation", a.plan.Activation, "slot", a.plan.SlotName, "execute", a.plan.Execute)
}

func (a *activation) banner() observe.Banner {
	b := observe.Banner{Program: "condor_starter", PID: a.host.Census.Self().PID, UID: os.Getuid()}
	if s := a.plan.Shadow; s != nil {
		b.Version = s.Version
	}
	return b
}

// logEnd writes that the starter ends.
func (a *activation) logEnd(status int) {
	if a.log != nil {
		a.banner().End(a.log, status)
	}
}

// The lines from here to logExit are those from which condor_who learns which
// job runs as which process, from the last one back: Communicating with shadow,
// Starting a, About to exec, Create_Process succeeded, Process exited.

// logJob writes which job it is, and where its shadow is reached.
func (a *activation) logJob(ad *classad.Ad) {
	if a.log == nil {
		return
	}
	if at, ok := ad.EvalString("ShadowIpAddr", nil); ok && a.plan.Shadow != nil {
		a.log.Info(fmt.Sprintf("Communicating with shadow %.1000s", at))
	}
	number := func(name string) int64 {
		n, _ := ad.EvalInt(name, nil)
		return n
	}
	a.log.Info(fmt.Sprintf("Starting a %s universe job with ID: %d.%d", universeName(number("JobUniverse")), number("ClusterId"), number("ProcId")))
}

// logExec writes what is executed. The arguments are in the job's ad, which
// everybody may ask for, and may be very long; the environment is nobody else's
// affair.
func (a *activation) logExec() {
	if a.log != nil {
		a.log.Info(fmt.Sprintf("About to exec %.4000s", strings.TrimRight(a.job.Cmd+" "+jobenv.ArgsToV2(a.job.Args), " ")))
	}
}

// logExit writes how the job's main process ended.
func (a *activation) logExit(st host.ExitStatus) {
	if a.log == nil {
		return
	}
	how := fmt.Sprintf("status=%d", st.Code)
	if st.Signal != 0 {
		how = fmt.Sprintf("signal=%d", st.Signal)
	}
	a.log.Info(fmt.Sprintf("Process exited, pid=%d, %s", a.family.Main().PID, how))
}

// universeName is what HTCondor calls the universe of a job.
func universeName(n int64) string {
	switch n {
	case 10:
		return "JAVA"
	case 11:
		return "PARALLEL"
	case 13:
		return "VM"
	}
	return "VANILLA" // also of a job that does not say
}

// logReport writes down what is reported to the startd.
func (a *activation) logReport(r protocol.Report) {
	log := a.log
	if log == nil {
		return
	}
	level, msg := slog.LevelInfo, r.Kind()
	with := make([]slog.Attr, 0, 8)
	add := func(name, value string) {
		if value != "" {
			with = append(with, slog.String(name, value))
		}
	}
	switch r := r.(type) {
	case protocol.Usage:
		level = slog.LevelDebug
		with = append(with, slog.Duration("user_cpu", r.Usage.UserCPU), slog.Duration("sys_cpu", r.Usage.SysCPU), slog.Int64("rss_kib", r.Usage.RSSKiB),
			slog.Int("processes", r.Usage.Procs))
	case protocol.Sandbox:
		msg = "scratch directory made"
		add("dir", r.Dir)
	case protocol.Running:
		msg = fmt.Sprintf("Create_Process succeeded, pid=%d", r.Proc.PID)
		add("cgroup", a.note.Group)
	case protocol.Suspended:
		msg = "job suspended"
		with = append(with, slog.Int("processes", r.Count))
	case protocol.Continued:
		msg = "job continues"
	case protocol.TransferInDone:
		with = append(with, slog.Int("files", r.Files), slog.Int64("bytes", r.Bytes))
	case protocol.TransferOutDone:
		with = append(with, slog.Int("files", r.Files), slog.Int64("bytes", r.Bytes))
	case protocol.Held:
		level, msg = slog.LevelWarn, "job is to be held"
		with = append(with, slog.Int("code", r.Hold.Code), slog.Int("subcode", r.Hold.Subcode), slog.String("reason", r.Hold.Reason))
	case protocol.Color:
		msg = "the slots of the machine are to show the job's color"
	case protocol.Contact:
		add("address", r.Address)
	case protocol.Refused:
		level, msg = slog.LevelWarn, "order refused"
		add("order", r.Order)
		add("why", r.Why)
	case protocol.Ended:
		msg = "activation ended"
		with = a.howEnded(r.Record, with)
	}
	log.LogAttrs(context.Background(), level, msg, with...)
}

// howEnded adds what the log says of an exit record, whose problems it writes.
func (a *activation) howEnded(rec protocol.ExitRecord, with []slog.Attr) []slog.Attr {
	with = append(with, slog.String("job", rec.Status.String()))
	if rec.Evicted {
		with = append(with, slog.Int("code", rec.Code), slog.Int("subcode", rec.Subcode))
		for _, why := range []slog.Attr{slog.String("asked", rec.Asked), slog.String("reason", rec.Reason)} {
			if why.Value.String() != "" {
				with = append(with, why)
			}
		}
	}
	for _, p := range rec.Problems {
		a.log.Warn("problem", "what", p)
	}
	return with
}

// logOrder writes down what the startd orders.
func (a *activation) logOrder(o protocol.Order) {
	if a.log == nil {
		return
	}
	var why protocol.Leave
	switch o := o.(type) {
	case protocol.SoftKill:
		why = o.Leave
	case protocol.HardKill:
		why = o.Leave
	}
	a.log.Info("ordered", "what", o.Kind(), "manner", string(why.Manner), "asked", why.Asked, "reason", why.Reason, "code", why.Code, "subcode", why.Subcode)
}
