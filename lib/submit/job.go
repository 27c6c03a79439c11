// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// The universe of all jobs here, and job states.
const (
	vanilla = 5
	idle    = 1
	held    = 5
)

// submittedOnHold is the hold code of a job submitted with hold = true.
const submittedOnHold = 15

// attributes sets all attributes of one job. What later steps read of earlier
// ones gives the order.
func (b *builder) attributes(proc int) {
	b.identity(proc)
	b.counters()
	if !b.universe() {
		return
	}
	b.initialDir()
	b.executable()
	b.arguments()
	b.environment()
	b.status()
	b.stdFile("input", "stdin", "In", "TransferIn", "StreamIn", "transfer_input", "stream_input")
	b.stdFile("output", "stdout", "Out", "TransferOut", "StreamOut", "transfer_output", "stream_output")
	b.stdFile("error", "stderr", "Err", "TransferErr", "StreamErr", "transfer_error", "stream_error")
	b.notification()
	b.rank()
	b.retries()
	b.signals()
	b.requests()
	b.limits()
	b.accounting()
	b.simple()
	b.sizes()
	b.transfer()
	b.defaults()
	b.forced()
	b.gpuLimits()
	b.requirements()
	if b.d.opts.Alone {
		b.files()
		b.alone()
	}
}

// identity sets whose job it is and when it came.
func (b *builder) identity(proc int) {
	o := &b.d.opts
	b.setString("MyType", "Job")
	b.setString("TargetType", "Machine")
	b.setInt("ClusterId", int64(o.Cluster))
	b.setInt("ProcId", int64(proc))
	b.setInt("QDate", o.Now.Unix())
	b.setString("Owner", o.Owner)
	user := o.Owner
	if o.Domain != "" {
		user += "@" + o.Domain
	}
	b.setString("User", user)
	if o.Host != "" {
		b.setString("GlobalJobId", o.Host+"#"+strconv.Itoa(o.Cluster)+"."+strconv.Itoa(proc)+"#"+strconv.FormatInt(o.Now.Unix(), 10))
	}
	b.setInt("JobSubmitMethod", 0)
	b.setString("JobSubmitFile", b.d.name)
	b.setInt("TotalSubmitProcs", int64(b.d.total))
}

// counters sets what a new job has not done yet.
func (b *builder) counters() {
	for _, name := range [...]string{"RemoteWallClockTime", "RemoteUserCpu", "RemoteSysCpu", "CumulativeRemoteUserCpu", "CumulativeRemoteSysCpu"} {
		b.setReal(name, 0)
	}
	for _, name := range [...]string{"ExitStatus", "NumCkpts", "NumJobStarts", "NumJobCompletions", "NumRestarts", "NumSystemHolds",
		"CommittedTime", "CommittedSlotTime", "CumulativeSlotTime", "TotalSuspensions", "LastSuspensionTime",
		"CumulativeSuspensionTime", "CommittedSuspensionTime", "CompletionDate"} {
		b.setInt(name, 0)
	}
	b.setBool("ExitBySignal", false)
}

// universe accepts the vanilla universe. Other universes and commands that
// only they have are refused here, before other mistakes follow from them.
func (b *builder) universe() bool {
	name, given := b.get("universe", "JobUniverse")
	if !given {
		name, given = b.d.opts.Config("DEFAULT_UNIVERSE"), false
	}
	if name != "" && name != "5" && !strings.EqualFold(name, "vanilla") {
		pr := Problem{Value: name, Message: "this universe is not supported", Want: "vanilla", Kind: errs.Unsupported}
		if given {
			b.bad(0, pr)
		} else {
			pr.File, pr.Line, pr.Column, pr.Command = b.d.name, 1, 1, "DEFAULT_UNIVERSE"
			b.fail(pr)
		}
		return false
	}
	ok := true
	for c := range refusedCommands() {
		text, found := b.get(c.name, c.attr)
		if !found && c.attr != "" {
			// Written as an attribute it is asked for just the same.
			text, found = b.get("my." + c.attr)
			found = found && !strings.EqualFold(text, "false") && !strings.EqualFold(text, "undefined")
		}
		if found {
			ok = false
			b.bad(0, Problem{Value: text, Message: "this command is not supported; it needs " + c.why, Kind: errs.Unsupported})
		}
	}
	b.setInt("JobUniverse", vanilla)
	return ok
}

func (b *builder) initialDir() {
	o := &b.d.opts
	b.iwd = o.Cwd
	if dir, ok := b.get("initialdir", "Iwd", "initial_dir", "job_iwd"); ok {
		b.iwd = fullPath(o.Cwd, dir)
		if b.iwd != "/" {
			b.iwd = strings.TrimSuffix(b.iwd, "/")
		}
		if o.DirFS != nil && !b.dirs[b.iwd] {
			if info, ok := o.stat(b.iwd); !ok || !info.IsDir() {
				b.bad(0, Problem{Value: b.iwd, Message: "there is no such directory", Want: "a directory that exists"})
			} else {
				b.dirs[b.iwd] = true
			}
		}
	}
	b.setString("Iwd", b.iwd)
}

