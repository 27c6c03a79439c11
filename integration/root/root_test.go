// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/platform/linux/bound"
)

// who prints as whom a job runs, and whose what it finds is.
const who = `echo "uid $(id -u) $(id -ru) gid $(id -g) groups $(id -G)"
echo made > made; chmod 640 made; mkdir dir; echo deep > dir/deep
cat in
stat -c '%n %u' . in made dir dir/deep .job.ad .machine.ad _condor_stdout "$_CONDOR_CHIRP_CONFIG" | sed "s,$_CONDOR_CHIRP_CONFIG,chirp,"
grep -h '^Cap[EPAI].*[1-9a-f]$' /proc/self/status
grep -i '^\(claimids\?\|claimidlist\|capability\|childclaimids\|pairedclaimid\|transferkey\) ' .job.ad .machine.ad
env | grep -i '_INHERIT='
ls -l /proc/self/fd | grep -v ' [0-2] ->\|/proc/' | grep -e '->'
`

func TestRunAs(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ name, settings, submit, user string }{
		{"owner", "", "", w.owner.Username},
		{"elsewhere", "UID_DOMAIN = elsewhere.test\n", "", "nobody"},
		{"declined", "", "+RunAsOwner = false", "nobody"},
		{"forbidden", "STARTER_ALLOW_RUNAS_OWNER = false\n", "", "nobody"},
		{"slot", "UID_DOMAIN = elsewhere.test\nNOBODY_SLOT_USER = " + slotUser + "\n", "", slotUser},
	} {
		w.round(tt.settings)
		j := w.submit(tt.name, who, tt.submit)
		out := j.done()
		uid := w.uid(tt.user)
		if !strings.HasPrefix(out, "uid "+uid+" "+uid+" gid ") || !strings.Contains(out, "input of "+tt.name) {
			t.Errorf("%s: it ran not as %s (%s):\n%s%s", tt.name, tt.user, uid, out, j.file("err"))
		}
		for line := range strings.Lines(out) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case strings.HasPrefix(name, "Cap"):
				t.Errorf("%s: a right of root: %s", tt.name, line)
			case strings.Contains("/. in made dir dir/deep .job.ad .machine.ad _condor_stdout chirp /", " "+name+" ") && value != uid && name != "input":
				t.Errorf("%s: %s is of the user %s", tt.name, name, value)
			}
		}
		if strings.Contains(out, "_INHERIT=") || strings.Contains(out, " -> ") || strings.Contains(strings.ToLower(out), ".ad:") {
			t.Errorf("%s: it has what is the starter's:\n%s", tt.name, out)
		}
		if n := strings.Count(out, " "+uid+"\n"); n < 9 {
			t.Errorf("%s: %d files are of the user %s:\n%s", tt.name, n, uid, out)
		}
		if got := j.file("made"); got != "made\n" {
			t.Errorf("%s: made is %q", tt.name, got)
		}
		if got, want := of(filepath.Join(j.dir, "made")), w.owner.Uid+" -rw-r-----"; got != want {
			t.Errorf("%s: made came back as %s, want %s", tt.name, got, want)
		}
	}
	w.idle()
}

// Each slot has its account, the jobs in them are apart, and one that has no
// account here is not run as anybody else.
//
// row: S0-066
func TestAccounts(t *testing.T) {
	w := newWorld(t)
	w.round("UID_DOMAIN = elsewhere.test\nSLOT1_1_USER = " + slotUser + "\nSLOT1_2_USER = nobody\n")
	victim := w.submit("victim", "id -u\n"+strings.ReplaceAll(stay, "$1", "victim1"), "")
	dir := victim.scratch()
	spy := w.submit("spy", "id -u\n"+snoop, "")
	out := spy.done()
	w.must(os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	if a, b := victim.done(), out; !strings.HasPrefix(a, w.uid(slotUser)+"\n") || !strings.HasPrefix(b, w.uid("nobody")+"\n") || strings.Contains(b, "victim") {
		t.Errorf("the one is %q, the other %q", a, b)
	}

	w.round("UID_DOMAIN = elsewhere.test\nNOBODY_SLOT_USER = ghost_$(STARTER_SLOT_NAME)\n")
	ghost := w.submit("ghost", "id -u\n", "")
	w.pool.Eventually("the job is refused", realpool.Patience, func(context.Context) error {
		if log := w.ep.Log("StartLog"); !strings.Contains(log, "ghost_slot1_") {
			return errors.New("nothing is said of the account")
		}
		return nil
	})
	if log := ghost.file("log"); strings.Contains(log, "executing") {
		t.Errorf("it is run as somebody:\n%s", log)
	}
	ghost.remove()

	// All that is of a dedicated account goes, wherever it comes from.
	lurker := exec.Command("/bin/sleep", "1000")
	uid, err := strconv.ParseUint(w.uid(slotUser), 10, 32)
	w.must(err)
	lurker.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, Setsid: true}
	w.must(bound.Start(lurker))
	gone := make(chan error, 1)
	go func() { gone <- lurker.Wait() }()
	w.round("UID_DOMAIN = elsewhere.test\nNOBODY_SLOT_USER = " + slotUser + "\nDEDICATED_EXECUTE_ACCOUNT_REGEXP = gam.*\n")
	w.submit("dedicated", "true\n", "").done()
	select {
	case err := <-gone:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("the lurker ended with %v", err)
		}
	case <-time.After(soon):
		t.Error("a process of the dedicated account is left")
		w.must(lurker.Process.Kill())
	}
	w.idle()
}

