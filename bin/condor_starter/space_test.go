// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/space"
)

// newSpaceStage is a stage whose EXECUTE is below none of the directories of the default list.
// Without root its starters have a user namespace.
func newSpaceStage(t *testing.T, configuration string) *stage {
	t.Helper()
	if err := able(); err != nil {
		t.Skip(err)
	}
	s := newStage(t)
	s.ownUsers = os.Geteuid() != 0
	execute, err := os.MkdirTemp(roomy(), "execpoint-test-")
	if err == nil {
		err = os.Chmod(execute, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(execute); err != nil {
			t.Error(err)
		}
	})
	s.execute, s.plan.Execute = execute, execute
	s.configure(configuration)
	return s
}

// able says why starters that these tests start cannot make spaces.
func able() error {
	if os.Geteuid() != 0 {
		return space.TryUsers()
	}
	return space.Able()
}

// roomy is a directory that is below none that jobs have of their own.
func roomy() string {
	if home, err := os.UserHomeDir(); err == nil && os.Geteuid() != 0 {
		return home
	}
	return "/var"
}

// mounts prints where the job has mounts that the machine has not, in the order in
// which they were made.
const mounts = `awk '{print $5}' /proc/self/mountinfo > seen; for m in /tmp /var/tmp /dev/shm /media /srv /proc; do echo $m $(grep -cx $m seen); done; `

// counted is what mounts prints on the machine for itself, with n more for each place.
func counted(t *testing.T, more string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for line := range strings.Lines(string(text)) {
		n[strings.Fields(line)[4]]++
	}
	for _, place := range strings.Fields(more) {
		n[place]++
	}
	var b strings.Builder
	for _, place := range []string{"/tmp", "/var/tmp", "/dev/shm", "/media", "/srv", "/proc"} {
		fmt.Fprintln(&b, place, n[place])
	}
	return b.String()
}

