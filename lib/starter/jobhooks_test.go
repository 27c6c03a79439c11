// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// given notes what hooks were given on their standard input, by their names.
type given struct {
	mu sync.Mutex
	of map[string][]*classad.Ad
}

func (g *given) all(name string) []*classad.Ad {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.of[name])
}

// says is a hook that reads its input, prints text and ends so.
func (g *given) says(text string, end host.ExitStatus) hosttest.Program {
	return func(p *hosttest.Process) host.ExitStatus {
		in, err := io.ReadAll(p.Spec().Stdin)
		ad, bad := classad.ParseAd(string(in), classad.Old)
		if err != nil || bad != nil {
			return host.ExitStatus{Exited: true, Code: 98}
		}
		g.mu.Lock()
		name := filepath.Base(p.Spec().Path)
		if g.of == nil {
			g.of = map[string][]*classad.Ad{}
		}
		g.of[name] = append(g.of[name], ad)
		g.mu.Unlock()
		if _, err := io.WriteString(p.Spec().Stdout, text); err != nil {
			return host.ExitStatus{Exited: true, Code: 97}
		}
		_, _ = io.WriteString(p.Spec().Stderr, name+" complains\n")
		return end
	}
}

// hooked starts a job with hooks: a line of the configuration for each, whose programs
// are HOOKS/<name>.
func hooked(t *testing.T, ad, conf string, job hosttest.Program, hooks map[string]hosttest.Program) *pool {
	t.Helper()
	dir := t.TempDir()
	return newPoolPlan(t, ad, job, func(p *pool, plan *protocol.Plan) {
		plan.Settings = configured(t, strings.ReplaceAll(conf, "HOOKS", dir))
		for name, program := range hooks {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
				t.Fatal(err)
			}
			if program != nil {
				p.machine.Install(filepath.Join(dir, name), program)
			}
		}
	}, "in.txt")
}

// ran are the programs that ran, in order.
func (p *pool) ran() string {
	var names []string
	for _, f := range p.machine.Families() {
		names = append(names, filepath.Base(f.Spec.Path))
	}
	return strings.Join(names, " ")
}

// logged are the complaints that the shadow was to write into the event log.
func (p *pool) logged() (texts []string) {
	for _, c := range p.shadow.Calls() {
		if c.Request.Call.String() == "ulog" {
			text, _ := c.Request.Ad.EvalString("ErrorMsg", nil)
			texts = append(texts, text)
		}
	}
	return texts
}

var well = host.ExitStatus{Exited: true}

const allHooks = `STARTER_DEFAULT_JOB_HOOK_KEYWORD = site
SITE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = HOOKS/first
SITE_HOOK_PREPARE_JOB = HOOKS/second
SITE_HOOK_PREPARE_JOB_ARGS = a 'b c'
SITE_HOOK_JOB_EXIT = HOOKS/last
`

