// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpolicy

import (
	"fmt"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/reason"
)

// Action is what becomes of a job.
type Action uint8

// The actions. For a job that ended by itself Stay means that it waits to run
// again, and Remove that it is done.
const (
	Stay Action = iota
	Vacate
	Hold
	Release
	Remove
)

var actionNames = [...]string{"stay", "vacate", "hold", "release", "remove"}

// String returns the lower-case word for a.
func (a Action) String() string { return actionNames[a] }

// Verdict is a decision and why it fell.
type Verdict struct {
	Action  Action
	Attr    string // whose value decided, "" for none
	Why     string // in HTCondor's words, or the job's own
	Code    reason.Code
	Subcode int
}

// The values of JobStatus that matter here.
const (
	running   = 2
	removed   = 3
	completed = 4
	held      = 5
	suspended = 7
)

// attrs are all attributes that Periodic reads a decision from.
var attrs = [...]string{
	"AllowedJobDuration", "AllowedExecuteDuration", "PeriodicVacate", "TimerRemove", "PeriodicHold", "PeriodicRelease", "PeriodicRemove",
}

// Has reports whether anything in the job's ad, or of the owner's, may hold,
// release, send back or remove it while it is in the queue.
func (s *System) Has(job *classad.Ad) bool {
	for _, rules := range s.rules {
		if len(rules) > 0 {
			return true
		}
	}
	for _, name := range attrs {
		if e, ok := job.Lookup(name); ok && !never(e) {
			return true
		}
	}
	return false
}

// never reports whether an expression is plainly false or undefined.
func never(e *classad.Expr) bool {
	v, ok := e.LiteralValue()
	return ok && !truth(v) && v.Kind() != classad.KindInteger // 0 may be a duration
}

// Periodic asks a job in the queue, idle, running or held, in HTCondor's order;
// the first that says something wins. JobStatus is taken from the ad, and the
// start of the present run from ShadowBday and JobCurrentStartExecutingDate. A
// value that is neither true nor a number other than 0, as undefined, is no. The
// owner's rule is asked behind the job's own of the same kind.
func (s *System) Periodic(job *classad.Ad, env *classad.Env) Verdict {
	status, _ := job.EvalInt("JobStatus", env)
	if status == removed {
		return Verdict{}
	}
	if runs(status) {
		if v := durations(job, env); v.Action != Stay {
			return v
		}
		if v, ok := s.asked(job, env, "PeriodicVacate", Vacate); ok {
			return v
		}
	}
	return s.anyTime(job, env, status)
}

func runs(status int64) bool { return status == running || status == suspended }

// anyTime asks what is asked of a job in whatever status.
func (s *System) anyTime(job *classad.Ad, env *classad.Env, status int64) Verdict {
	// TimerRemove is the time at which the job is removed, in seconds.
	if at, ok := job.EvalInt("TimerRemove", env); ok && at >= 0 && at < env.Now.Unix() {
		return fired(job, "TimerRemove", Remove)
	}
	if status != held && status != completed {
		if v, ok := s.asked(job, env, "PeriodicHold", Hold); ok {
			return v
		}
	}
	if status == held && s.mayRelease(job, env) {
		if v, ok := s.asked(job, env, "PeriodicRelease", Release); ok {
			return v
		}
	}
	if v, ok := s.asked(job, env, "PeriodicRemove", Remove); ok {
		return v
	}
	return Verdict{}
}

// durations asks whether the present run has lasted longer than the job allows:
// since its shadow began, and since its program did.
func durations(job *classad.Ad, env *classad.Env) Verdict {
	birth, born := job.EvalInt("ShadowBday", env)
	if !born {
		return Verdict{}
	}
	now := env.Now.Unix()
	if allowed, ok := job.EvalInt("AllowedJobDuration", env); ok && now-birth >= allowed {
		return Verdict{Hold, "AllowedJobDuration", "The job exceeded allowed job duration of " + short(allowed), reason.JobDurationExceeded, 0}
	}
	// A program that began before the shadow is one of an earlier run.
	began, ok := job.EvalInt("JobCurrentStartExecutingDate", env)
	allowed, limited := job.EvalInt("AllowedExecuteDuration", env)
	if !ok || !limited || began < birth {
		return Verdict{}
	}
	// A checkpoint that was sent since counts as a new beginning.
	if sent, ok := job.EvalInt("TransferOutFinished", env); ok && sent > began {
		began = sent
	}
	if now-began > allowed {
		return Verdict{Hold, "AllowedExecuteDuration", "The job exceeded allowed execute duration of " + short(allowed), reason.JobExecuteExceeded, 0}
	}
	return Verdict{}
}

// Ended counts a run that ended because the job's program did: NumJobCompletions
// is what max_retries is compared with. The shadow counts before it asks the
// policy of the job's end.
func Ended(job *classad.Ad) {
	n, _ := job.EvalInt("NumJobCompletions", nil)
	job.SetInt("NumJobCompletions", n+1)
}

