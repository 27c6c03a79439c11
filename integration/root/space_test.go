// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// A job with mounts and process numbers of its own is reached, measured and ended as any
// other: its owner looks at its output, visits it, and it uses Chirp. What it leaves in a
// directory of the machine is gone with it.
//
// row: S4-069, S4-070, S0-059, S3-033
func TestOwnSpace(t *testing.T) {
	realpool.NeedRoot(t)
	realpool.SSH(t)
	w := newWorld(t)
	w.round("MOUNT_UNDER_SCRATCH = strcat(\"/var/tmp,/media\", \"\")\nUSE_PID_NAMESPACES = True\n")
	mine := "/var/tmp/of-" + filepath.Base(w.pool.Dir)
	script := `echo $$; cd /proc; echo [0-9]*; cd - > /dev/null; : > ` + mine + `; echo $TMPDIR
` + w.pool.Program("condor_chirp") + ` set_job_attr FromInside 7 || echo no chirp
(setsid sleep 1000 > /dev/null 2>&1 &)
` + stay
	j := w.submit("boxed", strings.ReplaceAll(script, "$1", "boxed1"), "+WantIOProxy = true")
	dir := j.scratch()
	if _, err := os.Stat(mine); err == nil {
		t.Errorf("%s is the machine's", mine)
	}
	if tail, err := w.pool.Run(t.Context(), "condor_tail", j.id); !strings.HasPrefix(tail, "2\n1 2\n") {
		t.Errorf("condor_tail shows %q, %v", tail, err)
	}
	visit, err := w.pool.Run(t.Context(), "condor_ssh_to_job", j.id, "ls "+mine+"; cat /proc/$_CONDOR_JOB_PIDS/comm; cat /proc/1/comm; id -u")
	if want := mine + "\nscript\ncondor_pid_ns_i\n" + w.owner.Uid + "\n"; visit != want || err != nil {
		t.Errorf("the visitor sees %q, want %q; %v; the starter says\n%s", visit, want, err, realpool.Last(w.ep.Log("StarterLog.slot1_1"), 20))
	}
	w.must(os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	if out, want := j.done(), fmt.Sprintf("2\n1 2\n%s\n", dir); out != want {
		t.Errorf("the job says %q, want %q", out, want)
	}
	if got := strings.TrimSpace(w.pool.Tool("condor_history", j.id, "-limit", "1", "-af", "FromInside")); got != "7" {
		t.Errorf("chirp set %q", got)
	}

	// It is asked to leave by a signal, which the second process hears.
	j = w.submit("leaves", "trap 'echo asked; exit 0' TERM\n"+strings.ReplaceAll(stay, "$1", "leaves1"), "when_to_transfer_output = ON_EXIT_OR_EVICT")
	j.scratch()
	w.pool.Tool("condor_vacate_job", j.id)
	j.until("Job was evicted")
	j.remove()
	w.idle()
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), w.ep.Dir) {
		t.Errorf("the machine has mounts of jobs: %s, %v", mounts, err)
	}
}

// Where jobs have no network only those run that do without.
//
// row: S4-083
func TestNoNetwork(t *testing.T) {
	w := newWorld(t)
	w.round("NO_JOB_NETWORKING = True\n")
	const interfaces = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '\n"
	plain := w.submit("plain", interfaces, "")
	without := w.submit("without", interfaces, "want_job_networking = False")
	if out := without.done(); out != "lo\n" {
		t.Errorf("it has %q", out)
	}
	if log := plain.file("log"); strings.Contains(log, "executing") {
		t.Errorf("a job that did not ask for it runs without network:\n%s", log)
	}
	if got := w.pool.Tool("condor_status", "-constraint", "PartitionableSlot", "-af", "HasJobNetworking", "StarterAbilityList"); !strings.HasPrefix(got, "false ") || strings.Contains(got, "HasJobNetworking") {
		t.Errorf("the slot says %q", got)
	}
	w.round("")
	plain.remove()
	again := w.submit("again", "true\n", "")
	again.done()
	w.idle()
}
