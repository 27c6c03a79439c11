// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tellsEnd says of the ad that a hook of a job has on its standard input.
const tellsEnd = `#!/bin/sh
ad=$(cat); p=$(echo "$ad" | sed -n 's/^ClusterId = //p')
echo "$*" $(echo "$ad" | grep -E '^(ExitCode|ExitSignal|JobState|Mine) = ' | sort) $(test -e DIR/result && echo too late) > DIR/told
`

// TestRunHooks has the owner's hooks run around jobs: one that edits them, one that
// refuses them, and one that hears how they left.
//
// row: S0-330, S0-331, S0-333, S0-336, S0-337, S0-338
func TestRunHooks(t *testing.T) {
	t.Parallel()
	const sleep = "executable = /bin/sleep\ntransfer_executable = false\narguments = 60\n"
	for _, tt := range []struct {
		name, job string
		status    int
		events    string
		told      string // by the hook at the end
	}{
		{"ends", "executable = job.sh\ntransfer_output_files = result\narguments = 0\n+Mine = 7\n", exitSomeFailed, "starts done", "exit ExitCode = 4 JobState = \"Exited\" Mine = 7"},
		{"removed", sleep + "periodic_remove = JobStatus == 2\n", exitSomeFailed, "starts removed", "remove ExitSignal = 15 JobState = \"Exited\""},
		{"held", sleep + "periodic_hold = NumJobStarts > 0\n", exitSomeFailed, "starts held(3.0)", "hold ExitSignal = 15 JobState = \"Exited\""},
		{"vacated", sleep + "periodic_vacate = NumJobStarts == 1\nperiodic_remove = NumJobStarts == 2\n", exitSomeFailed, "starts evicted(1000) starts removed", ""},
		{"refused", sleep + "+HookKeyword = \"refuse\"\n", exitSomeFailed, "held(19.7)", ""},
		{"edited", "executable = job.sh\ntransfer_output_files = result\narguments = 5\n+HookKeyword = \"edit\"\n", exitOK, "starts done", "exit ExitCode = 0 JobState = \"Exited\""},
		{"hooks that hang", "executable = /bin/sleep\ntransfer_executable = false\narguments = 3\n+HookKeyword = \"hang\"\n", exitOK, "starts done", ""},
		{"another program", sleep + "+HookKeyword = \"java5\"\n", exitOK, "starts done", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			hooks := filepath.Join(p.dir, "hooks")
			if err := os.Mkdir(hooks, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(hooks, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, script := range map[string]string{
				"exit.sh": strings.ReplaceAll(tellsEnd, "DIR", p.dir), "refuse.sh": "#!/bin/sh\ncat > /dev/null\necho 'HookStatusMessage = \"not today\"'\nexit 7\n",
				"edit.sh": "#!/bin/sh\ncat > /dev/null\necho 'Arguments = \"-4 edited\"'\n", "hang.sh": "#!/bin/sh\ntouch " + p.dir + "/hung.$$\nsleep 1000 &\nexec sleep 1000\n", "java5.sh": "#!/bin/sh\ncat > /dev/null\necho 'Cmd = \"/bin/true\"'\n",
			} {
				p.write(t, filepath.Join("hooks", name), script)
			}
			p.write(t, "job.sh", "#!/bin/sh\necho $2 > result\nexit $(($1 + 4))\n")
			p.write(t, "ep.conf", strings.ReplaceAll(`NUM_CPUS = 1
POLLING_INTERVAL = 1
PERIODIC_EXPR_INTERVAL = 1
STARTER_DEFAULT_JOB_HOOK_KEYWORD = site
SITE_HOOK_JOB_EXIT = HOOKS/exit.sh
EDIT_HOOK_PREPARE_JOB = HOOKS/edit.sh
EDIT_HOOK_JOB_EXIT = HOOKS/exit.sh
REFUSE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = HOOKS/refuse.sh
JAVA5_HOOK_PREPARE_JOB = HOOKS/java5.sh
HANG_HOOK_UPDATE_JOB_INFO = HOOKS/hang.sh
HANG_HOOK_JOB_EXIT = HOOKS/hang.sh
HANG_HOOK_JOB_EXIT_TIMEOUT = 1
STARTER_INITIAL_UPDATE_INTERVAL = 1
`, "HOOKS", hooks))
			p.write(t, "job.sub", small+tt.job+"log = job.log\nqueue\n")
			status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
			if got := p.became(t, "job.log"); status != tt.status || got != tt.events {
				t.Errorf("status %d, want %d; events %q, want %q\n%s%s%s", status, tt.status, got, tt.events, stdout, stderr, p.read(t, "job.log"))
			}
			if got, _ := os.ReadFile(filepath.Join(p.dir, "told")); tt.told != "" && strings.TrimSpace(string(got)) != tt.told {
				t.Errorf("the hook at the end tells %q, want %q", got, tt.told)
			}
			if tt.name == "edited" && p.read(t, "result") != "edited\n" {
				t.Errorf("the job has the arguments %q", p.read(t, "result"))
			}
			if hung, _ := filepath.Glob(filepath.Join(p.dir, "hung.*")); tt.name == "hooks that hang" && len(hung) != 2 {
				t.Errorf("%d hooks hung, want that of the update and that of the end", len(hung))
			}
			if log := p.read(t, "job.log"); tt.name == "refused" && !strings.Contains(log, "PREPARE_JOB_BEFORE_TRANSFER (refuse.sh) failed (exited with status 7): not today") {
				t.Error(log)
			}
			p.nothingLeft(t)
		})
	}
}