// The mounts, TMPDIR and namespaces of the recorded jobs (cases mnt-…, notes 45, 49 to
// 52), by the settings of the machine. Where it is not as recorded the case says why.
//
// row: S4-069, S4-070, S4-072, S0-058, S0-059
func TestSpaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, config string
		script       string // after the mounts
		mounts       string // those that are new
		temp         string // "" is the scratch directory
		want         string // what the script prints
		code         int
	}{
		{
			name: "mnt-default", mounts: "/tmp /var/tmp /dev/shm", temp: "/tmp",
			script: `for d in /tmp /var/tmp; do touch $d/$me; stat -c '%a %u' $d; done; touch /dev/shm/$me; ls tmp/$me var/tmp/$me; stat -c %a . var`,
			want:   "700 UID\n700 UID\ntmp/ME\nvar/tmp/ME\n700\n700\n",
		},
		{name: "mnt-custom", config: "MOUNT_UNDER_SCRATCH = \"/media\"\n", mounts: "/media /dev/shm"}, // TMPDIR was the shared /tmp: defect 10
		{name: "mnt-empty", config: "MOUNT_UNDER_SCRATCH =\nMOUNT_PRIVATE_DEV_SHM = False\n"},
		{name: "mnt-shm-only", config: "MOUNT_UNDER_SCRATCH =\nMOUNT_PRIVATE_DEV_SHM = True\n", mounts: "/dev/shm"}, // as documented; none there
		{name: "mnt-noshm", config: "MOUNT_PRIVATE_DEV_SHM = False\n", mounts: "/tmp /var/tmp", temp: "/tmp"},
		{name: "mnt-expr", config: "MOUNT_UNDER_SCRATCH = ifThenElse(RequestMemory > 100, \"/tmp,/media\", \"/var/tmp\")\n", mounts: "/tmp /media /dev/shm", temp: "/tmp"},
		{name: "mnt-encrypt", config: "ENCRYPT_EXECUTE_DIRECTORY = True\nMOUNT_UNDER_SCRATCH =\n", mounts: "/tmp /var/tmp /dev/shm", temp: "/tmp"},
		{name: "mnt-symlink, a nested pair and what is not there", config: "MOUNT_UNDER_SCRATCH = /media, /no/such/dir, relative, /srv, /srv, /usr/local, /usr/local/share\n", mounts: "/media /srv /dev/shm",
			script: `ls -A /usr/local; ls -A /usr/local/share; : > /usr/local/share/x && ls usr/local/share`, want: "share\nx\n"},
		{name: "mnt-tmpexec", config: "MOUNT_UNDER_SCRATCH = /var, /media, /\n", mounts: "/media /dev/shm"},
		{name: "no namespaces", config: "PER_JOB_NAMESPACES = false\nUSE_PID_NAMESPACES = true\n", script: `test -d /proc/STARTER && echo others`, want: "others\n"},
		{
			name: "mnt-pidns", config: "USE_PID_NAMESPACES = True\n", mounts: "/tmp /var/tmp /dev/shm /proc", temp: "/tmp",
			script: `cd /proc; echo [0-9]*; cat 1/comm; echo $$; env | grep -c PID_NS`, want: "1 2\ncondor_pid_ns_i\n2\n0\n", // nothing of it is told in files
		},
		{name: "mnt-pidns-exit", config: "USE_PID_NAMESPACES = True\n", mounts: "/tmp /var/tmp /dev/shm /proc", temp: "/tmp", script: "exit 3", code: 3},
		{name: "mnt-pidns-signal", config: "USE_PID_NAMESPACES = True\n", mounts: "/tmp /var/tmp /dev/shm /proc", temp: "/tmp", script: "kill -SEGV $$", code: -11},
		{
			name: "mnt-pidns-left", config: "USE_PID_NAMESPACES = True\n", mounts: "/tmp /var/tmp /dev/shm /proc", temp: "/tmp",
			script: "(setsid sleep 1000 >/dev/null 2>&1 &); kill -9 1; echo alive", want: "alive\n",
		},
		{
			name: "mnt-nonet", config: "NO_JOB_NETWORKING = True\n", mounts: "/tmp /var/tmp /dev/shm", temp: "/tmp",
			script: `tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; grep -q 127.0.0.1 /proc/net/fib_trie && echo up`, want: "lo\nup\n", // lo was down
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSpaceStage(t, c.config)
			for dir := range strings.FieldsSeq(c.mounts) { // a small machine lacks some
				if info, err := os.Stat(dir); err != nil || !info.IsDir() {
					t.Skip(err)
				}
			}
			me := "execpoint-" + filepath.Base(s.execute)
			s.set("RequestMemory", "128").set("Environment", `"me=`+me+`"`)
			s.sh(mounts + `echo $TMPDIR $TEMP $TMP; ` + strings.ReplaceAll(c.script, "STARTER", fmt.Sprint(os.Getpid())))
			got := s.run()
			status := host.ExitStatus{Exited: true, Code: c.code}
			if c.code < 0 {
				status = host.ExitStatus{Signal: -c.code, Core: got.record.Status.Core}
			}
			temp := c.temp
			if temp == "" {
				temp = got.dir()
			}
			want := counted(t, c.mounts) + strings.Join([]string{temp, temp, temp}, " ") + "\n" +
				strings.NewReplacer("UID", s.uid(), "ME", me).Replace(c.want)
			if out := s.read("out"); out != want || c.want != "" && c.code == 0 && got.record.Status.Code > 1 || (c.script == "" || c.code != 0) && got.record.Status != status {
				t.Errorf("%v, said\n%swant\n%s%s", got.record, out, want, s.read("err"))
			}
			for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
				if _, err := os.Lstat(filepath.Join(dir, me)); err == nil {
					t.Errorf("%s/%s is the machine's", dir, me)
				}
			}
			if left := s.read("tmp"); left != "(none)" {
				t.Error("the job's /tmp came back")
			}
		})
	}
}

// uid is the number of the jobs' user.
func (s *stage) uid() string {
	if s.plan.RunAs == nil {
		return fmt.Sprint(os.Geteuid())
	}
	return fmt.Sprint(s.plan.RunAs.UID)
}

