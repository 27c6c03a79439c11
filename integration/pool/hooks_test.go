// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/eventlog"
)

// hookPrograms are the owner's hooks of jobs, below a directory that stands for @HOOKS@
// in them. What a hook tells goes into @HOOKS@/told/<cluster>.<hook>.
var hookPrograms = map[string]string{
	// edits the job: everything that it prints counts
	"edit": `ad=$(cat)
echo 'Arguments = "edited by '"$*"'"'
echo 'Environment = "OWN=edited"'
echo 'HookStatusMessage = "so far so good"'
echo 'Seen = "'$(echo "$ad" | sed -n 's/^Mine = //p')'"'`,
	"before": `cat > /dev/null; pwd > before.txt; ls >> before.txt; ls -a | grep 'ad$' | sort >> before.txt; echo 'FromFirst = 41'`,
	"after":  `cat > ad2; test -f in.txt && echo input is there > after.txt; sed -n 's/^FromFirst = //p' ad2 >> after.txt; echo "$@" >> after.txt; rm ad2`,
	"hold":   `cat > /dev/null; echo 'HookStatusMessage = "really bad"'; echo 'HookStatusCode = 190'`,
	"fail":   `cat > /dev/null; echo 'HookStatusMessage = "no luck"'; echo this goes to the log >&2; exit 7`,
	// the first try goes elsewhere
	"elsewhere": `n=$(sed -n 's/^NumShadowStarts = //p'); test "$n" -ge 2 && exit 0; echo 'HookStatusMessage = "try again"'; echo 'HookStatusCode = 390'`,
	"killed":    `n=$(sed -n 's/^NumShadowStarts = //p'); test "$n" -ge 2 && exit 0; echo 'HookStatusCode = 0'; kill -KILL $$`,
	"negative":  `cat > /dev/null; echo 'HookStatusCode = -5'`,
	"zero":      `cat > /dev/null; echo 'HookStatusCode = 0'; exit 4`,
	"nonsense":  `cat > /dev/null; echo 'Arguments = "counts"'; echo this is no attribute; echo 'Arguments = "does not count"'`,
	"other":     `cat > /dev/null; echo 'Cmd = "@HOOKS@/java5"'`,
	"default":   `cat > /dev/null; echo 'Arguments = "the default one"'`,
	"forced":    `cat > /dev/null; echo 'Arguments = "the forced one"'`,
	"java5":     `echo the other java with "$@"`,
	// tells of the end: its argument, and what of the ad matters
	"exit": `cat > ad.exit
c=$(sed -n 's/^ClusterId = //p' ad.exit)
sort ad.exit > @HOOKS@/told/$c.exit.new; echo "$*" > @HOOKS@/told/$c.word; mv @HOOKS@/told/$c.exit.new @HOOKS@/told/$c.exit
ls > exit.txt; rm ad.exit`,
	"update": `cat > @HOOKS@/told/$$.new; c=$(sed -n 's/^ClusterId = //p' @HOOKS@/told/$$.new); mv @HOOKS@/told/$$.new @HOOKS@/told/$c.update.$(sed -n 's/^JobState = "\(.*\)"/\1/p' @HOOKS@/told/$$.new)`,
}

