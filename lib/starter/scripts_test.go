// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// scripted starts a job with programs before and after it, which note that they ran
// in files of the scratch directory and end as told.
func scripted(t *testing.T, ad, allowed string, program, before, after hosttest.Program) *pool {
	t.Helper()
	return newPoolPlan(t, ad, program, func(p *pool, plan *protocol.Plan) {
		if allowed != "" {
			plan.Settings = configured(t, "STARTER_ALLOW_JOB_PRE_AND_POST_CMD = "+allowed+"\n")
		}
		if before != nil {
			p.machine.Install(filepath.Join(p.execute, "dir_1000/scratch/pre.sh"), before)
		}
		if after != nil {
			p.machine.Install("/opt/post", after)
		}
	})
}

const bothScripts = "PreCmd = \"pre.sh\"\nPreArguments = \"a 'b c'\"\nPreEnvironment = \"WHO=pre\"\nPostCmd = \"/opt/post\"\nPostArgs = \"x y\"\nPostEnv = \"WHO=post\"\n" +
	"Environment = \"JOBS=own\"\nCoreSize = 5\n"

// Both run around the job: in its scratch directory, with their own arguments and
// environments, and what they leave is output of the job.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := scripted(t, bothScripts, "MY.Memory > 0 && TARGET.ProcId == 0", writes("result", "42", host.ExitStatus{Exited: true, Code: 3}),
		writes("made.before", "1", host.ExitStatus{Exited: true, Code: 9}), writes("made.after", "2", host.ExitStatus{Signal: 6}))
	rec := p.last()
	end := <-p.ended
	if end.Exit == nil || end.Exit.Ints[0] != 3<<8 || rec.Status.Code != 3 {
		t.Fatalf("%+v", end)
	}
	scratch := filepath.Join(p.execute, "dir_1000/scratch")
	all := p.machine.Families()
	if len(all) != 3 {
		t.Fatalf("%d programs ran", len(all))
	}
	for i, want := range []struct {
		args, env []string
		nice      int
	}{
		{[]string{"condor_Prescript", "a", "b c"}, []string{"WHO=pre"}, 10},
		{nil, []string{"JOBS=own"}, 0},
		{[]string{"condor_Postscript", "x", "y"}, []string{"WHO=post", "_CONDOR_MAINJOB_EXIT_CODE=3"}, 10},
	} {
		spec := all[i].Spec
		if want.args != nil && !slices.Equal(spec.Args, want.args) || spec.Dir != scratch || spec.Nice != want.nice || *spec.Limits.Core != 5 {
			t.Errorf("program %d: %q in %s, niceness %d, core limit %d", i, spec.Args, spec.Dir, spec.Nice, *spec.Limits.Core)
		}
		for _, entry := range append(want.env, "_CONDOR_SCRATCH_DIR="+scratch, spec.Marker) {
			if !slices.Contains(spec.Env, entry) {
				t.Errorf("program %d has no %s in %q", i, entry, spec.Env)
			}
		}
		if own := slices.Contains(spec.Env, "JOBS=own"); own != (i == 1) {
			t.Errorf("program %d has the environment of the job: %v", i, own)
		}
	}
	for name, want := range map[string]string{"result": "42", "made.before": "1", "made.after": "2"} {
		if got, err := os.ReadFile(filepath.Join(p.submit, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v)", name, got, err)
		}
	}
	for name, want := range map[string]string{"PostExitBySignal": "true", "PostExitSignal": "6", "PreExitCode": "", "ExitCode": "3"} {
		got := ""
		if e, ok := end.Exit.Ad.Lookup(name); ok {
			got = e.String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// What their ends mean, and where they are not run.
func TestScriptEnds(t *testing.T) {
	t.Parallel()
	exits := func(code int) hosttest.Program {
		return func(*hosttest.Process) host.ExitStatus { return host.ExitStatus{Exited: true, Code: code} }
	}
	for _, tt := range []struct {
		name, ad, allowed string
		before, after     hosttest.Program
		ran               string        // which programs
		held              protocol.Hold // zero if the job ends
		tells             string        // an attribute that the shadow is told
	}{
		{name: "not allowed", ad: bothScripts, before: exits(0), after: exits(0), ran: "job"},
		{name: "not allowed here", ad: bothScripts, allowed: "TARGET.ProcId > 5", before: exits(0), after: exits(0), ran: "job"},
		{name: "no boolean", ad: bothScripts, allowed: "TARGET.Nothing", before: exits(0), after: exits(0), ran: "job"},
		{name: "any end will do", ad: bothScripts, allowed: "true", before: exits(7), after: exits(7), ran: "pre.sh job post"},
		{name: "the wanted end", ad: bothScripts + "SuccessPreExitCode = 7\nSuccessPostExitCode = 0\n", allowed: "true", before: exits(7), after: exits(0), ran: "pre.sh job post"},
		{name: "only before", ad: "PreCmd = \"pre.sh\"\n", allowed: "true", before: exits(0), ran: "pre.sh job"},
		{name: "only after", ad: "PostCmd = \"/opt/post\"\n", allowed: "true", after: exits(0), ran: "job post"},
		{name: "before failed", ad: bothScripts + "SuccessPreExitCode = 0\n", allowed: "true", before: exits(7), after: exits(0), ran: "pre.sh",
			held: protocol.Hold{Code: 43, Subcode: 0, Reason: "Pre script failed."}, tells: "PreExitCode = 7"},
		{name: "after failed", ad: bothScripts + "SuccessPostExitBySignal = true\nSuccessPostExitSignal = 9\n", allowed: "true", before: exits(0), after: exits(1), ran: "pre.sh job post",
			held: protocol.Hold{Code: 44, Subcode: 0, Reason: "Post script failed."}, tells: "PostExitCode = 1"},
		{name: "before not there", ad: bothScripts, allowed: "true", after: exits(0), ran: "",
			held: protocol.Hold{Code: 6, Subcode: 2, Reason: "Failed to execute 'SCRATCH/pre.sh' with arguments a b' 'c: No such file or directory"}},
		{name: "after not there", ad: bothScripts, allowed: "true", before: exits(0), ran: "pre.sh job",
			held: protocol.Hold{Code: 6, Subcode: 2, Reason: "Failed to execute '/opt/post' with arguments x y: No such file or directory"}},
		{name: "bad arguments", ad: bothScripts + "PreArguments = \"'a\"\n", allowed: "true", before: exits(0), after: exits(0), ran: "",
			held: protocol.Hold{Code: 6, Subcode: 0, Reason: "Failed to start the job: "}},
		{name: "bad environment", ad: bothScripts + "PreEnvironment = \"'a\"\n", allowed: "true", before: exits(0), after: exits(0), ran: "",
			held: protocol.Hold{Code: 6, Subcode: 0, Reason: "Failed to start the job: job attribute PreEnvironment: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := scripted(t, tt.ad, tt.allowed, writes("result", "42", host.ExitStatus{Exited: true}), tt.before, tt.after)
			rec := p.last()
			end := <-p.ended
			var ran []string
			for _, f := range p.machine.Families() {
				ran = append(ran, filepath.Base(f.Spec.Path))
			}
			if got := strings.Join(ran, " "); got != tt.ran {
				t.Errorf("ran %s, want %s", got, tt.ran)
			}
			if tt.held == (protocol.Hold{}) {
				if end.Exit == nil || rec.Held != nil {
					t.Errorf("%+v, %+v", end, rec.Held)
				}
				return
			}
			want := strings.ReplaceAll(tt.held.Reason, "SCRATCH", filepath.Join(p.execute, "dir_1000/scratch"))
			if end.Held == nil || rec.Held == nil || rec.Held.Code != tt.held.Code || rec.Held.Subcode != tt.held.Subcode || !strings.HasPrefix(rec.Held.Reason, want) {
				t.Fatalf("held %+v, want %+v", rec.Held, tt.held)
			}
			if _, err := os.Stat(filepath.Join(p.submit, "result")); err == nil {
				t.Error("the output of a job that is held was sent")
			}
			told := ""
			for _, c := range p.shadow.Calls() {
				if c.Request.Call.String() == "register_job_info" {
					told += c.Request.Ad.Text(classad.Old)
				}
			}
			if !strings.Contains(told, tt.tells) {
				t.Errorf("the shadow was not told that %s: %s", tt.tells, told)
			}
		})
	}
}

// lastWord reads all reports, which the starter waits for, and gives the last one.
func lastWord(k *talk) <-chan protocol.ExitRecord {
	last := make(chan protocol.ExitRecord, 1)
	go func() {
		for r := k.report(); r != nil; r = k.report() {
			if e, ok := r.(protocol.Ended); ok {
				last <- e.Record
				for k.report() != nil {
				}
				<-k.status
				return
			}
		}
		k.Error("the starter ended without a word")
		close(last)
	}()
	return last
}

// An order to leave ends a program before or after the job, at once or, after a job
// that has ended by itself, when its time is over.
func TestScriptsAreEnded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, runs string // which program does not end by itself
		order      protocol.Order
		ran        string
	}{
		{"before, softly", "pre", protocol.SoftKill{Leave: protocol.Leave{Code: 1010, Reason: "vacate"}, Deadline: time.Hour}, "pre.sh"},
		{"before, hard", "pre", protocol.HardKill{Leave: protocol.Leave{Code: 1010, Reason: "vacate"}}, "pre.sh"},
		{"job, softly", "job", protocol.SoftKill{Leave: protocol.Leave{Code: 1010, Reason: "vacate"}, Deadline: time.Hour}, "pre.sh job post"},
		{"job, hard", "job", protocol.HardKill{Leave: protocol.Leave{Code: 1010, Reason: "vacate"}}, "pre.sh job"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			execute := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				ends := func(name string) hosttest.Program {
					if name == tt.runs {
						return sleeper(100*time.Hour, 0)
					}
					return sleeper(time.Second, 0)
				}
				k := newTalk(t, execute, ends("job"))
				k.machine.Install(filepath.Join(execute, "dir_1000/scratch/pre.sh"), ends("pre"))
				k.machine.Install("/opt/post", ends("post"))
				k.plan(func(p *protocol.Plan) {
					p.JobAd += "PreCmd = \"pre.sh\"\nPostCmd = \"/opt/post\"\n"
					p.Settings = configured(t, "STARTER_ALLOW_JOB_PRE_AND_POST_CMD = true\n")
				})
				last := lastWord(k)
				time.Sleep(10 * time.Second)
				k.send(tt.order)
				rec := <-last
				var ran []string
				for _, f := range k.machine.Families() {
					ran = append(ran, filepath.Base(f.Spec.Path))
					if !f.Status().Ended() {
						t.Errorf("%s is left", f.Spec.Path)
					}
				}
				if len(ran) > 1 && ran[1] != "pre.sh" {
					ran[1] = "job"
				}
				if diff := cmp.Diff(tt.ran, strings.Join(ran, " ")); diff != "" {
					t.Error(diff)
				}
				if !rec.Evicted || rec.Code != 1010 || k.passed() > time.Minute {
					t.Errorf("after %v: %+v", k.passed(), rec)
				}
			})
		})
	}
	// The time of a program after the job is that of output which stands still.
	t.Run("after", func(t *testing.T) {
		t.Parallel()
		execute := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			k := newTalk(t, execute, sleeper(time.Second, 0))
			k.machine.Install("/opt/post", sleeper(100*time.Hour, 0))
			k.plan(func(p *protocol.Plan) {
				p.JobAd += "PostCmd = \"/opt/post\"\n"
				p.Settings = configured(t, "STARTER_ALLOW_JOB_PRE_AND_POST_CMD = true\nKILLING_TIMEOUT = 30\n")
			})
			last := lastWord(k)
			time.Sleep(10 * time.Second)
			k.send(protocol.HardKill{Leave: protocol.Leave{Code: 1010, Reason: "vacate"}})
			if rec := <-last; !rec.Evicted || k.passed() > 10*time.Second+20*time.Second || !k.machine.Families()[1].Status().Ended() {
				t.Errorf("after %v: %+v", k.passed(), rec)
			}
		})
	})
}