// The hooks of a whole job: in which order, where and with what they run, and what they
// make of it.
//
// row: S0-328, S0-329, S0-330, S0-333, S0-337, S0-338, S0-339
func TestHooks(t *testing.T) {
	t.Parallel()
	var g given
	var p *pool
	input := func(dir string) bool { _, err := os.Stat(filepath.Join(dir, "in.txt")); return err == nil }
	before, after, told := true, false, true
	first, second, last := g.says("Edited = 1\nHookStatusMessage = \"so far so good\"\n", well),
		g.says("Cmd = \"/opt/other\"\nArguments = \"x 'y z'\"\nEnvironment = \"OWN=edited\"\nTwice = Edited + 1\nShouldTransferFiles = \"NO\"\n", well), g.says("", well)
	p = hooked(t, "Environment = \"OWN=job\"\nMine = 7\nTransferExecutable = true\n", allHooks, nil, map[string]hosttest.Program{
		"first": func(q *hosttest.Process) host.ExitStatus { before = input(q.Spec().Dir); return first(q) },
		"second": func(q *hosttest.Process) host.ExitStatus {
			after = input(q.Spec().Dir)
			if os.WriteFile(filepath.Join(q.Spec().Dir, "made"), []byte("by a hook"), 0o644) != nil {
				return host.ExitStatus{Exited: true, Code: 96}
			}
			return second(q)
		},
		"last": func(q *hosttest.Process) host.ExitStatus {
			_, err := os.Stat(filepath.Join(p.submit, "result"))
			told = err == nil || slices.Contains(p.calls(), "job_exit") || slices.ContainsFunc(p.shadow.Calls(), func(c shadowtest.Record) bool {
				state := ""
				if c.Request.Ad != nil {
					state, _ = c.Request.Ad.EvalString("JobState", nil)
				}
				return state == "Exited"
			})
			return last(q)
		},
	})
	var jobAd string
	run := writes("result", "42", host.ExitStatus{Exited: true, Code: 3})
	p.machine.Install("/opt/other", func(q *hosttest.Process) host.ExitStatus {
		text, _ := os.ReadFile(filepath.Join(q.Spec().Dir, ".job.ad"))
		jobAd = string(text)
		return run(q)
	})
	rec := p.last()
	end := <-p.ended
	if end.Exit == nil || rec.Status.Code != 3 || p.ran() != "first second other last" {
		t.Fatalf("ran %s: %+v, %+v", p.ran(), end, rec)
	}
	if before || !after || told {
		t.Errorf("input before the transfer %v, after it %v; output or notice before JOB_EXIT %v", before, after, told)
	}
	if got := p.logged(); !slices.Contains(got, "PREPARE_JOB_BEFORE_TRANSFER (first) succeeded (exited with status 0): so far so good") {
		t.Errorf("the event log has %q", got)
	}
	scratch := filepath.Join(p.execute, "dir_1000/scratch")
	all := p.machine.Families()
	for i, args := range [][]string{{"a", "b c"}, {"a", "b c"}, {"x", "y z"}, {"exit"}} {
		spec := all[i].Spec
		if !slices.Equal(spec.Args[1:], args) || spec.Dir != scratch || spec.Bond != host.Bound {
			t.Errorf("%s: %q in %s, %v", spec.Path, spec.Args, spec.Dir, spec.Bond)
		}
		env := strings.Join(spec.Env, "\n") + "\n"
		if !strings.Contains(env, "_CONDOR_SCRATCH_DIR="+scratch+"\n") || !strings.Contains(env, "_CONDOR_MACHINE_AD="+scratch+"/.machine.ad\n") || !strings.Contains(env, "_CONDOR_ANCESTOR_1000=") {
			t.Errorf("%s has the environment %q", spec.Path, spec.Env)
		}
		if own := strings.Contains(env, "OWN=edited\n"); own != (i == 2) || strings.Contains(env, "OWN=job") {
			t.Errorf("%s has the environment %q", spec.Path, spec.Env)
		}
	}
	for name, want := range map[string]string{"first": "undefined 7 undefined", "second": "1 7 undefined", "last": "1 7 3"} {
		ads := g.all(name)
		if len(ads) != 1 {
			t.Fatalf("%s has %d ads", name, len(ads))
		}
		got := ads[0].Eval("Edited", nil).String() + " " + ads[0].Eval("Mine", nil).String() + " " + ads[0].Eval("ExitCode", nil).String()
		if got != want {
			t.Errorf("%s was given %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"JobState": `"Exited"`, "ExitBySignal": "false", "ExitReason": `"exited normally with status 3"`, "JobPid": strconv.Itoa(all[2].Main().PID), "Twice": "2"} {
		got := g.all("last")[0].Eval(name, nil).String()
		if got != want {
			t.Errorf("JOB_EXIT was given %s = %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"JobDuration", "JobStartDate", "NumPids", "RemoteSysCpu", "RemoteUserCpu", "ImageSize"} {
		if _, ok := g.all("last")[0].Eval(name, nil).AsNumber(); !ok {
			t.Errorf("JOB_EXIT was not given %s", name)
		}
	}
	if !strings.Contains(jobAd, "Twice = Edited + 1") || !strings.Contains(jobAd, "Arguments = \"x 'y z'\"") {
		t.Errorf("the job's ad is\n%s", jobAd)
	}
	if text, err := os.ReadFile(filepath.Join(p.submit, "made")); err != nil || string(text) != "by a hook" {
		t.Errorf("what a hook made is no output: %q, %v", text, err)
	}
}

// A hook that prints the whole ad which it was given, with one more attribute, changes
// nothing else: not where output goes, nor what runs.
//
// row: S0-330
func TestHookEchoes(t *testing.T) {
	t.Parallel()
	var g given
	tell := g.says("Edited = true\n", well)
	p := hooked(t, "TransferExecutable = true\nHookKeyword = \"a\"\n", "A_HOOK_PREPARE_JOB = HOOKS/echo\nA_HOOK_JOB_EXIT = HOOKS/last\n", writes("result", "42", well), map[string]hosttest.Program{
		"last": g.says("", well),
		"echo": func(q *hosttest.Process) host.ExitStatus {
			end := tell(q)
			if _, err := io.WriteString(q.Spec().Stdout, g.all("echo")[0].Text(classad.Old)); err != nil {
				return host.ExitStatus{Exited: true, Code: 95}
			}
			return end
		},
	})
	rec := p.last()
	if !rec.Status.Success() || p.ran() != "echo job last" {
		t.Fatalf("ran %s: %+v", p.ran(), rec)
	}
	if text, err := os.ReadFile(filepath.Join(p.submit, "out.txt")); err != nil || string(text) != "hello" {
		t.Errorf("the standard output: %q, %v", text, err)
	}
	ad := g.all("last")[0]
	if edited, _ := ad.EvalBool("Edited", nil); !edited || ad.Eval("OrigIwd", nil).String() != strconv.Quote(p.submit) {
		t.Errorf("JOB_EXIT was given\n%s", ad.Text(classad.Old))
	}
}

// What becomes of a job that its prepare hook refuses.
//
// row: S0-331, S0-332, S0-333
func TestHookRefuses(t *testing.T) {
	t.Parallel()
	var g given
	for _, tt := range []struct {
		name, conf    string
		first, second hosttest.Program
		missing       bool // second is no file
		ran           string
		code, subcode int // of the hold; 0 for none
		reason        string
	}{
		{name: "status", first: g.says("", well), second: g.says("", host.ExitStatus{Exited: true, Code: 3}), ran: "first second last", code: 19, subcode: 3,
			reason: "PREPARE_JOB (second) failed (exited with status 3): <no message>"},
		{name: "before the transfer", first: g.says("HookStatusCode = 190\nHookStatusMessage = \"no such luck\"", well), second: g.says("", well), ran: "first last", code: 19, subcode: 190,
			reason: "PREPARE_JOB_BEFORE_TRANSFER (first) failed (reported status 190): no such luck"},
		{name: "elsewhere", first: g.says("", well), second: g.says("HookStatusCode = 390\nHookStatusMessage = \"try elsewhere\"", well), ran: "first second last",
			reason: "PREPARE_JOB (second) failed (reported status 390): try elsewhere"},
		{name: "killed", first: g.says("HookStatusCode = 0\n", host.ExitStatus{Signal: 9}), second: g.says("", well), ran: "first last",
			reason: "PREPARE_JOB_BEFORE_TRANSFER (first) failed (died with signal 9): <no message>"},
		{name: "not executable", first: g.says("", well), ran: "first last", code: 19, reason: "failed to execute PREPARE_JOB ("},
		{name: "no such file", first: g.says("", well), missing: true, reason: "invalid path specified for SITE_HOOK_PREPARE_JOB ("},
		{name: "too much", first: g.says(strings.Repeat("A = 1\n", 1<<18), well), second: g.says("", well), ran: "first last", reason: "PREPARE_JOB_BEFORE_TRANSFER (first) failed (died with signal 9)"},
		{name: "a job that cannot be", first: g.says("", well), second: g.says("Arguments = \"'open\"", well), ran: "first second last", code: 6, reason: "Failed to start the job: the job as its hook left it"},
		{name: "a job that is refused", first: g.says("", well), second: g.says("JobUniverse = 10", well), ran: "first second last", code: 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hooks := map[string]hosttest.Program{"first": tt.first, "second": tt.second, "last": g.says("", well)}
			if tt.missing {
				delete(hooks, "second")
			}
			p := hooked(t, "", allHooks+tt.conf, writes("result", "42", well), hooks)
			rec := p.last()
			end := <-p.ended
			if p.ran() != tt.ran {
				t.Errorf("ran %q, want %q", p.ran(), tt.ran)
			}
			if (rec.Held != nil) != (tt.code != 0) || rec.Held != nil && (rec.Held.Code != tt.code || rec.Held.Subcode != tt.subcode && tt.subcode != 0 || !strings.HasPrefix(rec.Held.Reason, tt.reason)) {
				t.Errorf("held %+v", rec.Held)
			}
			texts := p.logged()
			if len(texts) != 1 || !strings.Contains(texts[0], tt.reason) || end.Exit != nil {
				t.Errorf("the shadow hears %q, %+v", texts, end)
			}
			for _, c := range p.shadow.Calls() {
				if c.Request.Call.String() == "begin_execution" {
					t.Error("the job counts as begun")
				}
				if c.Request.Call.String() == "ulog" {
					if code, said := c.Request.Ad.EvalInt("HoldReasonCode", nil); tt.code == 0 && tt.ran != "" && said || code > 0 && code < 1000 && tt.code == 0 {
						t.Errorf("the shadow is to hold the job: %d", code)
					}
				}
			}
			if n := len(p.machine.Families()); n > 0 && tt.ran != "" && !slices.Equal(p.machine.Families()[n-1].Spec.Args[1:], []string{"evict"}) {
				t.Errorf("JOB_EXIT has %q", p.machine.Families()[n-1].Spec.Args)
			}
		})
	}
}

// UPDATE_JOB_INFO is told how the job is, first after 8 seconds and then every 300.
//
// row: S0-334, S0-335
func TestUpdateHook(t *testing.T) {
	t.Parallel()
	execute, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "update"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var g given
		var at []string
		tell := g.says("ignored", host.ExitStatus{Exited: true, Code: 5})
		k := newTalk(t, execute, sleeper(400*time.Second, 0))
		k.machine.Install(filepath.Join(dir, "update"), func(q *hosttest.Process) host.ExitStatus {
			at = append(at, k.passed().String())
			return tell(q)
		})
		k.plan(func(p *protocol.Plan) {
			p.Settings = configured(t, "STARTER_JOB_HOOK_KEYWORD = a\nA_HOOK_UPDATE_JOB_INFO = "+dir+"/update\nSTARTER_INITIAL_UPDATE_INTERVAL = 8\nSTARTER_UPDATE_INTERVAL = 300\n")
			p.JobAd += "ClusterId = 7\n"
		})
		last := lastWord(k)
		time.Sleep(350 * time.Second)
		k.send(protocol.Suspend{})
		time.Sleep(300 * time.Second)
		k.send(protocol.Continue{})
		rec := <-last
		var states []string
		for _, ad := range g.all("update") {
			s, _ := ad.EvalString("JobState", nil)
			states = append(states, s)
			for _, name := range []string{"JobPid", "NumPids", "JobStartDate", "RemoteSysCpu", "RemoteUserCpu", "ImageSize", "ClusterId"} {
				if _, ok := ad.Eval(name, nil).AsNumber(); !ok {
					t.Errorf("%s is missing in\n%s", name, ad.Text(classad.Old))
				}
			}
		}
		if diff := cmp.Diff([]string{"8s", "5m8s", "10m8s"}, at); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"Running", "Running", "Suspended"}, states); diff != "" {
			t.Error(diff)
		}
		if rec.Status.Code != 0 || !rec.Status.Exited {
			t.Errorf("%+v", rec)
		}
	})
}