const hookConfig = `
STARTER_DEFAULT_JOB_HOOK_KEYWORD = def
DEF_HOOK_PREPARE_JOB = @HOOKS@/default
EDIT_HOOK_PREPARE_JOB = @HOOKS@/edit
EDIT_HOOK_PREPARE_JOB_ARGS = a 'b c'
BOTH_HOOK_PREPARE_JOB_BEFORE_TRANSFER = @HOOKS@/before
BOTH_HOOK_PREPARE_JOB = @HOOKS@/after
HOLD_HOOK_PREPARE_JOB = @HOOKS@/hold
HOLDFIRST_HOOK_PREPARE_JOB_BEFORE_TRANSFER = @HOOKS@/hold
FAIL_HOOK_PREPARE_JOB = @HOOKS@/fail
ELSEWHERE_HOOK_PREPARE_JOB = @HOOKS@/elsewhere
KILLED_HOOK_PREPARE_JOB_BEFORE_TRANSFER = @HOOKS@/killed
NEGATIVE_HOOK_PREPARE_JOB = @HOOKS@/negative
ZERO_HOOK_PREPARE_JOB = @HOOKS@/zero
NONSENSE_HOOK_PREPARE_JOB = @HOOKS@/nonsense
JAVA5_HOOK_PREPARE_JOB = @HOOKS@/other
EXIT_HOOK_JOB_EXIT = @HOOKS@/exit
EXIT_HOOK_UPDATE_JOB_INFO = @HOOKS@/update
BADEXIT_HOOK_PREPARE_JOB = @HOOKS@/hold
BADEXIT_HOOK_JOB_EXIT = @HOOKS@/exit
FETCH_HOOK_FETCH_WORK = @HOOKS@/default
STARTER_INITIAL_UPDATE_INTERVAL = 1
STARTER_UPDATE_INTERVAL = 2
`

// newHooks starts a rig whose starters have hooks, and returns the directory of these.
func newHooks(t *testing.T, lines string) (*rig, string) {
	t.Helper()
	r := newRig(t, strings.ReplaceAll(hookConfig+lines, "@HOOKS@", "$(LOCAL_DIR)/../hooks"))
	dir := filepath.Join(r.Dir, "hooks")
	r.Mkdir(dir)
	all := map[string]string{"told/": ""}
	for name, script := range hookPrograms {
		all[name] = "#!/bin/sh\n" + strings.ReplaceAll(script, "@HOOKS@", dir) + "\n"
	}
	r.files(dir, all)
	r.Must(os.Chmod(dir, 0o755)) // a hook in a directory that everybody may change is refused
	return r, dir
}

const echoes = `echo "$@" $OWN`

