// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// deaf notes signals and goes on.
var deaf = strings.ReplaceAll(traps, "; exit 9", "")

// A job is told to go by the signal that it names for that, and is killed when its
// kill_sig_timeout is over. The shadow of a job that is held, removed or vacated tells
// the startd the same of all three: that the claim is deactivated. Then RemoveKillSig
// counts for all of them, and KillSig where it is not set, with both starters.
//
// row: S1-034
func TestKillSignals(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	const all = "kill_sig = SIGHUP\nremove_kill_sig = SIGINT\nhold_kill_sig = SIGUSR1"
	type run struct {
		name, submit, script string
		tool                 []string
		original, ours       string        // the signal; "" is none noted
		within               time.Duration // 0 is no matter
	}
	runs := []run{
		{name: "rm", submit: all, tool: []string{"condor_rm"}, original: "INT", ours: "INT"},
		{name: "hold", submit: all, tool: []string{"condor_hold"}, original: "INT", ours: "INT"},
		{name: "vacate", submit: all, tool: []string{"condor_vacate_job"}, original: "INT", ours: "INT"},
		{name: "only kill_sig, rm", submit: "kill_sig = SIGUSR2", tool: []string{"condor_rm"}, original: "USR2", ours: "USR2"},
		{name: "only kill_sig, vacate", submit: "kill_sig = 10", tool: []string{"condor_vacate_job"}, original: "USR1", ours: "USR1"},
		{name: "none", tool: []string{"condor_rm"}, original: "TERM", ours: "TERM"},
		{name: "fast", submit: all, tool: []string{"condor_vacate_job", "-fast"}},
		{name: "kill_sig_timeout", submit: "kill_sig_timeout = 2", script: deaf, tool: []string{"condor_rm"}, original: "TERM", ours: "TERM", within: 20 * time.Second},
	}
	jobs := make(map[string]*job)
	for _, s := range r.sides {
		for _, c := range runs {
			script := c.script
			if script == "" {
				script = traps
			}
			jobs[s.name+c.name] = s.submit(t, "killsig "+strings.ReplaceAll(c.name, ",", ""), "executable = job.sh\n"+c.submit+"\n", "", func(dir string) {
				r.files(dir, map[string]string{"job.sh": strings.ReplaceAll(script, "@DIR@", "'"+dir+"'")})
			})
		}
	}
	for _, s := range r.sides {
		for _, c := range runs {
			j := jobs[s.name+c.name]
			j.made("ready")
			asked := time.Now()
			j.tool(c.tool[0], append(c.tool[1:], j.id())...)
			j.wait(eventlog.CodeEvicted, 1)
			if took := time.Since(asked); c.within > 0 && took > c.within {
				t.Errorf("%s, %s: it was there for %v more", s.name, c.name, took)
			}
			want, got := c.original, ""
			if s.name == "ours" {
				want = c.ours
			}
			if j.has("signal") {
				got = strings.TrimSpace(j.content("signal"))
			}
			if got != want {
				t.Errorf("%s, %s: signal %q, want %q", s.name, c.name, got, want)
			}
			j.remove()
		}
	}
}
