// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faults

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Nothing of these was a mistake to HTCondor, and each of them counted as nothing
// here, without a word, as long as starters read the text of knobs themselves.

// oneType makes the only slot one of type 1.
const oneType = "SLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = True\nNUM_SLOTS_TYPE_1 = 1\n"

// brought runs a job that writes what it sees into the file "seen", and returns its
// shadow and that file.
func (w *world) brought(p *place, n int, script, lines string, items ...transfer.SendItem) (*shadowtest.Shadow, string) {
	w.t.Helper()
	id := w.claimed
	job := w.job(n, script, "TransferOutput = \"seen\"\n"+lines)
	part, rest := p.request(id, job)
	w.claimed = rest
	s := p.shadow(part, job, shadowtest.Files{In: transfer.SendPlan{Items: items}})
	w.done("the job", p.run(s), realpool.Patience)
	text, err := os.ReadFile(filepath.Join(w.dir, "submit", "seen"))
	w.must(err)
	return s, string(text)
}

// told finds an attribute in what the starter said of itself or the job.
func told(s *shadowtest.Shadow, call shadow.Call, name string) string {
	last := ""
	for _, c := range s.Calls() {
		if c.Request.Call != call || c.Request.Ad == nil {
			continue
		}
		if e, ok := c.Request.Ad.Lookup(name); ok {
			last = e.Text(classad.Old)
		}
	}
	return last
}

// TestStartersReadWhatTheOwnerWrote holds each setting to what a job of it sees.
func TestStartersReadWhatTheOwnerWrote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneType+`STARTER_UPDATE_INTERVAL = 2 * $(MINUTE)
STARTER_INITIAL_UPDATE_INTERVAL = 2 - 1
ENABLE_CHIRP = (1 == 1)
ENABLE_CHIRP_IO = 2 > 1
ENABLE_URL_TRANSFERS = (2 > 1)
STARTER_JOB_ENVIRONMENT = "FROM=all"
STARTER.STARTER_JOB_ENVIRONMENT = "FROM=starters"
slot_type_1.STARTER_JOB_ENVIRONMENT = "FROM=type1"
slot_type_2.STARTER_JOB_ENVIRONMENT = "FROM=type2"
slot_type_1.STARTER_NUM_THREADS_ENV_VARS = OWN_THREADS
if $(IsStarter)
  MEMORY_USAGE_METRIC = 4321
endif
JOB_INHERITS_STARTER_ENVIRONMENT = (1 == 1)
STARTER.STARTER_ALLOW_JOB_PRE_AND_POST_CMD = 2 - 1
STARTER.CHIRP_DELAYED_UPDATE_PREFIX = Own*
slot_type_1.JOB_EXECDIR_PERMISSIONS = world
STARTER.STARTER_LOG = $(LOG)/OwnLog
STARTER.UID_DOMAIN = starters.test
MACHINE_RESOURCE_License = a, b
STARTER.ENVIRONMENT_FOR_AssignedLicense = LICENSES
`)
	w.env = []string{"OF_THE_STARTD=there"}
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, "hello\n") }))
	defer web.Close()
	w.claimed = w.begin()
	p := w.peer(nil, w.at, w.claimed)
	w.must(os.WriteFile(filepath.Join(w.dir, "submit", "pre.sh"), []byte("#!/bin/sh\necho yes > pre.out\n"), 0o755))
	s, seen := w.brought(p, 1, "env > seen;  stat -c MODE=%a . >> seen; sed s/^/PRE=/ pre.out >> seen; sed s/^/URL=/ url >> seen; sleep 2",
		"WantIOProxy = true\nPreCmd = \"pre.sh\"\nRequestLicense = 1\n",
		transfer.SendItem{Source: "pre.sh"}, transfer.SendItem{Source: web.URL + "/url"})
	lines := strings.Split(seen, "\n")
	for name, want := range map[string]string{
		"per slot type, before STARTER.": "FROM=type1",
		"per slot type":                  "OWN_THREADS=1",
		"a list that is a boolean":       "OF_THE_STARTD=there",
		"an expression that is a number": "PRE=yes",
		"STARTER. of a list":             "_CHIRP_DELAYED_UPDATE_PREFIX=Own*",
		"a mode per slot type":           "MODE=755",
		"URLs, by an expression":         "URL=hello",
		"STARTER. of a resource":         "LICENSES=",
		"chirp, by an expression":        "_CONDOR_CHIRP_CONFIG=",
	} {
		found := false
		for _, l := range lines {
			found = found || l == want || strings.HasSuffix(want, "=") && strings.HasPrefix(l, want) && l != want
		}
		if !found {
			t.Errorf("%s: the job does not see %s", name, want)
		}
	}
	for name, c := range map[string]struct {
		call       shadow.Call
		attr, want string
	}{
		"an interval, by an expression": {shadow.CallRegisterJobInfo, "_condor_JOBINFO_MAXINTERVAL", "120"},
		"if $(IsStarter)":               {shadow.CallRegisterJobInfo, "MemoryUsage", "4321"},
		"STARTER. of the domain":        {shadow.CallRegisterStarterInfo, "UidDomain", `"starters.test"`},
	} {
		if got := told(s, c.call, c.attr); got != c.want {
			t.Errorf("%s: the shadow is told %s = %s, want %s", name, c.attr, got, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "log", "OwnLog.slot1_1")); err != nil {
		t.Errorf("STARTER.STARTER_LOG: %v", err)
	}
	if t.Failed() {
		t.Logf("the job saw\n%s", seen)
	}
}