// What prepare hooks make of jobs, beside the original.
//
// row: S0-325, S0-328, S0-329, S0-330, S0-331, S0-332, S0-333, S0-339
func TestHooksOfJobs(t *testing.T) {
	t.Parallel()
	r, _ := newHooks(t, "")
	runJobs(t, r, []jobCase{
		{name: "hook edits", submit: "MY.HookKeyword = \"edit\"\nMY.Mine = 7\narguments = own", script: echoes, want: "021 001 005", output: map[string]string{"out": "edited by a b c edited\n"},
			says: []string{"PREPARE_JOB (edit) succeeded (exited with status 0): so far so good"}},
		{name: "hooks before and after the transfer", submit: "MY.HookKeyword = \"BOTH\"\ntransfer_input_files = in.txt", files: map[string]string{"in.txt": "x\n"}, script: "cat after.txt; tail -n +2 before.txt",
			output: map[string]string{"out": "input is there\n41\n\nbefore.txt\n.job.ad\n.machine.ad\n"}},
		{name: "hook holds", submit: `MY.HookKeyword = "hold"`, script: "true", want: "021 004 012", says: []string{"really bad", "Code 19 Subcode 190"}},
		{name: "hook holds before the transfer", submit: `MY.HookKeyword = "holdfirst"`, script: "true", want: "021 004 012", says: []string{"PREPARE_JOB_BEFORE_TRANSFER (hold) failed (reported status 190): really bad", "Code 19 Subcode 190"}},
		{name: "hook fails", submit: `MY.HookKeyword = "fail"`, script: "true", says: []string{"PREPARE_JOB (fail) failed (exited with status 7): no luck", "Code 19 Subcode 7"}},
		{name: "hook sends the job back", submit: `MY.HookKeyword = "elsewhere"`, script: "echo ran", says: []string{"try again"}, output: map[string]string{"out": "ran\n"}},
		{name: "hook is killed", submit: `MY.HookKeyword = "killed"`, script: "echo ran", says: []string{"died with signal 9"}, output: map[string]string{"out": "ran\n"}},
		{name: "negative status", submit: `MY.HookKeyword = "negative"`, script: "echo ran", want: "001 005", output: map[string]string{"out": "ran\n"}},
		{name: "status beats exit", submit: `MY.HookKeyword = "zero"`, script: "echo ran", want: "001 005", output: map[string]string{"out": "ran\n"}},
		{name: "line that is no attribute", submit: `MY.HookKeyword = "nonsense"`, script: echoes, output: map[string]string{"out": "counts\n"}},
		{name: "other program, not transferred", submit: "MY.HookKeyword = \"JAVA5\"\nexecutable = /bin/echo\ntransfer_executable = false\narguments = Hello", output: map[string]string{"out": "the other java with Hello\n"}},
		{name: "default keyword", submit: "arguments = own", script: echoes, output: map[string]string{"out": "the default one\n"}},
		{name: "keyword of the startd's hooks", submit: "MY.HookKeyword = \"fetch\"\narguments = own", script: echoes, output: map[string]string{"out": "own\n"}},
	})
	// What the documents promise and the original does not do.
	ours := r.sides[1]
	for _, tt := range []jobCase{
		{name: "unknown keyword", submit: "MY.HookKeyword = \"nobody\"\narguments = own", script: echoes, output: map[string]string{"out": "the default one\n"}},
		{name: "job ad as edited", submit: "MY.HookKeyword = \"edit\"\nMY.Mine = 7", script: `sed -n 's/^Seen = //p' .job.ad`, output: map[string]string{"out": "\"7\"\n"}},
		{name: "other program", submit: "MY.HookKeyword = \"JAVA5\"\narguments = Hello", script: echoes, output: map[string]string{"out": "the other java with Hello\n"}},
	} {
		j := tt.submit1(t, ours, "")
		j.over()
		for _, wrong := range tt.check(j) {
			t.Errorf("%s: %s", tt.name, wrong)
		}
		j.remove()
	}
	if log := ours.starterLogs(); !strings.Contains(log, "(PREPARE_JOB Failure): this goes to the log") || !strings.Contains(log, "invoked.") {
		t.Error("the standard error of a hook is in no log of a starter")
	}
}

// STARTER_JOB_HOOK_KEYWORD counts whatever the job says.
//
// row: S0-325
func TestForcedHooks(t *testing.T) {
	t.Parallel()
	r, _ := newHooks(t, "STARTER_JOB_HOOK_KEYWORD = Force\nFORCE_HOOK_PREPARE_JOB = @HOOKS@/forced\n")
	runJobs(t, r, []jobCase{
		{name: "forced over the job's", submit: `MY.HookKeyword = "hold"`, script: echoes, output: map[string]string{"out": "the forced one\n"}},
		{name: "forced over none", submit: "arguments = own", script: echoes, output: map[string]string{"out": "the forced one\n"}},
	})
}

// starterLogs are the logs of a side's starters.
func (s *side) starterLogs() string {
	list, _ := filepath.Glob(filepath.Join(s.dir, "log", "StarterLog*"))
	var all strings.Builder
	for _, path := range list {
		text, _ := os.ReadFile(path)
		all.Write(text)
	}
	return all.String()
}

