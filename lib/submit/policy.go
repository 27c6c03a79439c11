// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// The values of JobNotification.
var notifications = [...]string{"NEVER", "ALWAYS", "COMPLETE", "ERROR", "START"}

func (b *builder) notification() {
	text, ok := b.get("notification", "JobNotification")
	given := ok
	if !ok {
		text = b.d.opts.Config("JOB_DEFAULT_NOTIFICATION")
	}
	n := slices.Index(notifications[:], strings.ToUpper(text))
	if n < 0 {
		n = 0
		if given {
			b.bad(0, Problem{Value: text, Message: "this is no kind of notification", Want: "Never, Always, Complete, Error or Start"})
		}
	}
	b.setInt("JobNotification", int64(n))
}

func (b *builder) rank() {
	text, given := b.get("rank", "preferences")
	config := func(name string) string {
		if v := b.d.opts.Config(name + "_VANILLA"); v != "" {
			return v
		}
		return b.d.opts.Config(name)
	}
	if !given {
		text = config("DEFAULT_RANK")
	}
	if more := config("APPEND_RANK"); more != "" {
		if text == "" {
			text = more
		} else {
			text = "(" + text + ") + (" + more + ")"
		}
	}
	switch {
	case text == "":
		b.setReal("Rank", 0)
	case given:
		b.setExpr("Rank", text)
	default:
		b.setOwn("Rank", text, "the rank from the configuration")
	}
}

// retries sets when an ended job leaves the queue and when it is held.
func (b *builder) retries() {
	maxRetries, hasMax := b.integer("max_retries", "JobMaxRetries")
	success, hasSuccess := b.integer("success_exit_code", "JobSuccessExitCode")
	until, hasUntil := b.get("retry_until")
	if hasUntil {
		if n, err := strconv.ParseInt(until, 10, 32); err == nil {
			until = "ExitCode =?= " + strconv.FormatInt(n, 10)
		} else if _, err := classad.ParseExpr(until, classad.Old); err != nil {
			b.bad(0, Problem{Value: until, Message: "this is no exit code and no expression: " + err.Error(), Want: "an integer or an expression"})
			return
		} else {
			until = "(" + until + ")"
		}
	}
	hold, hasHold := b.get("on_exit_hold", "OnExitHold")
	retrying := hasMax || hasSuccess || hasUntil
	if hasHold {
		b.setExpr("OnExitHold", hold)
	} else if retrying {
		b.setBool("OnExitHold", false)
	}
	remove, hasRemove := b.get("on_exit_remove", "OnExitRemove")
	if !retrying {
		if hasRemove {
			b.setExpr("OnExitRemove", remove)
		}
		return
	}
	if !hasMax {
		maxRetries = 2
		if n, ok := evalInt(b.d.opts.Config("DEFAULT_JOB_MAX_RETRIES")); ok {
			maxRetries = n
		}
	}
	b.setInt("JobMaxRetries", maxRetries)
	text := "NumJobCompletions > JobMaxRetries || ExitCode =?= "
	if hasSuccess {
		b.setInt("JobSuccessExitCode", success)
		text += "JobSuccessExitCode"
	} else {
		text += "0"
	}
	if hasUntil {
		text += " || " + until
	}
	if hasRemove {
		b.get("on_exit_remove", "OnExitRemove")
		if _, err := classad.ParseExpr(remove, classad.Old); err != nil {
			b.setExpr("OnExitRemove", remove) // reports it
			return
		}
		text += " || (" + remove + ")"
	}
	b.setOwn("OnExitRemove", text, "the condition for leaving the queue")
}

// signalNames are the signals of Linux by number.
var signalNames = [...]string{1: "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
	"SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU",
	"SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS"}

// signals sets the signals that ask the job to go, by name.
func (b *builder) signals() {
	for _, c := range [...][2]string{{"kill_sig", "KillSig"}, {"remove_kill_sig", "RemoveKillSig"}, {"hold_kill_sig", "HoldKillSig"}} {
		text, ok := b.get(c[0], c[1])
		if !ok {
			continue
		}
		name := strings.ToUpper(unquote(text))
		if n, err := strconv.Atoi(name); err == nil && n > 0 && n < len(signalNames) {
			name = signalNames[n]
		}
		if !slices.Contains(signalNames[1:], name) {
			b.bad(0, Problem{Value: text, Message: "this is no signal", Want: "a name such as SIGTERM, or a number"})
			continue
		}
		b.setString(c[1], name)
	}
	if n, ok := b.integer("kill_sig_timeout", "KillSigTimeout"); ok {
		b.setInt("KillSigTimeout", n)
	}
}

// limits sets the concurrency limits: names, each perhaps with a colon and how
// much of it the job uses.
func (b *builder) limits() {
	text, ok := b.get("concurrency_limits")
	if expr, isExpr := b.get("concurrency_limits_expr"); isExpr {
		if ok {
			b.bad(0, Problem{Value: expr, Message: "concurrency_limits is given too", Want: "one of them"})
			return
		}
		b.setExpr("ConcurrencyLimits", expr)
		return
	}
	if !ok {
		return
	}
	list := splitList(strings.ToLower(text))
	for _, limit := range list {
		name, amount, hasAmount := strings.Cut(limit, ":")
		f, err := strconv.ParseFloat(amount, 64)
		if !isName(name) || hasAmount && (err != nil || f <= 0) {
			b.bad(0, Problem{Value: limit, Message: "this is no concurrency limit", Want: "NAME or NAME:AMOUNT"})
			return
		}
	}
	slices.Sort(list)
	b.setString("ConcurrencyLimits", strings.Join(list, ","))
}

// accounting sets in whose name the job counts.
func (b *builder) accounting() {
	if project, ok := b.get("project_name", "ProjectName"); ok {
		b.setString("ProjectName", project)
	}
	group, hasGroup := b.get("accounting_group")
	valid := func(s string) bool {
		return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_.@-") == ""
	}
	if hasGroup && !valid(group) {
		b.bad(0, Problem{Value: group, Message: "this is no accounting group", Want: "letters, digits and _ . @ -"})
		return
	}
	if b.boolean(false, "nice_user", "NiceUser") {
		if !hasGroup {
			group, hasGroup = cmp.Or(b.d.opts.Config("NICE_USER_ACCOUNTING_GROUP_NAME"), "nice-user"), true
		}
		b.setInt("MaxJobRetirementTime", 0)
	}
	user, hasUser := b.get("accounting_group_user")
	if hasUser && !valid(user) {
		b.bad(0, Problem{Value: user, Message: "this is no user name", Want: "letters, digits and _ . @ -"})
		return
	}
	if !hasGroup && !hasUser {
		return
	}
	if !hasUser {
		user = b.d.opts.Owner
	}
	b.setString("AcctGroupUser", user)
	if hasGroup {
		b.setString("AcctGroup", group)
		user = group + "." + user
	}
	b.setString("AccountingGroup", user)
}