// An expression that gives no list holds the job and says so; in HTCondor the job starts
// over for ever (mnt-badexpr). So does what the job has brought in the way of its /tmp.
//
// row: S4-070
func TestSpacesHeld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, config string
		change       func(s *stage)
		code, sub    int
		why          string
	}{
		{"mnt-badexpr", "MOUNT_UNDER_SCRATCH = 7 + 1\n", func(*stage) {}, 6, 0, "MOUNT_UNDER_SCRATCH of this machine gives 8, not a string"},
		{"a file tmp", "", func(s *stage) {
			s.file("tmp", "x", 0o644)
			s.set("TransferInput", `"tmp"`)
		}, 6, 0, "Failed to make the directory tmp in the scratch directory, which the job is to see at /tmp"},
		{"id-notransfer", "MOUNT_UNDER_SCRATCH = \"/media,/srv,/var/opt\"\n", func(s *stage) {
			s.set("Cmd", `"/srv/no/such/job.sh"`).set("Arguments", `""`)
		}, 6, 2, "the job has its own /srv on this machine (MOUNT_UNDER_SCRATCH), which hides the file"},
		{"a directory that is hidden", "MOUNT_UNDER_SCRATCH = \"/usr/local\"\n", func(s *stage) {
			s.set("RemoteIwd", `"/usr/local/bin"`)
		}, 6, 2, `Cannot access initial working directory "/usr/local/bin": the job has its own /usr/local on this machine (MOUNT_UNDER_SCRATCH), which hides it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, dir := range []string{"/media", "/srv", "/usr/local"} { // a small machine lacks some
				if _, err := os.Stat(dir); err != nil && strings.Contains(c.config, dir) {
					t.Skip(err)
				}
			}
			s := newSpaceStage(t, c.config)
			s.sh("echo ran")
			c.change(s)
			got := s.run()
			h := got.record.Held
			if h == nil || h.Code != c.code || h.Subcode != c.sub || !strings.Contains(h.Reason, c.why) {
				t.Errorf("%+v, want %d/%d %q", h, c.code, c.sub, c.why)
			}
			if out := s.read("out"); strings.Contains(out, "ran") {
				t.Error("it ran")
			}
		})
	}
}

// A link that one run of a job has put in the way of its /tmp is not followed for the
// next program.
func TestSpacesLink(t *testing.T) {
	t.Parallel()
	for to, why := range map[string]string{"/etc": "path escapes", ".": "a file or link of that name is there"} {
		s := newSpaceStage(t, "STARTER_ALLOW_JOB_PRE_AND_POST_CMD = true\n")
		s.file("pre.sh", "#!/bin/sh\nrmdir tmp || exit 1\nln -s "+to+" tmp\nexit 0\n", 0o755)
		s.set("TransferInput", `"pre.sh"`).set("PreCmd", `"pre.sh"`)
		s.sh("echo ran")
		if h := s.run().record.Held; h == nil || !strings.Contains(h.Reason, "Failed to make the directory tmp") || !strings.Contains(h.Reason, why) {
			t.Errorf("%s: %+v", to, h)
		}
		if s.read("out") == "ran\n" {
			t.Errorf("%s: it ran", to)
		}
	}
}

// Programs before and after a job see what it sees.
func TestSpacesScripts(t *testing.T) {
	t.Parallel()
	s := newSpaceStage(t, "STARTER_ALLOW_JOB_PRE_AND_POST_CMD = true\nUSE_PID_NAMESPACES = true\n")
	s.file("pre.sh", "#!/bin/sh\necho pre $$ > /tmp/pre\n", 0o755)
	s.file("post.sh", "#!/bin/sh\ncat /tmp/job > posted; echo post $$ >> posted\n", 0o755)
	s.set("TransferInput", `"pre.sh,post.sh"`).set("PreCmd", `"pre.sh"`).set("PostCmd", `"post.sh"`)
	s.sh("cat /tmp/pre; echo job $$ > /tmp/job")
	s.run()
	if s.read("out") != "pre 2\n" || s.read("posted") != "job 2\npost 2\n" {
		t.Errorf("out %q, posted %q", s.read("out"), s.read("posted"))
	}
}

// A job of the embedded access point that lies below /tmp goes on to see it there.
func TestSpacesInPlace(t *testing.T) {
	t.Parallel()
	s := newSpaceStage(t, "")
	script := s.file("job.sh", "#!/bin/sh\necho here; touch /var/tmp/"+filepath.Base(s.execute)+"\n", 0o755)
	s.set("ShouldTransferFiles", `"NO"`).set("Cmd", `"`+script+`"`).set("Out", `"`+s.submit+`/out"`).set("Err", `"`+s.submit+`/err"`)
	got := s.run()
	if out := s.read("out"); out != "here\n" {
		t.Errorf("%q, %+v", out, got.record.Held)
	}
	if _, err := os.Stat("/var/tmp/" + filepath.Base(s.execute)); err == nil {
		t.Error("/var/tmp is the machine's")
	}
}

// A starter without the rights of root starts no job that is to have no network, and
// leaves out the rest.
//
// row: S4-083
func TestSpacesWithoutRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("it is about users without rights")
	}
	s := newStage(t)
	s.configure("USE_PID_NAMESPACES = true\n")
	s.sh("echo $TMPDIR")
	if got := s.run(); s.read("out") != got.dir()+"\n" {
		t.Errorf("%q", s.read("out"))
	}
	s = newStage(t)
	s.configure("NO_JOB_NETWORKING = true\n")
	s.sh("echo ran")
	if r := s.run().record; r.Fault == nil || !strings.Contains(r.Reason, "NO_JOB_NETWORKING") || s.read("out") == "ran\n" {
		t.Errorf("%+v", r)
	}
}

// BenchmarkSpace is BenchmarkActivation with what keeps a job in its place, side by side:
// to the first instruction, from the standby. Limits are those that a slot has by default,
// and cores.
func BenchmarkSpace(b *testing.B) {
	if err := space.Able(); err != nil {
		b.Skip(err)
	}
	exe, clock := built(b), clockJob(b)
	dir, err := os.MkdirTemp("/var", "execpoint-test-") // below none of the directories that are hidden
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile(clock)
	visible := filepath.Join(dir, "clock")
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(visible, program, 0o755)); err != nil { //nolint:gosec // for others to execute
		b.Fatal(err)
	}
	const noMounts, noGroup, pids = "MOUNT_UNDER_SCRATCH =\nMOUNT_PRIVATE_DEV_SHM = false\n", "BASE_CGROUP =\n", "USE_PID_NAMESPACES = true\n"
	const group = "BASE_CGROUP = " + benchBase + "\n"
	for _, c := range []struct {
		name, config string
		limits       protocol.SlotLimits
	}{
		{name: "nothing", config: noGroup + noMounts},
		{name: "group", config: group + "CGROUP_MEMORY_LIMIT_POLICY = none\n" + noMounts},
		{name: "limits", config: group + noMounts, limits: slotLimits},
		{name: "mounts", config: noGroup},
		{name: "pids", config: noGroup + noMounts + pids},
		{name: "mounts,pids", config: noGroup + pids},
		{name: "mounts,pids,net", config: noGroup + pids + "NO_JOB_NETWORKING = true\n"},
		{name: "limits,mounts,pids", config: group + pids, limits: slotLimits},
	} {
		b.Run(c.name, func(b *testing.B) {
			groupsGoAfter(b)
			plan := benchPlan(b, dir, visible, "", 1, "")
			plan.Limits, plan.Settings = c.limits, settingsOf(b, "BIN =\n"+c.config)
			activations(b, benchLauncher(b, exe, 1), plan, dir)
		})
	}
}

// slotLimits are those of a slot of one core.
var slotLimits = protocol.SlotLimits{Cpus: 1, MemoryMiB: 1024, SwapKiB: 2 << 20, WholeMiB: 4096, Cores: []int{0}}