// TestStarterGivesUpWhenItsOwnerSays has a shadow not answer.
func TestStarterGivesUpWhenItsOwnerSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneType+"STARTER_UPLOAD_TIMEOUT = 200\nSTARTER.STARTER_UPLOAD_TIMEOUT = 1 + 1\n")
	id := w.begin()
	p := w.peer(nil, w.at, id)
	job := w.job(1, "true", "")
	part, _ := p.request(id, job)
	s := p.shadow(part, job, shadowtest.Files{})
	s.Misbehave(func(_ int, r *shadow.Request, _ *shadow.Reply) shadowtest.Action {
		if r.Call == shadow.CallGetJobInfo {
			return shadowtest.Silent
		}
		return shadowtest.Send
	})
	began := time.Now()
	ended := p.run(s)
	select {
	case <-ended:
		if d := time.Since(began); d < 1500*time.Millisecond {
			t.Errorf("the starter gave its shadow up after %v, want 2 s", d)
		}
	case <-time.After(realpool.Patience):
		t.Fatal("the starter waits for a shadow that does not answer")
	}
}

// TestStarterSettingsAreThoseOfItsStart reconfigures a startd: the next job has the
// new settings, the one that runs keeps its own.
func TestStarterSettingsAreThoseOfItsStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneType+"STARTER_SETS_HOME_ENV = (1 > 2)\nSTARTER.STARTER_JOB_ENVIRONMENT = \"FROM=old\"\nSTARTER.STARTER_UPDATE_INTERVAL = 1\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER.MEMORY_USAGE_METRIC = 1\n")
	w.claimed = w.begin()
	p := w.peer(nil, w.at, w.claimed)
	job := w.job(1, "while ! test -f "+w.dir+"/submit/go; do sleep 0.1; done; sleep 2", "")
	part, rest := p.request(w.claimed, job)
	w.claimed = rest
	first := p.shadow(part, job, shadowtest.Files{})
	running := p.run(first)
	_, err := first.Wait(t.Context(), shadow.CallBeginExecution, 0)
	w.must(err)
	w.configure(oneType + "if $(IsStarter)\nSTARTER_JOB_ENVIRONMENT = \"FROM=new HOME=mine\"\nMEMORY_USAGE_METRIC = 2\nendif\n")
	w.must(w.cmd.Process.Signal(syscall.SIGHUP))
	w.says("configuration taken over", realpool.Patience)
	if _, seen := w.brought(p, 2, "env > seen", ""); !strings.Contains(seen, "\nFROM=new\n") && !strings.HasPrefix(seen, "FROM=new\n") || strings.Contains(seen, "HOME=mine\n") {
		t.Errorf("the next job sees\n%s", seen)
	}
	w.must(os.WriteFile(filepath.Join(w.dir, "submit", "go"), nil, 0o644))
	w.done("the first job", running, realpool.Patience)
	if got := told(first, shadow.CallRegisterJobInfo, "MemoryUsage"); got != "1" {
		t.Errorf("of the job that ran the shadow is told MemoryUsage = %s", got)
	}
}

