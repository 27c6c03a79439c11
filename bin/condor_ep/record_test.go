// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/platform/linux/bound"
)

// whatVaries are the figures of a paragraph that differ from run to run.
var whatVaries = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|[0-9.]+ (s|KiB|MiB|B|min)\b|ended on \S+|Job 1\.\d of \S+`)

var ofAClock = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// How a job ended is told by history and explain alike: in a paragraph, and whole as JSON.
func TestRecordOfAJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sh", "#!/bin/sh\nsleep 0.1\nexit $1\n")
	p.write(t, "job.sub", small+"executable = job.sh\narguments = $(how)\nqueue how in (3, 0)\n")
	p.write(t, "ep.conf", "NUM_CPUS = 1\nBASE_CGROUP =\nSTARTD_HISTORY = "+filepath.Join(p.dir, "startd_history")+"\n")
	if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitSomeFailed {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	want := `JOB WHERE X: it exited with status 3.
Of its time its input took X, the program took X, what was left and the output took X, all of it took X.
No control group limited it.
It used at most X of memory, X of processor time, and X of disk at its end.
What it left outside its scratch directory was not looked for.
`
	if os.Geteuid() == 0 { // the job runs as its submitter
		want = strings.Replace(want, "What it left outside its scratch directory was not looked for.", "In memory it left nothing; files were not looked for, as others use its account.", 1)
	}
	for _, command := range []string{"history", "explain"} {
		status, stdout, stderr := p.ep(t, command, "-config", "ep.conf", "1.0")
		got := whatVaries.ReplaceAllStringFunc(stdout, func(s string) string {
			switch {
			case strings.HasPrefix(s, "Job"):
				return "JOB"
			case strings.HasPrefix(s, "ended"):
				return "WHERE"
			}
			return "X"
		})
		got = strings.Replace(got, "WHERE at X", "WHERE X", 1)
		got = strings.Replace(got, " and 1 process,", ",", 1) // if a look met it
		if d := cmp.Diff(want, got); d != "" || status != exitOK || stderr != "" {
			t.Errorf("%s: status %d, %q\n%s", command, status, stderr, d)
		}
		status, stdout, stderr = p.ep(t, command, "-config", "ep.conf", "-json", "1.0")
		text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(stdout), "["), "]")
		var ad struct {
			Record struct {
				Activation string
				Status     struct{ Code int }
				Usage      struct {
					Peak int64 `json:"peak_rss_kib"`
				}
				Ran struct{ Stages map[string]string }
			} `json:"ExecpointExitRecord"`
		}
		if err := json.Unmarshal([]byte(text), &ad); err != nil || status != exitOK {
			t.Fatalf("%s: status %d, %v\n%s%s", command, status, err, stdout, stderr)
		}
		if r := ad.Record; r.Activation == "" || r.Status.Code != 3 || r.Usage.Peak == 0 || len(r.Ran.Stages) != 4 {
			t.Errorf("%s: %+v", command, r)
		}
	}
	if status, stdout, stderr := p.ep(t, "explain", "-config", "ep.conf", "7.0"); status == exitOK || stdout != "" || stderr == "" {
		t.Errorf("a job that never was: status %d, %q, %q", status, stdout, stderr)
	}
	if status, _, stderr := p.ep(t, "history", "-config", "ep.conf", "slot1"); status != exitUsage || !strings.Contains(stderr, "no job") {
		t.Errorf("no job: status %d, %q", status, stderr)
	}
}

// All that a record can say, and ads that have none.
func TestRecordsAsText(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	text, err := os.ReadFile("testdata/records.history")
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "h", string(text))
	var got strings.Builder
	for _, id := range []string{"1.0", "2.0", "3.0", "4.0", "5.0"} {
		status, stdout, stderr := p.ep(t, "history", "-file", "h", id)
		if status != exitOK || stderr != "" {
			t.Errorf("%s: status %d, %q", id, status, stderr)
		}
		got.WriteString(ofAClock.ReplaceAllString(stdout, "DATE") + "\n") // of the place where the test runs
	}
	want, err := os.ReadFile("testdata/records.txt")
	if d := cmp.Diff(string(want), got.String()); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// What a job leaves outside of its scratch directory is in its record. Of an account that
// is for jobs alone it is removed, links as links; of another it stays; what is of
// others or older than the job stays in any case. While somebody else uses the account only
// what is in memory is named, and all stays.
func TestLeftoversOfAJob(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	ordinary(t)
	if _, err := exec.LookPath("ipcmk"); err != nil {
		t.Skip("needs ipcmk")
	}
	name := "execpoint-left-" + strconv.Itoa(os.Getpid())
	s.write(t, "job.sh", `#!/bin/sh