// A submitter without an account here has the numbers that the shadow tells,
// where the machine's owner wants it so.
func TestSoftUIDDomain(t *testing.T) {
	realpool.NeedRoot(t)
	for _, program := range []string{"mount", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			realpool.Missing(t, err.Error(), "install the packages mount and util-linux of Debian")
		}
	}
	w := newWorldOf(t, func(w *world) {
		// The Execution Point has a list of users without the submitter.
		all, err := os.ReadFile("/etc/passwd")
		w.must(err)
		var some strings.Builder
		for line := range strings.Lines(string(all)) {
			if !strings.HasPrefix(line, w.owner.Username+":") {
				some.WriteString(line)
			}
		}
		passwd, real := filepath.Join(w.ep.Dir, "passwd"), filepath.Join(w.ep.Dir, "real")
		w.must(errors.Join(os.WriteFile(passwd, []byte(some.String()), 0o644), os.Mkdir(real, 0o755),
			os.Rename(filepath.Join(w.ep.Dir, "condor_startd"), filepath.Join(real, "condor_startd")),
			os.WriteFile(filepath.Join(w.ep.Dir, "condor_startd"), []byte("#!/bin/sh\nexec unshare -m --propagation private sh -c 'mount --bind "+passwd+" /etc/passwd && exec "+real+"/condor_startd -f'\n"), 0o755)))
	})
	w.round("")
	unknown := w.submit("unknown", "id -u\n", "")
	w.pool.Eventually("the job is refused", realpool.Patience, func(context.Context) error {
		if log := w.ep.Log("StartLog"); !strings.Contains(log, "no account here") {
			return errors.New("nothing is said of the account")
		}
		return nil
	})
	unknown.remove()
	w.round("SOFT_UID_DOMAIN = true\n")
	out := w.submit("soft", "echo $(id -u) $(id -g) $(id -G)\ngrep -c :$(id -u): /etc/passwd\n", "").done()
	if want := fmt.Sprintf("%s %s %s\n0\n", w.owner.Uid, w.owner.Gid, w.owner.Gid); out != want {
		t.Errorf("it ran as %q, want %q", out, want)
	}
	w.idle()
}

// groups prints the control groups of a job, and what they limit.
const groups = `for c in memory cpu freezer; do
	g=$(sed -n "s/^[0-9]*:$c://p" /proc/self/cgroup)
	echo $c $g
done
echo weight $(cat /sys/fs/cgroup/cpu$(sed -n 's/^[0-9]*:cpu://p' /proc/self/cgroup)/cpu.shares)
`

// Who visits a job is its user, under its limits.
func TestVisitors(t *testing.T) {
	realpool.NeedRoot(t)
	realpool.SSH(t)
	w := newWorld(t)
	w.round("")
	j := w.submit("visited", "id -u\n"+groups+strings.ReplaceAll(stay, "$1", "visited1"), "request_cpus = 2")
	dir := j.scratch()
	visit, err := w.pool.Run(t.Context(), "condor_ssh_to_job", j.id, "id -u; /bin/sh -c '"+strings.ReplaceAll(groups, "'", `"`)+"'")
	if err != nil {
		t.Errorf("%v; the starter says\n%s", err, realpool.Last(w.ep.Log("StarterLog.slot1_1"), 20))
	}
	// The session is over, and the job goes on.
	w.must(os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
	out := j.done()
	if !strings.HasPrefix(out, w.owner.Uid+"\n") || visit != out {
		t.Errorf("the visitor sees %q, the job %q", visit, out)
	}
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cpu.shares"); err == nil && (!strings.Contains(out, "_execute_slot1_1@") || !strings.Contains(out, "weight 200\n")) {
		t.Errorf("a job with two cores runs in\n%s", out)
	}
	w.idle()
}