// The hooks that are told how a job is and how it left. Only ours: a starter of 25.14
// ends with its JOB_EXIT, and its job never does.
//
// row: S0-334, S0-335, S0-336, S0-337, S0-338
func TestHooksAreTold(t *testing.T) {
	t.Parallel()
	r, dir := newHooks(t, "")
	ours := r.sides[1]
	for _, tt := range []struct {
		name, script, word string
		states             []string // for which UPDATE_JOB_INFO is told
		act                func(j *job)
		code               eventlog.Code
		exit               map[string]string
	}{
		{name: "exits", script: "exit 3", word: "exit", code: eventlog.CodeTerminated,
			exit: map[string]string{"ExitBySignal": "false", "ExitCode": "3", "ExitSignal": "undefined", "ExitReason": `"exited normally with status 3"`}},
		{name: "dies", script: "kill -TERM $$", word: "exit", code: eventlog.CodeTerminated,
			exit: map[string]string{"ExitBySignal": "true", "ExitSignal": "15", "ExitCode": "undefined", "ExitReason": `"died on signal 15 (Terminated)"`}},
		// Its shadow does not say why it takes the job back.
		{name: "is removed", script: "exec sleep 1000", word: "evict", code: eventlog.CodeAborted, states: []string{"Running"}, act: func(j *job) { j.tool("condor_rm", j.id()) }},
		{name: "is held", script: "exec sleep 1000", word: "evict", code: eventlog.CodeHeld, states: []string{"Running"}, act: func(j *job) { j.tool("condor_hold", j.id()) }},
		{name: "is suspended", script: "exec sleep 1000", word: "evict", code: eventlog.CodeAborted, states: []string{"Running", "Suspended"}, act: func(j *job) {
			j.tool("condor_suspend", j.id())
			j.wait(eventlog.CodeSuspended, 1)
		}},
		{name: "is vacated", script: "exec sleep 1000", word: "evict", code: eventlog.CodeEvicted, states: []string{"Running"}, act: func(j *job) { j.tool("condor_vacate_job", j.id()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := jobCase{name: "told-" + strings.ReplaceAll(tt.name, " ", "-"), submit: "MY.HookKeyword = \"exit\"\nMY.Mine = 7", script: tt.script}
			j := c.submit1(t, ours, "")
			path := func(what string) string { return filepath.Join(dir, "told", fmt.Sprintf("%d.%s", j.cluster, what)) }
			told := func(what string) {
				t.Helper()
				j.until(what, patience, func() bool { _, err := os.Stat(path(what)); return err == nil })
			}
			for i, state := range tt.states {
				if i == 1 {
					tt.act(j)
				}
				told("update." + state)
				checkTold(t, path("update."+state), map[string]string{"JobState": `"` + state + `"`, "Mine": "7", "ClusterId": fmt.Sprint(j.cluster)}, updateAttrs)
			}
			switch {
			case len(tt.states) > 1:
				j.tool("condor_rm", j.id())
			case tt.act != nil:
				tt.act(j)
			}
			j.wait(tt.code, 1)
			told("exit")
			if word, err := os.ReadFile(path("word")); err != nil || strings.TrimSpace(string(word)) != tt.word {
				t.Errorf("JOB_EXIT has the argument %q, %v, want %q", word, err, tt.word)
			}
			wants := map[string]string{"Mine": "7", "JobState": `"Exited"`}
			maps.Copy(wants, tt.exit)
			checkTold(t, path("exit"), wants, append(slices.Clone(updateAttrs), "JobDuration"))
			if tt.act == nil {
				j.over()
				if got, _ := os.ReadFile(filepath.Join(j.dir, "exit.txt")); !strings.Contains(string(got), "_condor_stdout") {
					t.Errorf("what JOB_EXIT made is no output, or it did not see the job's: %q", got)
				}
			}
			j.remove()
		})
	}
}

var updateAttrs = []string{"JobPid", "NumPids", "JobStartDate", "RemoteSysCpu", "RemoteUserCpu", "ImageSize"}

// checkTold looks at an ad that a hook was given.
func checkTold(t *testing.T, path string, wants map[string]string, numbers []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	ad, err := classad.ParseAd(string(text), classad.Old)
	if err != nil {
		t.Errorf("%v in\n%s", err, text)
		return
	}
	for name, want := range wants {
		if got := ad.Eval(name, nil).String(); got != want {
			t.Errorf("%s has %s = %s, want %s", filepath.Base(path), name, got, want)
		}
	}
	for _, name := range numbers {
		if _, ok := ad.Eval(name, nil).AsNumber(); !ok {
			t.Errorf("%s has no %s", filepath.Base(path), name)
		}
	}
}
