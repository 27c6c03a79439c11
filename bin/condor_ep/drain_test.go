// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/observe"
)

// willing is a job that goes on until it is told to leave.
const willing = "#!/bin/sh\ntrap 'exit 0' TERM\necho $$ >daemon.pid\nwhile :; do sleep 0.1; done\n"

// running starts an EP with one willing job.
func (p place) running(t *testing.T, config string) (*process, func() (stdout, stderr string)) {
	t.Helper()
	p.write(t, "job.sh", willing)
	p.write(t, "job.sub", small+"executable = job.sh\nlog = job.log\nqueue\n")
	p.write(t, "ep.conf", "POLLING_INTERVAL = 1\n"+config)
	return p.start(t, 1, "run", "-config", "ep.conf", "job.sub")
}

// status asks the EP how it is.
func (p place) status(t *testing.T) observe.Status {
	t.Helper()
	status, stdout, stderr := p.ep(t, "status", "-json")
	var st observe.Status
	if err := json.Unmarshal([]byte(stdout), &st); err != nil || status != exitOK {
		t.Fatalf("status %d: %s%s: %v", status, stdout, stderr, err)
	}
	return st
}

// refused runs a command that must be refused with that sentence.
func (p place) refused(t *testing.T, want int, sentence string, args ...string) {
	t.Helper()
	if status, stdout, stderr := p.ep(t, args...); status != want || stdout != "" || !strings.Contains(stderr, sentence) {
		t.Errorf("%v: status %d, want %d and %q\n%s%s", args, status, want, sentence, stdout, stderr)
	}
}

// accepted runs a command that must say so.
func (p place) accepted(t *testing.T, says string, args ...string) {
	t.Helper()
	if status, stdout, stderr := p.ep(t, args...); status != exitOK || !strings.Contains(stdout, says) {
		t.Errorf("%v: status %d, want %q\n%s%s", args, status, says, stdout, stderr)
	}
}

// A drain empties the machine, says why and by whom, refuses another one, and
// is taken back: then the job runs again.
func TestDrainAndCancel(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.refused(t, exitSomeFailed, "no Execution Point", "drain")
	pr, output := p.running(t, "MAXJOBRETIREMENTTIME = 3600\n")
	p.refused(t, exitSomeFailed, "is false on slot1@", "drain", "-check", "Cpus > 1000000")
	p.refused(t, exitSomeFailed, "(10003)", "drain", "-check", "Cpus > 1000000")
	p.refused(t, exitSomeFailed, "the start expression", "drain", "-start", "1 +")
	p.accepted(t, "draining, request id 1", "drain", "-resume-on-completion")

	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	d := p.status(t).Draining
	if d == nil || d.ID != "1" || d.How != "graceful" || d.Then != "resume" || d.Jobs != 1 || d.Drained ||
		!strings.HasPrefix(d.Reason, "by "+me.Username+"@") || !strings.HasPrefix(d.By, me.Username+"@") {
		t.Errorf("draining: %+v", d)
	}
	if d != nil && (d.Until == nil || time.Until(*d.Until) < 50*time.Minute || time.Until(*d.Until) > time.Hour) {
		t.Errorf("the job may stay for an hour: %+v", d)
	}
	_, text, _ := p.ep(t, "status")
	if !strings.Contains(text, "draining (graceful, id 1) for ") || !strings.Contains(text, "1 job left, for at most") {
		t.Errorf("status:\n%s", text)
	}
	p.refused(t, exitSomeFailed, "already in progress", "drain", "-fast")
	p.refused(t, exitSomeFailed, "(10001)", "drain", "-fast")
	if status, stdout, _ := p.ep(t, "drain", "-fast", "-json"); status != exitSomeFailed || !strings.Contains(stdout, `"code":10001`) || !strings.Contains(stdout, `"ok":false`) {
		t.Errorf("status %d: %s", status, stdout)
	}
	p.refused(t, exitSomeFailed, "(10002)", "drain", "-cancel", "-request-id", "7")
	p.accepted(t, "cancelled the draining with request id 1", "drain", "-cancel", "-request-id", "1")
	p.accepted(t, "nothing was draining", "drain", "-cancel")
	if d := p.status(t).Draining; d != nil {
		t.Errorf("still draining: %+v", d)
	}

	p.accepted(t, `"drain_id":"2"`, "drain", "-fast", "-reason", "new kernel", "-json")
	waitFor(t, "the machine is drained", func() bool { d := p.status(t).Draining; return d != nil && d.Drained })
	if d := p.status(t).Draining; d.Reason != "new kernel" || d.Jobs != 0 || d.Then != "stay drained" {
		t.Errorf("drained: %+v", d)
	}
	p.accepted(t, "request id 2", "drain", "-cancel")
	waitFor(t, "the job runs again", func() bool { return strings.Count(p.read(t, "job.log"), "Job executing on host") == 2 })
	pr.interrupt(t, p, 2)
	output()
	p.nothingLeft(t)
}

// An EP that is drained to be started again ends with a status of its own; one
// that is drained to end does not.
func TestDrainThenEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		option string
		status int
	}{{"-restart-on-completion", exitRestart}, {"-exit-on-completion", exitSomeFailed}} {
		t.Run(tt.option, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			pr, output := p.running(t, "")
			p.accepted(t, "request id 1", "drain", "-quick", tt.option)
			stdout, stderr := output()
			if pr.status != tt.status || !strings.Contains(stdout, "1 not finished") {
				t.Errorf("status %d\n%s%s", pr.status, stdout, stderr)
			}
			p.nothingLeft(t)
		})
	}
}

