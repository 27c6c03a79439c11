// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// traps is a job that notes the signal by which it is told to go.
const traps = `#!/bin/sh
for s in TERM INT USR1 USR2 HUP QUIT; do trap "echo $s > @DIR@/signal; exit 9" $s; done
touch @DIR@/ready
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do sleep 1 & wait; done
`

// A schedd starts our starter itself, for jobs of the local universe: they run in
// their directory, leave as told, and what becomes of them stands in the queue and in
// the event log. With EXECPOINT_TEST_SELF_CHECK it is HTCondor's own starter, which
// differs in two things, where ours keeps to the documents: OnExitRemove does not see
// the present start in NumJobStarts, and RemoveKillSig is sent to a job that is vacated
// or held, too.
func TestLocalUniverse(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared port %v", shared), func(t *testing.T) {
			t.Parallel()
			localUniverse(t, shared)
		})
	}
}

func localUniverse(t *testing.T, shared bool) {
	c := newCondor(t, roomy)
	lines := fmt.Sprintf("\nUSE_SHARED_PORT = %v\nDAEMON_LIST = MASTER, COLLECTOR, SCHEDD\nSTART_LOCAL_UNIVERSE = True\nSCHEDD_INTERVAL = 2\n", shared)
	if os.Getenv(selfCheck) == "" {
		ours := filepath.Join(c.Dir, "ours")
		c.Mkdir(ours)
		c.Install(ours)
		lines += "STARTER_LOCAL = " + filepath.Join(ours, "condor_starter") + "\n"
	}
	text, err := os.ReadFile(c.Config)
	c.Must(err)
	c.Must(os.WriteFile(c.Config, append(text, lines...), 0o644))
	c.start("condor_master")
	eventually(t, "the schedd answers", func() error { _, err := c.run("condor_q", "-totals"); return err })
	s := &side{rig: &rig{condor: c}, name: "here", dir: c.Dir}
	s.rig.sides[1] = s

	submit := func(name, more, script string) *job {
		return s.submit(t, name, "universe = local\nexecutable = job.sh\noutput = out\nerror = err\nrequirements = true\n"+more+"\n", "", func(dir string) {
			c.files(dir, map[string]string{"job.sh": strings.ReplaceAll(script, "@DIR@", dir)})
		})
	}
	ended := submit("ended", "arguments = \"a 'b c'\"\nenvironment = \"ME=here\"", "#!/bin/sh\necho $# $ME; pwd; echo oops >&2; exit 3\n")
	held := submit("held", "on_exit_hold = ExitCode == 4\non_exit_hold_subcode = 44", "#!/bin/sh\nexit 4\n")
	again := submit("again", "on_exit_remove = NumJobStarts >= 2", "#!/bin/sh\necho x >> @DIR@/runs\n")
	none := submit("none", "", "not a program\n")
	late := submit("late", "hold = true\ndeferral_time = CurrentTime - 60", "#!/bin/sh\ntouch @DIR@/ran\n")
	late.tool("condor_qedit", late.id(), "Requirements", "true") // condor_submit writes one that is never true
	late.tool("condor_release", late.id())
	late.wait(eventlog.CodeReleased, 1)
	later := time.Now().Add(15 * time.Second).Unix()
	deferred := submit("deferred", fmt.Sprintf("deferral_time = %d\ndeferral_window = 60\ndeferral_prep_time = 600", later), "#!/bin/sh\ndate +%s > @DIR@/ran\n")
	waiting := map[string]*job{}
	for _, name := range []string{"rm", "hold", "vacate", "fast"} {
		waiting[name] = submit(name, "kill_sig = SIGHUP\nremove_kill_sig = SIGINT\nhold_kill_sig = SIGUSR1", traps)
	}

	checkAd := func(j *job, want ...string) {
		t.Helper()
		ad := j.final()[0]
		for _, line := range want {
			name, value, _ := strings.Cut(line, " = ")
			e, ok := ad.Lookup(name)
			if !ok || !regexp.MustCompile("^(?:"+value+")$").MatchString(e.Text(classad.Old)) {
				t.Errorf("job %s (%s): want %s, have %v %v", j.id(), j.dir, line, ok, e)
			}
		}
	}
	codes := func(j *job, want string) {
		t.Helper()
		if got := j.codes(); !regexp.MustCompile("^(?:" + want + ")$").MatchString(got) {
			t.Errorf("job %s (%s): events %s, want %s", j.id(), j.dir, got, want)
		}
	}
	ended.over()
	checkAd(ended, "ExitCode = 3", "ExitBySignal = false", "NumJobStarts = 1", "JobStatus = 4")
	codes(ended, "001 005")
	if out := ended.content("out"); out != "2 here\n"+ended.dir+"\n" || ended.content("err") != "oops\n" {
		t.Errorf("it printed %q", out)
	}
	held.over()
	checkAd(held, "JobStatus = 5", "HoldReasonCode = 3", "HoldReasonSubCode = 44")
	codes(held, "001 004 012")
	again.over()
	starts, events, vacated, kept := 2, "001 004 001 005", "HUP", "USR1"
	if os.Getenv(selfCheck) != "" {
		starts, events, vacated, kept = 3, "001 004 "+events, "INT", "INT"
	}
	checkAd(again, fmt.Sprintf("NumJobStarts = %d", starts), "JobStatus = 4", "ExitCode = 0")
	codes(again, events)
	none.over()
	checkAd(none, "JobStatus = 5", "HoldReasonCode = 6", "HoldReasonSubCode = 13")
	late.over()
	checkAd(late, "JobStatus = 5", "HoldReasonCode = 20", "NumJobStarts = 0|0")
	codes(late, "(012 )?013 004 012")
	if late.has("ran") {
		t.Error("a job ran whose time had passed")
	}
	deferred.over()
	checkAd(deferred, "JobStatus = 4", "ExitCode = 0")
	if ran := strings.TrimSpace(deferred.content("ran")); ran < fmt.Sprint(later) || ran > fmt.Sprint(later+5) {
		t.Errorf("a job ran at %s, deferred to %d", ran, later)
	}
	for _, c := range []struct{ name, tool, option, signal string }{
		{"rm", "condor_rm", "", "INT"}, {"hold", "condor_hold", "", kept}, {"vacate", "condor_vacate_job", "", vacated}, {"fast", "condor_vacate_job", "-fast", ""},
	} {
		j := waiting[c.name]
		j.made("ready")
		if c.signal == "" {
			c.signal = "KILL"
		}
		args := []string{j.id()}
		if c.option != "" {
			args = append([]string{c.option}, j.id())
		}
		j.tool(c.tool, args...)
		j.wait(eventlog.CodeEvicted, 1)
		got := "KILL"
		if j.has("signal") {
			got = strings.TrimSpace(j.content("signal"))
		}
		if got != c.signal {
			t.Errorf("%s: signal %s, want %s", c.name, got, c.signal)
		}
	}
	waiting["rm"].over()
	codes(waiting["rm"], "001 004 009")
	waiting["hold"].over()
	checkAd(waiting["hold"], "JobStatus = 5", "HoldReasonCode = 1")
	for _, name := range []string{"vacate", "fast"} {
		j := waiting[name]
		j.wait(eventlog.CodeExecute, 2) // it runs again
		j.remove()
		j.over()
	}
	if list, err := os.ReadDir(filepath.Join(c.Dir, "spool", "local_univ_execute")); err != nil || len(list) > 0 {
		t.Errorf("left in EXECUTE: %v, %v", list, err)
	}
}
