// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hookWho prints as whom a hook runs, what rights it has and what it has open besides its
// standard files, and leaves a process behind that has a session of its own.
const hookWho = `#!/bin/sh
cat > /dev/null
{ echo "uid $(id -u) $(id -ru)"
grep -h '^Cap[EPAI].*[1-9a-f]$' /proc/self/status
ls -l /proc/self/fd | grep -v ' [0-2] ->\|/proc/' | grep -e '->'
env | grep -i '_INHERIT='
stat -c 'scratch %u' .
} > hook-${0##*/}
setsid sleep 4711.25 > /dev/null 2>&1 < /dev/null &
exit 0
`

// Hooks of jobs run as the job's user and with nothing of root, wherever they are, and
// nothing that they start outlives them.
//
// row: S0-328, S0-329
func TestHooksRunAs(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.pool.Dir, "hooks")
	w.must(os.Mkdir(dir, 0o755))
	for name, mode := range map[string]os.FileMode{"before": 0o755, "prepare": 0o755, "exit": 0o755, "secretly": 0o700} {
		w.must(os.WriteFile(filepath.Join(dir, name), []byte(hookWho), mode))
		w.must(os.Chmod(filepath.Join(dir, name), mode))
	}
	w.must(os.Chmod(dir, 0o755))
	// One that the submitter may change.
	theirs := filepath.Join(w.jobs, "theirs")
	w.pool.Write(theirs, hookWho, 0o755)
	w.must(os.Chmod(w.jobs, 0o755))
	knobs := strings.ReplaceAll(`WHO_HOOK_PREPARE_JOB_BEFORE_TRANSFER = DIR/before
WHO_HOOK_PREPARE_JOB = DIR/prepare
WHO_HOOK_JOB_EXIT = DIR/exit
THEIRS_HOOK_PREPARE_JOB = `+theirs+`
SECRET_HOOK_PREPARE_JOB = DIR/secretly
`, "DIR", dir)
	check := func(j *job, name, text, user string) {
		t.Helper()
		uid := w.uid(user)
		if want := "uid " + uid + " " + uid + "\nscratch " + uid + "\n"; text != want {
			t.Errorf("%s of %s: %q, want %q", name, filepath.Base(j.dir), text, want)
		}
	}
	for _, tt := range []struct{ name, settings, user string }{
		{"owner", "", w.owner.Username},
		{"slot", "UID_DOMAIN = elsewhere.test\nNOBODY_SLOT_USER = " + slotUser + "\n", slotUser},
	} {
		w.round(tt.settings + knobs)
		j := w.submit("who"+tt.name, "cat hook-before\n", `MY.HookKeyword = "who"`)
		check(j, "before", j.done(), tt.user)
		check(j, "prepare", j.file("hook-prepare"), tt.user)
		check(j, "exit", j.file("hook-exit"), tt.user)
		j = w.submit("theirs"+tt.name, "true\n", `MY.HookKeyword = "theirs"`)
		j.done()
		check(j, "theirs", j.file("hook-theirs"), tt.user)
	}
	// What only root may execute is not executed.
	j := w.submit("secret", "true\n", `MY.HookKeyword = "secret"`).until("Job was held.")
	if log := j.file("log"); !strings.Contains(log, "failed to execute PREPARE_JOB ("+dir+"/secretly): Permission denied") || !strings.Contains(log, "Code 19 Subcode 0") {
		t.Errorf("its log is\n%s", log)
	}
	j.remove()
	if left := w.processes("4711.25"); len(left) > 0 {
		t.Errorf("hooks have left the processes %v", left)
	}
	w.idle()
}