// A drain may have the configuration read again once the machine is empty.
func TestDrainThenReconfigure(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pr, output := p.running(t, "")
	p.write(t, "ep.conf", "POLLING_INTERVAL = 1\nSTART = false\n")
	p.accepted(t, "request id 1", "drain", "-fast", "-reconfig-on-completion")
	waitFor(t, "the configuration is taken over", func() bool { return strings.Contains(p.log(), "configuration taken over") })
	if d := p.status(t).Draining; d != nil {
		t.Errorf("still draining: %+v", d)
	}
	pr.interrupt(t, p, 1)
	output()
	p.nothingLeft(t)
}

func TestVacate(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pr, output := p.running(t, "")
	p.refused(t, exitSomeFailed, "no such slot", "vacate", "slot9")
	p.refused(t, exitSomeFailed, "is no slot", "vacate", "nonsense")
	p.refused(t, exitSomeFailed, "there is no claim to vacate", "vacate", "slot1")
	p.refused(t, exitUsage, "-all", "vacate")
	p.refused(t, exitUsage, "-all", "vacate", "-all", "slot1")
	p.refused(t, exitUsage, "-all", "vacate", "") // the variable of a script that is not set, and not all slots
	p.refused(t, exitSomeFailed, "has pid 1;", "vacate", "-pid", "1", "-all")
	p.accepted(t, "vacating slot1_1", "vacate", "slot1_1")
	began := func(times int) func() bool {
		return func() bool { return strings.Count(p.read(t, "job.log"), "Job executing on host") == times }
	}
	waitFor(t, "the job runs again", began(2))
	p.accepted(t, `"fast":true`, "vacate", "-fast", "-all", "-json")
	waitFor(t, "the job runs a third time", began(3))
	if log := p.log(); !strings.Contains(log, "VACATE_CLAIM command") || !strings.Contains(log, "VACATE_CLAIM_FAST command") {
		t.Errorf("log:\n%s", log)
	}
	pr.interrupt(t, p, 2)
	output()
	p.nothingLeft(t)
}

func TestDrainUsage(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, tt := range []struct{ line, want string }{
		{"-fast -quick", "-fast and -quick exclude one another"},
		{"-exit-on-completion -resume-on-completion", "exclude one another"},
		{"-cancel -fast", "-cancel takes no other option"},
		{"-request-id 3", "-request-id is for -cancel"},
		{"now", `unexpected argument "now"`},
	} {
		p.refused(t, exitUsage, tt.want, append([]string{"drain"}, strings.Fields(tt.line)...)...)
	}
}

// An EP that nobody claims ends, and one whose policy says nothing of use tells
// so once.
//
// row: S4-065
func TestNoClaimShutdown(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	p.write(t, "ep.conf", "POLLING_INTERVAL = 1\nSTART = KeyboardIdle < 0\nSTARTD_NOCLAIM_SHUTDOWN = 1\n")
	status, stdout, stderr := p.ep(t, "run", "-keep", "-config", "ep.conf", "job.sub")
	if status != exitSomeFailed || !strings.Contains(stdout, "1 not finished") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if log := p.log(); !strings.Contains(log, "no slot was claimed for 1s") {
		t.Errorf("log:\n%s", log)
	}
}

// What the policy gives that it should not is told with its place, once.
func TestPolicyWarning(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pr, output := p.running(t, "WANT_SUSPEND = \"often\"\nPREEMPT = Mood + 1\n")
	waitFor(t, "both are told", func() bool { return strings.Count(p.log(), "taken as FALSE") >= 2 })
	p.accepted(t, "vacating", "vacate", "slot1_1")
	waitFor(t, "the job runs again", func() bool { return strings.Count(p.read(t, "job.log"), "Job executing on host") == 2 })
	pr.interrupt(t, p, 2)
	stdout, stderr := output()
	for _, want := range []string{
		"ep.conf:2: WANT_SUSPEND = \"often\" is \"often\" for slot1_1: ",
		"ep.conf:3: PREEMPT = Mood + 1 is undefined for slot1_1: undefined, taken as FALSE",
	} {
		if strings.Count(stdout, want) != 1 {
			t.Errorf("want once: %s\n%s%s", want, stdout, stderr)
		}
	}
}

// With -json every refusal is an object on standard output, and -pid with -name is a
// contradiction.
func TestDrainAndVacateOfNobody(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, args := range [][]string{{"drain", "-json"}, {"vacate", "-json", "slot1"}} {
		status, stdout, stderr := p.ep(t, args...)
		var said struct {
			OK    *bool
			Error string
		}
		if err := json.Unmarshal([]byte(stdout), &said); err != nil || status != exitSomeFailed || said.OK == nil || *said.OK || said.Error != "no Execution Point of this user is running here" {
			t.Errorf("%v: status %d: %s%s: %v", args, status, stdout, stderr, err)
		}
	}
	p.refused(t, exitUsage, "want one of them", "drain", "-pid", "7", "-name", "slot1@host")
	p.refused(t, exitUsage, "want one of them", "vacate", "-pid", "7", "-name", "slot1@host", "slot1")
}