// Exit asks a job whose program has ended, and whose ad says how (ExitBySignal,
// ExitCode or ExitSignal; NumJobCompletions counted). As in HTCondor the
// expressions of every moment are asked once more before those of the end; there
// a removal means that the job is done. Without on_exit_remove, and if it has no
// value, the job is done.
func (s *System) Exit(job *classad.Ad, env *classad.Env) Verdict {
	status, _ := job.EvalInt("JobStatus", env)
	if runs(status) {
		if v := durations(job, env); v.Action != Stay {
			return v
		}
	}
	if v := s.anyTime(job, env, status); v.Action != Stay {
		return v
	}
	if v, ok := asked(job, env, "OnExitHold", Hold); ok {
		return v
	}
	if e, ok := job.Lookup("OnExitRemove"); ok {
		v := job.Eval("OnExitRemove", env)
		if _, isNumber := v.AsNumber(); isNumber && !truth(v) {
			return Verdict{Action: Stay, Attr: "OnExitRemove", Why: words("OnExitRemove", e, "FALSE")}
		}
	}
	return Verdict{Action: Remove}
}

// asked evaluates one attribute; ok says that it decides.
func asked(job *classad.Ad, env *classad.Env, attr string, a Action) (v Verdict, ok bool) {
	if !truth(job.Eval(attr, env)) {
		return Verdict{}, false
	}
	v = fired(job, attr, a)
	if a == Vacate {
		v.Code = reason.VacateBase
	}
	if sub, ok := job.Eval(attr+"SubCode", env).AsNumber(); ok {
		v.Subcode = int(sub)
	}
	if text, ok := job.EvalString(attr+"Reason", env); ok && text != "" {
		v.Why = text
	}
	return v, true
}

func fired(job *classad.Ad, attr string, a Action) Verdict {
	e, _ := job.Lookup(attr)
	return Verdict{Action: a, Attr: attr, Why: words(attr, e, "TRUE"), Code: reason.JobPolicy}
}

func words(attr string, e *classad.Expr, value string) string {
	text := ""
	if e != nil {
		text = e.Text(classad.Old)
	}
	return "The job attribute " + attr + " expression '" + text + "' evaluated to " + value
}

// truth reports whether a value counts as true: true, or a number that is not 0
// when its fraction is cut off.
func truth(v classad.Value) bool {
	f, ok := v.AsNumber() // of true it is 1
	return ok && (f >= 1 || f <= -1)
}

// Limit returns when a running job will have lasted longer than it allows; ok is
// false if it allows itself any time.
func Limit(job *classad.Ad, env *classad.Env) (at time.Time, ok bool) {
	birth, born := job.EvalInt("ShadowBday", env)
	if !born {
		return time.Time{}, false
	}
	sooner := func(sec int64) {
		if t := time.Unix(sec, 0); !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if allowed, is := job.EvalInt("AllowedJobDuration", env); is {
		sooner(birth + allowed)
	}
	began, has := job.EvalInt("JobCurrentStartExecutingDate", env)
	if allowed, is := job.EvalInt("AllowedExecuteDuration", env); is && has && began >= birth {
		sooner(began + allowed + 1)
	}
	return at, ok
}

// MayBeReleased reports whether a held job can be released by its own policy or
// the owner's later, without anybody doing anything: both are tried at moments
// of the next year, each ten minutes of the first day. Whoever waits for such
// jobs must not wait for one that says it has had its chances.
func (s *System) MayBeReleased(job *classad.Ad, env *classad.Env) bool {
	e, ok := job.Lookup("PeriodicRelease")
	if (!ok || never(e)) && len(s.rules[Release]) == 0 || !s.mayRelease(job, env) {
		return false
	}
	later := *env
	at := func(d time.Duration) bool {
		later.Now = env.Now.Add(d)
		_, yes := s.asked(job, &later, "PeriodicRelease", Release)
		return yes
	}
	for d := time.Second; d < 366*24*time.Hour; d *= 2 {
		if at(d) {
			return true
		}
	}
	for d := time.Duration(0); d <= 24*time.Hour; d += 10 * time.Minute {
		if at(d) {
			return true
		}
	}
	return false
}

// short prints seconds as HTCondor does in hold reasons: 00:05, 1:00:00,
// 2+00:00:00.
func short(sec int64) string {
	d, h, m, s := sec/86400, sec/3600%24, sec/60%60, sec%60
	switch {
	case sec < 0:
		return "[?????]"
	case d > 0:
		return strings.TrimSpace(fmt.Sprintf("%d+%02d:%02d:%02d", d, h, m, s))
	case h > 0:
		return fmt.Sprintf("%d:%02d:%02d", h, m, s)
	}
	return fmt.Sprintf("%02d:%02d", m, s)
}
