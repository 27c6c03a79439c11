// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/run"
)

// rootless is a place in which an ordinary user runs condor_ep, below no directory that
// jobs have of their own.
type rootless struct {
	place
	program string
	cred    *syscall.Credential // nil is who runs the test
	group   string              // the control group in which condor_ep begins, "" for that of the test
}

func newRootless(t *testing.T) *rootless {
	t.Helper()
	r := &rootless{}
	home, err := os.UserHomeDir()
	if os.Geteuid() == 0 {
		who, uerr := user.Lookup(cmp.Or(os.Getenv("EXECPOINT_TEST_USER"), "nobody"))
		if uerr != nil {
			t.Skip(uerr)
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		r.owner, r.cred = who, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		home, err = "/var", nil
	}
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp(home, "execpoint-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	r.dir, r.tmp, r.program = filepath.Join(base, "submit"), filepath.Join(base, "tmp"), filepath.Join(base, "condor_ep")
	for _, dir := range []string{base, r.dir, r.tmp} {
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err == nil && r.cred != nil && dir != base {
			err = os.Chown(dir, int(r.cred.Uid), int(r.cred.Gid))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyProgram(t, r.program)
	return r
}

// allows says whether this machine lets the user make what is needed, by the system's
// own program.
func (r *rootless) allows(t *testing.T) bool {
	t.Helper()
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(path, "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.cred}
	return cmd.Run() == nil
}

func (r *rootless) cmd(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	r.give(t)
	cmd := exec.Command(r.program, args...)
	if r.group != "" {
		cmd = exec.Command("/bin/sh", append([]string{"-c", `echo 0 >"$0/cgroup.procs" && exec "$@"`, r.group, r.program}, args...)...)
	}
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), beTool+"=1", "HOME="+r.dir, "TMPDIR="+r.tmp, run.BaseVariable+"="+filepath.Join(r.tmp, "runs"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.cred}
	return cmd
}

// run runs a job of this script with a configuration, and returns what the job and what
// condor_ep says.
func (r *rootless) run(t *testing.T, config, script string) (out, said string, err error) {
	t.Helper()
	r.write(t, "ep.conf", "NUM_CPUS = 1\nSTARTD_NAME = one\nLOCAL_DIR = "+r.tmp+"\n"+config)
	r.write(t, "job.sh", "#!/bin/sh\n"+script)
	r.write(t, "out", "")
	r.write(t, "job.sub", "executable = job.sh\noutput = out\nerror = err\nlog = job.log\nshould_transfer_files = YES\ntransfer_output_files =\nrequest_memory = 32\nrequest_cpus = 1\nrequest_disk = 10\n+WantJobNetworking = false\nqueue\n")
	var b bytes.Buffer
	cmd := r.cmd(t, "run", "-config", "ep.conf", "job.sub")
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.Minute
	if strings.Contains(config, "NO_JOB_NETWORKING = True") && !r.allows(t) {
		limit = 5 * time.Second // no job starts, and the run waits for a machine that can
	}
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Signal(os.Interrupt) })
	later := time.AfterFunc(limit+20*time.Second, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	late.Stop()
	later.Stop()
	return r.read(t, "out"), b.String(), err
}

// escape leaves a process that is in a session of its own, has forked twice, is deaf to
// all signals that can be ignored, and has neither environment nor name of the job's.
// It writes to a file as long as it lives, at most a minute.
const escape = `cat > innocent <<'END'
trap '' TERM HUP INT QUIT
i=0; while test $i -lt 600; do echo $i > ALIVE; sleep 0.1; i=$((i+1)); done
END
(setsid sh -c 'env -i /bin/sh ./innocent &' >/dev/null 2>&1 </dev/null &)
until test -s ALIVE; do sleep 0.05; done
`

// An ordinary user's Execution Point gives jobs what root's gives them, where that is
// asked for and the machine allows it; where nobody asks they are as they were. What is
// not contained stands in the ad of the slot.
//
// row: S4-083
func TestRootless(t *testing.T) {
	t.Parallel()
	r := newRootless(t)
	allowed := r.allows(t)
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	const all = "Accounts,Mounts,Processes,Network"
	for _, tt := range []struct {
		name, config string
		not          string // of the attribute; a Memory at its end is left out
		own          string // what the job has of its own, of tmp, shm, pids, net
	}{
		{"nobody asks", "", all, ""},
		{"mounts", "PER_JOB_NAMESPACES = True\n", "Accounts", "tmp shm"},
		{"processes", "USE_PID_NAMESPACES = True\n", "Accounts", "tmp shm pids"},
		{"no network", "NO_JOB_NETWORKING = True\nMOUNT_UNDER_SCRATCH =\nMOUNT_PRIVATE_DEV_SHM = False\n", "Accounts", "net"},
		{"everything", "NO_JOB_NETWORKING = True\nUSE_PID_NAMESPACES = True\n", "Accounts", "tmp shm pids net"},
		{"turned off", "PER_JOB_NAMESPACES = False\nUSE_PID_NAMESPACES = True\n", all, ""},
	} {
		mark := filepath.Base(filepath.Dir(r.dir))
		alive := filepath.Join(r.dir, "alive")
		out, said, err := r.run(t, tt.config, `has() { awk -v at=$1 '$5 == at' /proc/self/mountinfo | wc -l; }
for d in /tmp /dev/shm; do : > $d/`+mark+`; done
test $$ = 2 && echo own pids; test $(readlink /proc/self/ns/net) != '`+network+`' && test $(tail -n +3 /proc/net/dev | wc -l) = 1 && grep -q 127.0.0.1 /proc/net/fib_trie && echo own net
sed -n 's/^ExecpointNotContained = //p' $_CONDOR_MACHINE_AD
id -u; id -g
`+strings.ReplaceAll(escape, "ALIVE", alive))
		impossible := !allowed && strings.Contains(tt.config, "NO_JOB_NETWORKING = True")
		if err != nil && !impossible {
			t.Errorf("%s: %v\n%s", tt.name, err, said)
			continue
		}
		if impossible {
			if out != "" {
				t.Errorf("%s: a job ran that was to have no network\n%s", tt.name, out)
			}
			continue
		}
		var own []string
		for _, dir := range []string{"tmp", "shm"} {
			path := filepath.Join(map[string]string{"tmp": "/tmp", "shm": "/dev/shm"}[dir], mark)
			if os.Remove(path) != nil {
				own = append(own, dir)
			}
		}
		for line := range strings.Lines(out) {
			if what, ok := strings.CutPrefix(line, "own "); ok {
				own = append(own, strings.TrimSpace(what))
			}
		}
		want, not := tt.own, tt.not
		if !allowed {
			want, not = "", all
		}
		if got := strings.Join(own, " "); got != want {
			t.Errorf("%s: of its own are %q, want %q\n%s%s", tt.name, got, want, out, said)
		}
		attr := regexp.MustCompile(`"(.*)"`).FindStringSubmatch(out)
		if attr == nil || strings.TrimSuffix(attr[1], ",Memory") != not {
			t.Errorf("%s: ExecpointNotContained is %q, want %s\n%s", tt.name, attr, not, out)
		}
		uid, gid := strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
		if r.owner != nil {
			uid, gid = r.owner.Uid, r.owner.Gid
		}
		if !strings.HasSuffix(out, uid+"\n"+gid+"\n") {
			t.Errorf("%s: it is another user:\n%s", tt.name, out)
		}
		if err := atRest(alive); err != nil {
			t.Errorf("%s: what the job has left: %v", tt.name, err)
		}
	}
	r.nothingLeft(t)
}

// A group that was delegated to the user keeps the memory of its jobs, and of all their
// processes, though the Execution Point itself was started in it.
//
// row: S4-083
func TestRootlessMemory(t *testing.T) {
	own, err := os.ReadFile("/proc/self/cgroup")
	dir := "/sys/fs/cgroup" + strings.TrimSpace(strings.TrimPrefix(string(own), "0::"))
	if os.Geteuid() == 0 || err != nil || strings.Count(string(own), "\n") != 1 || syscall.Access(dir, 2) != nil {
		t.Skip("needs an ordinary user with a delegated group of version 2")
	}
	r := newRootless(t)
	// As systemd has it for a service: the Execution Point begins alone in its group, and
	// in a new one each time. So this process leaves the one that is to be divided.
	within := func(name string) string { return filepath.Join(dir, name) }
	err = os.Mkdir(within("tests"), 0o755)
	if err == nil {
		err = os.WriteFile(within("tests/cgroup.procs"), []byte("0"), 0)
	}
	if err == nil {
		err = os.WriteFile(within("cgroup.subtree_control"), []byte("+memory"), 0)
	}
	if err != nil {
		t.Skip(err)
	}
	n := 0
	begin := func(config, script string) (string, string, error) {
		t.Helper()
		n++
		r.group = within(fmt.Sprintf("ep%d", n))
		if err := os.Mkdir(r.group, 0o755); err != nil {
			t.Fatal(err)
		}
		return r.run(t, config, script)
	}
	for config, want := range map[string]string{
		"CREATE_CGROUP_WITHOUT_ROOT = True\n":                            "Accounts,Mounts,Processes,Network",
		"CREATE_CGROUP_WITHOUT_ROOT = True\nUSE_PID_NAMESPACES = True\n": "Accounts",
	} {
		config += "MODIFY_REQUEST_EXPR_REQUESTMEMORY = RequestMemory\n"
		out, said, err := begin(config, `sed -n 's/^ExecpointNotContained = //p' $_CONDOR_MACHINE_AD
cat /sys/fs/cgroup$(dirname $(sed -n 's/^0:://p' /proc/self/cgroup))/memory.max`)
		if err != nil || out != `"`+want+"\"\n33554432\n" {
			t.Errorf("%s: %v\n%s%s", config, err, out, said)
		}
		out, said, err = begin(config, "head -c 100000000 /dev/zero | tail -c 99999999 | wc -c; sleep 5; echo lives")
		if log := r.read(t, "job.log"); err == nil || !strings.Contains(log, "Code 34 Subcode 102") || strings.Contains(out, "lives") {
			t.Errorf("%s: %v\n%s%s%s", config, err, out, said, log)
		}
	}
}

// atRest says whether a file goes on to change: nil is that it does not.
func atRest(path string) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	<-time.After(300 * time.Millisecond) // three times as long as the writer waits
	if now, err := os.ReadFile(path); err != nil || string(now) != string(before) {
		return errors.Join(err, fmt.Errorf("it writes still: %s, then %s", strings.TrimSpace(string(before)), strings.TrimSpace(string(now))))
	}
	return os.Remove(path)
}

// A starter that dies takes its job with it, whatever that has done to escape: the
// kernel ends the namespace.
func TestRootlessStarterKilled(t *testing.T) {
	t.Parallel()
	r := newRootless(t)
	if !r.allows(t) {
		t.Skip("an ordinary user may make no namespaces here")
	}
	alive := filepath.Join(r.dir, "alive")
	r.write(t, "ep.conf", "NUM_CPUS = 1\nSTARTD_NAME = one\nUSE_PID_NAMESPACES = True\n")
	r.write(t, "job.sh", "#!/bin/sh\n"+strings.ReplaceAll(escape, "ALIVE", alive)+"sleep 60\n")
	r.write(t, "job.sub", "executable = job.sh\nlog = job.log\nrequest_memory = 32\nrequest_cpus = 1\nrequest_disk = 10\nqueue\n")
	cmd := r.cmd(t, "run", "-config", "ep.conf", "job.sub")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	end := time.Now().Add(20 * time.Second)
	for {
		if text, err := os.ReadFile(alive); err == nil && len(text) > 0 {
			break
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			t.Fatal("the job does not begin")
		}
		<-time.After(20 * time.Millisecond)
	}
	if out, err := r.cmd(t, "status").CombinedOutput(); err != nil || !strings.Contains(string(out), "\n  not contained: Accounts: a job runs as the user of this") || strings.Contains(string(out), "Processes: ") {
		t.Errorf("status: %v\n%s", err, out)
	}
	for _, pid := range append(childrenOf(t, cmd.Process.Pid), cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-time.After(200 * time.Millisecond)
	if err := atRest(alive); err != nil {
		t.Error(err)
	}
}

// childrenOf are the processes that a process has started.
func childrenOf(t *testing.T, pid int) (all []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		t.Fatal(err, "the kernel does not tell children")
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// TestRootlessRefused is TestRootless where the system allows no user namespace: it is
// run in one that may have none below it.
//
// row: S4-083
func TestRootlessRefused(t *testing.T) {
	t.Parallel()
	const within = "EXECPOINT_TEST_REFUSED"
	if os.Getenv(within) != "" {
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
		r := newRootless(t)
		if r.allows(t) {
			t.Fatal("it is allowed")
		}
		out, said, err := r.run(t, "USE_PID_NAMESPACES = True\n", "sed -n 's/^ExecpointNotContained = //p' $_CONDOR_MACHINE_AD; sleep 1")
		if err != nil || !strings.HasPrefix(out, `"Accounts,Mounts,Processes,Network`) {
			t.Errorf("%v\n%s%s", err, out, said)
		}
		log, err := os.ReadFile(filepath.Join(r.tmp, "log", "StartLog"))
		if want := "not contained: Processes: "; err != nil || strings.Count(string(log), want) != 1 || !strings.Contains(string(log), "the sysctl user.max_user_namespaces is 0") {
			t.Errorf("%v, the log does not say %q once:\n%s", err, want, log)
		}
		out, said, _ = r.run(t, "NO_JOB_NETWORKING = True\n", "echo ran")
		if out != "" {
			t.Errorf("a job ran that was to have no network: %s%s", out, said)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, who may set limits of a namespace")
	}
	all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), within+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Skip(err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}