func (b *builder) executable() {
	if _, ok := b.get("shell"); ok {
		b.setString("Cmd", "/bin/sh")
		b.setBool("TransferExecutable", false)
		return
	}
	name, ok := b.get("executable", "Cmd")
	if !ok && b.tentative {
		return
	}
	if !ok {
		b.fail(Problem{File: b.d.name, Line: b.queueLine(), Column: 1, Command: "queue", Message: "there is no executable to run", Want: "executable = FILE before it"})
		return
	}
	transfer := true
	if text, ok := b.get("transfer_executable", "TransferExecutable"); ok && !b.boolean(true, "transfer_executable", "TransferExecutable") && text != "" {
		transfer = false
		b.setBool("TransferExecutable", false)
	}
	if transfer {
		name = fullPath(b.d.opts.Cwd, name)
	}
	b.setString("Cmd", name)
}

// queueLine is the line number of the queue statement.
func (b *builder) queueLine() int {
	if b.q.line == nil {
		return 1
	}
	n, _ := b.q.line.at(0)
	return n
}

func (b *builder) status() {
	if b.boolean(false, "hold") {
		b.setInt("JobStatus", held)
		b.setInt("HoldReasonCode", submittedOnHold)
		b.setString("HoldReason", "submitted on hold at user's request")
	} else {
		b.setInt("JobStatus", idle)
	}
	b.setInt("EnteredCurrentStatus", b.d.opts.Now.Unix())
}

// stdFile sets the attributes of one of the three standard files.
func (b *builder) stdFile(name, alias, attr, transferAttr, streamAttr, transferName, streamName string) {
	transfer := b.boolean(true, transferName, transferAttr)
	stream := b.boolean(false, streamName, streamAttr)
	file, ok := b.get(name, alias)
	if !ok || file == nullFile {
		b.setString(attr, nullFile)
		b.setBool(transferAttr, false)
		return
	}
	b.setString(attr, file)
	if transfer {
		b.setBool(streamAttr, stream)
	} else {
		b.setBool(transferAttr, false)
	}
}

// nullFile stands in the ad for no file, on every system.
const nullFile = "/dev/null"

// simple sets the attributes of the commands that need no thought.
func (b *builder) simple() {
	for c := range simpleCommands() {
		text, ok := b.get(c.name, c.attr)
		if !ok {
			continue
		}
		switch c.kind {
		case asString:
			b.setString(c.attr, text)
		case asUnquoted:
			b.setString(c.attr, unquote(text))
		case asList:
			b.setString(c.attr, strings.Join(splitList(text), ","))
		case asPath:
			b.setString(c.attr, fullPath(b.iwd, unquote(text)))
		case asBool:
			b.setBool(c.attr, b.boolean(false, c.name, c.attr))
		case asInt:
			if n, ok := b.integer(c.name, c.attr); ok {
				b.setInt(c.attr, n)
			}
		default:
			b.setExpr(c.attr, text)
		}
	}
}

// splitList parts a list at commas and blanks.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || strings.ContainsRune(blanks, r) })
}

// defaults sets what every job has, when no command has set it.
func (b *builder) defaults() {
	set := func(name string, n int64) {
		if !b.has(name) {
			b.setInt(name, n)
		}
	}
	set("MinHosts", 1)
	set("MaxHosts", 1)
	set("OrigMaxHosts", 1)
	set("CurrentHosts", 0)
	set("JobPrio", 0)
	if !b.has("LeaveJobInQueue") {
		b.setBool("LeaveJobInQueue", false)
	}
	if lease := b.d.opts.Config("JOB_DEFAULT_LEASE_DURATION"); lease != "" && !b.has("JobLeaseDuration") {
		b.setOwn("JobLeaseDuration", lease, "JOB_DEFAULT_LEASE_DURATION")
	}
	if e := b.expr("JobLeaseDuration"); e != nil {
		if n, ok := e.Eval(nil).AsInt(); ok && n > 0 && n < 20 {
			b.setInt("JobLeaseDuration", 20) // shorter leases cannot be kept alive
		}
	}
}

// forced sets the attributes written as +Name or MY.Name; they win over all
// others but the job's numbers.
func (b *builder) forced() {
	for _, key := range b.q.with("my.") {
		s := b.q.find(key)
		name := s.name[len("my."):]
		if strings.EqualFold(name, "ClusterId") || strings.EqualFold(name, "ProcId") {
			continue
		}
		s.used, b.value = true, s
		text := b.expand(s)
		if text == "" {
			text = "undefined"
		}
		b.setExpr(name, text)
	}
}