mkdir -p /tmp/N/deep; echo text >/tmp/N/deep/file; ln -s SECRET /tmp/N/link; chmod 0 /tmp/N/deep /tmp/N
echo text >/dev/shm/N
ln -s SECRET /var/tmp/N
echo more >>/var/tmp/N.old
ipcmk -M 4096; ipcmk -S 2; ipcmk -Q
`)
	script := strings.NewReplacer("/N", "/"+name, "SECRET", s.secret).Replace(s.read(t, "job.sh"))
	s.write(t, "job.sh", script)
	s.write(t, "job.sub", "request_cpus = 1\nrequest_memory = 16\nrequest_disk = 1024\nexecutable = job.sh\nshould_transfer_files = YES\noutput = out\nqueue\n")
	paths := []string{"/tmp/" + name, "/dev/shm/" + name, "/var/tmp/" + name}
	for i, tt := range []struct {
		user, conf string
		who, end   string
		removed    bool
		used       bool // by somebody else, meanwhile
	}{
		{"backup", "DEDICATED_EXECUTE_ACCOUNT_REGEXP = backup\n", "It", ", removed.", true, false},
		{"list", "", "It", ", not removed, for its account is not for jobs alone.", false, false},
		{"games", "", "It or another of its account", ", not removed.", false, true},
	} {
		account, err := user.Lookup(tt.user)
		if err != nil {
			t.Skip(err)
		}
		uid, _ := strconv.Atoi(account.Uid)
		old := "/var/tmp/" + name + ".old"
		if err := os.WriteFile(old, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(old, uid, -1); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, path := range append(paths, old) {
				os.RemoveAll(path)
			}
			exec.Command("sh", "-c", "for k in m s q; do ipcs -$k | awk -v u="+tt.user+" -v k=$k '$3 == u { print k, $2 }'; done | while read k id; do ipcrm -$k $id; done").Run()
		})
		file := filepath.Join(s.dir, tt.user+"_history")
		s.write(t, "ep.conf", "MOUNT_UNDER_SCRATCH =\nMOUNT_PRIVATE_DEV_SHM = false\nSLOT1_1_USER = "+tt.user+"\nSTARTD_HISTORY = "+file+"\n"+tt.conf)
		leave := func() {}
		if tt.used {
			leave = useAccount(t, uint32(uid))
		}
		if status, said := s.run(t, "-config", "ep.conf", "job.sub"); status != exitOK {
			t.Fatalf("%s: status %d\n%s", tt.user, status, said)
		}
		leave()
		status, stdout, stderr := s.ep(t, "history", "-file", file, strconv.Itoa(i+1)+".0")
		if status != exitOK {
			t.Errorf("%s: status %d\n%s", tt.user, status, stderr)
		}
		kinds := []string{"shared memory", "semaphores", "message queue", "POSIX shared memory /dev/shm/" + name, "file /tmp/" + name, "file /var/tmp/" + name}
		if tt.used {
			if kinds = kinds[:4]; strings.Contains(stdout, "left file") {
				t.Errorf("%s: files of others are named\n%s", tt.user, stdout)
			}
		}
		for _, kind := range kinds {
			if line := regexp.MustCompile("(?m)^" + tt.who + " left " + kind + "( .*)?" + regexp.QuoteMeta(tt.end) + "$"); !line.MatchString(stdout) {
				t.Errorf("%s: no %s in\n%s", tt.user, kind, stdout)
			}
		}
		if strings.Contains(stdout, ".old") {
			t.Errorf("%s: an older file is counted\n%s", tt.user, stdout)
		}
		for _, path := range paths {
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) != tt.removed {
				t.Errorf("%s: %s: %v", tt.user, path, err)
			}
		}
		if text, err := os.ReadFile(old); err != nil || string(text) != "more\n" {
			t.Errorf("%s: the older file: %q, %v", tt.user, text, err)
		}
		for _, path := range paths { // the next account has the names
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		for _, table := range []string{"shm", "sem", "msg"} {
			text, err := os.ReadFile("/proc/sysvipc/" + table)
			if err != nil {
				t.Fatal(err)
			}
			if found := regexp.MustCompile(`(?m)\s` + account.Uid + `\s+` + account.Gid + `\s+` + account.Uid + `\s`).Match(text); found == tt.removed {
				t.Errorf("%s: %s:\n%s", tt.user, table, text)
			}
		}
	}
	if b, err := os.ReadFile(s.secret); err != nil || string(b) != secretText {
		t.Errorf("what a link led to is %q, %v", b, err)
	}
}

// useAccount has a process live that is the user's, and returns what ends it.
func useAccount(t *testing.T, uid uint32) (leave func()) {
	t.Helper()
	other := exec.Command("sleep", "600")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := bound.Start(other); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = other.Process.Kill()
		_ = other.Wait() // killed
	}
}

// A process that hangs in the kernel, here because somebody froze it, breaks the slot
// where the owner wants that, and is in the record in any case.
//
// row: S4-050
func TestUndyingProcessBreaksTheSlot(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	ordinary(t)
	freezer := "/sys/fs/cgroup/freezer/execpoint-undying-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(freezer, 0o755); err != nil {
		t.Skipf("needs a freezer: %v", err)
	}
	var pid string
	t.Cleanup(func() {
		_ = os.WriteFile(freezer+"/freezer.state", []byte("THAWED"), 0)
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
		waitFor(t, "the frozen process is gone", func() bool { return os.Remove(freezer) == nil })
	})
	s.write(t, "job.sh", "#!/bin/sh\nsleep 1000 &\necho $! >child.part\nmv child.part child\nuntil test -e frozen; do sleep 0.05; done\n")
	if err := os.Chmod(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s.write(t, "job.sub", "request_cpus = 1\nrequest_memory = 16\nrequest_disk = 1024\nexecutable = job.sh\nqueue\n")
	s.write(t, "ep.conf", "STARTD_LEFTOVER_PROCS_BREAK_SLOTS = true\nSTARTD_EVENTLOG = "+filepath.Join(s.dir, "events")+"\nSTARTD_HISTORY = "+filepath.Join(s.dir, "history")+"\n")
	type end struct {
		status int
		said   string
	}
	ended := make(chan end, 1)
	go func() {
		status, said := s.run(t, "-config", "ep.conf", "job.sub")
		ended <- end{status, said}
	}()
	waitFor(t, "the job's child runs", func() bool {
		text, err := os.ReadFile(filepath.Join(s.dir, "child"))
		pid = strings.TrimSpace(string(text))
		return err == nil && pid != ""
	})
	for _, w := range [][2]string{{"cgroup.procs", pid}, {"freezer.state", "FROZEN"}} {
		if err := os.WriteFile(filepath.Join(freezer, w[0]), []byte(w[1]), 0); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, "frozen", "")
	e := <-ended
	if e.status != exitOK {
		t.Errorf("status %d\n%s", e.status, e.said)
	}
	if events := s.read(t, "events"); !strings.Contains(events, "Could not terminate all job processes") {
		t.Errorf("the slot did not break:\n%s", events)
	}
	if _, stdout, _ := s.ep(t, "history", "-file", "history", "1.0"); !strings.Contains(stdout, "\n1 process of it could not be killed.\n") {
		t.Errorf("the record:\n%s", stdout)
	}
}