// A hook that still runs when the job has ended ends with it.
func TestUpdateHookEnds(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	p := hooked(t, "", "STARTER_JOB_HOOK_KEYWORD = a\nA_HOOK_UPDATE_JOB_INFO = HOOKS/update\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\n", sleeper(100*time.Hour, 0),
		map[string]hosttest.Program{"update": func(q *hosttest.Process) host.ExitStatus { close(begun); return sleeper(100*time.Hour, 0)(q) }})
	<-begun
	p.send(protocol.HardKill{Leave: protocol.Leave{Code: 1010, Reason: "vacate"}})
	p.last()
	all := p.machine.Families()
	if p.ran() != "job update" || all[1].Status().Signal != hosttest.SIGKILL || !all[1].Closed() {
		t.Errorf("ran %s, the hook: %v", p.ran(), all[1].Status())
	}
}

// The argument of JOB_EXIT, and that one which does not end is ended.
//
// row: S0-336
func TestExitHook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		order protocol.Order // nil: the job ends by itself
		word  string
		hangs bool
	}{
		{"exit", nil, "exit", false},
		{"exit, and the hook hangs", nil, "exit", true},
		{"evict", protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerVacate, Code: 1010, Reason: "vacate"}}, "evict", false},
		{"evict at once", protocol.HardKill{Leave: protocol.Leave{Code: 1010, Reason: "vacate"}}, "evict", false},
		{"remove", protocol.HardKill{Leave: protocol.Leave{Manner: protocol.MannerRemove, Code: 1010, Reason: "rm"}}, "remove", false},
		{"taken back by its shadow", protocol.HardKill{Leave: protocol.Leave{Code: 1009, Reason: "Claim deactivated forcibly"}}, "evict", false},
		{"hold", protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Code: 1, Reason: "hold"}}, "hold", false},
		{"remove, and the hook hangs", protocol.HardKill{Leave: protocol.Leave{Manner: protocol.MannerRemove, Code: 1010, Reason: "rm"}}, "remove", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var g given
			tell := g.says("", well)
			job := sleeper(100*time.Hour, 0)
			if tt.order == nil {
				job = writes("result", "42", well)
			}
			p := hooked(t, "HookKeyword = \"a\"\n", "A_HOOK_JOB_EXIT = HOOKS/last\nA_HOOK_JOB_EXIT_TIMEOUT = 1\nKILLING_TIMEOUT = 2\n", job, map[string]hosttest.Program{"last": func(q *hosttest.Process) host.ExitStatus {
				end := tell(q)
				if tt.hangs {
					q.Sleep(100 * time.Hour)
				}
				return end
			}})
			if tt.order != nil {
				until[protocol.Running](p)
				p.send(tt.order)
			}
			rec := p.last()
			all := p.machine.Families()
			if len(all) != 2 || len(g.all("last")) != 1 || !slices.Equal(all[1].Spec.Args[1:], []string{tt.word}) {
				t.Fatalf("ran %s: %+v", p.ran(), rec)
			}
			if got := all[1].Status().Signal; (got == hosttest.SIGKILL) != tt.hangs {
				t.Errorf("the hook ended with %v", all[1].Status())
			}
			if tt.order == nil {
				if end := <-p.ended; end.Exit == nil {
					t.Errorf("%+v", end)
				}
				if _, err := os.Stat(filepath.Join(p.submit, "result")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// An order to leave ends a hook that prepares a job.
func TestHookIsEnded(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	p := hooked(t, "HookKeyword = \"a\"\n", "A_HOOK_PREPARE_JOB = HOOKS/hangs\nA_HOOK_JOB_EXIT = HOOKS/last\n", sleeper(time.Hour, 0), map[string]hosttest.Program{
		"hangs": func(q *hosttest.Process) host.ExitStatus { close(begun); return sleeper(100*time.Hour, 0)(q) }, "last": new(given).says("", well)})
	<-begun
	p.send(protocol.HardKill{Leave: protocol.Leave{Code: 1010, Reason: "vacate"}})
	if rec := p.last(); !rec.Evicted || rec.Code != 1010 || p.ran() != "hangs last" {
		t.Errorf("ran %s: %+v", p.ran(), rec)
	}
}