// TestStarterSettingsThatCannotBe keep a startd from beginning, with the line at fault.
func TestStarterSettingsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "if $(IsStarter)\nSTARTER_UPDATE_INTERVAL = soon\nendif\n")
	cmd := w.command()
	late := time.AfterFunc(realpool.Patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(w.log()+string(out), "STARTER_UPDATE_INTERVAL") {
		t.Errorf("the daemon ended with %v\n%s\n%s", err, out, w.log())
	}
}

// TestAccountOfStarters has root's jobs run as whom the configuration of their starters
// names.
func TestAccountOfStarters(t *testing.T) {
	t.Parallel()
	realpool.NeedRoot(t)
	w := newWorld(t, oneType+"NOBODY_SLOT_USER = nosuchuser\nslot_type_1.NOBODY_SLOT_USER = games\n")
	for _, at := range []string{"", "execute", "lock", "log", "spool"} {
		w.must(os.Lchown(filepath.Join(w.dir, at), 0, 0))
		w.must(os.Chmod(filepath.Join(w.dir, at), 0o755))
	}
	w.cred = nil
	w.claimed = w.begin()
	p := w.peer(nil, w.at, w.claimed)
	if _, seen := w.brought(p, 1, "id -un > seen", ""); seen != "games\n" {
		t.Errorf("the job runs as %q, want games", seen)
	}
}

// TestSecurityOfStarters asks starters and their startd who may give a command: each
// answers by the configuration as it reads it.
func TestSecurityOfStarters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneType+"SEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\nSEC_DEFAULT_AUTHENTICATION = REQUIRED\nALLOW_DAEMON = nobody@nowhere\nslot_type_1.ALLOW_DAEMON = *\n"+
		"if $(IsStarter)\n  DENY_WRITE = *\nelse\n  ALLOW_WRITE = *\nendif\n")
	id := w.begin()
	p := w.peer(nil, w.at, id)
	job := w.job(1, "while ! test -f "+w.dir+"/submit/go; do sleep 0.1; done", "")
	part, _ := p.request(id, job)
	s := p.shadow(part, job, shadowtest.Files{})
	running := p.run(s)
	_, err := s.Wait(t.Context(), shadow.CallBeginExecution, 0)
	w.must(err)
	at, err := strconv.Unquote(told(s, shadow.CallRegisterStarterInfo, "StarterIpAddr"))
	w.must(err)
	startd, _, _ := strings.Cut(id.Public, "#")

	snap, err := config.Parse("peer", "UID_DOMAIN = here.test\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\nSEC_DEFAULT_AUTHENTICATION = REQUIRED\nALLOW_CLIENT = *\n", config.Options{})
	w.must(err)
	set, err := security.SettingsFrom(snap, security.Sources{Subsystem: "TOOL"})
	w.must(err)
	methods, err := authn.SettingsFrom(snap, "TOOL")
	w.must(err)
	c := &security.Client{
		Sessions: security.NewSessions(clock.System(), 0), Clock: clock.System(), Dial: p.dial, Version: shadowtest.Version,
		Subsystem: "TOOL", PID: os.Getpid(), Address: func() string { return "" },
	}
	c.Configure(set, &authn.Client{Settings: methods, System: authn.System{User: "someone"}})
	const vacateJob, claimActivation, reconnect = 1500, 444, 1200 // DAEMON at a starter, DAEMON at a startd, WRITE at both
	for _, q := range []struct {
		name, at string
		command  int
		want     bool
	}{
		{"DAEMON at the starter", at, vacateJob, true}, {"DAEMON at the startd", startd, claimActivation, false},
		{"WRITE at the starter", at, reconnect, false}, {"WRITE at the startd", startd, reconnect, true},
	} {
		to, err := cedar.ParseSinful(q.at)
		w.must(err)
		_, answer, err := c.Query(t.Context(), to, q.command)
		got := answer["AuthorizationSucceeded"] == true
		if got != q.want || err != nil && !errs.Is(err, errs.Denied) {
			t.Errorf("%s is allowed: %v (%v), want %v", q.name, got, err, q.want)
		}
	}
	w.must(os.WriteFile(filepath.Join(w.dir, "submit", "go"), nil, 0o644))
	w.done("the job", running, realpool.Patience)
}
