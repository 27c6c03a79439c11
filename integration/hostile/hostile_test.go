// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/integration/realpool"
)

// beProgram has this binary be one of the programs.
const beProgram = "EXECPOINT_TEST_BE_HOSTILE"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) == "" {
		os.Exit(m.Run())
	}
	go func() { rest(life); os.Exit(99) }() // whatever it does
	name := os.Args[1]
	if p, ok := programs[name]; ok {
		p.do()
	} else {
		parts[name]()
	}
	os.Exit(0)
}

// stage is where the programs run.
type stage struct {
	t     *testing.T
	dir   string // everything
	word  string // in the command line of each process, and the names of files
	guard []string
	owner *user.User // of the jobs
	root  bool       // the Execution Point is root's
}

// owners are accounts of whom one is there, and who own nothing that others need.
var owners = []string{"tester", "games"}

func newStage(t *testing.T, root bool) *stage {
	t.Helper()
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("race: the programs would take more memory than a slot has; the step pools of ci/check runs them")
	}
	if os.Geteuid() != 0 {
		if root {
			t.Skip("needs root")
		}
		u, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		return (&stage{t: t, owner: u}).lay()
	}
	for _, name := range owners {
		if u, err := user.Lookup(name); err == nil {
			return (&stage{t: t, owner: u, root: root}).lay()
		}
	}
	t.Skipf("none of the users %q is there", owners)
	return nil
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// ids are the numbers of the jobs' user.
func (s *stage) ids() (uid, gid int) {
	uid, _ = strconv.Atoi(s.owner.Uid)
	gid, _ = strconv.Atoi(s.owner.Gid)
	return uid, gid
}

func (s *stage) lay() *stage {
	s.t.Helper()
	var err error
	s.dir, err = os.MkdirTemp(roomy(), "hostile-")
	s.must(err)
	s.word = filepath.Base(s.dir)
	s.t.Cleanup(func() { s.must(os.RemoveAll(s.dir)) })
	s.must(os.Chmod(s.dir, 0o755))
	uid, gid := s.ids()
	for _, sub := range []string{"submit", "tmp", "target"} {
		path := filepath.Join(s.dir, sub)
		s.must(os.Mkdir(path, 0o755))
		if !s.root || sub == "submit" || sub == "target" {
			s.must(os.Lchown(path, uid, gid))
		}
	}
	for name, from := range map[string]string{"program": "/proc/self/exe", "condor_ep": tool(s.t)} {
		b, err := os.ReadFile(from)
		s.must(err)
		s.must(os.WriteFile(filepath.Join(s.dir, name), b, 0o755))
	}
	s.must(os.WriteFile(filepath.Join(s.dir, "target", "precious"), []byte("precious"), 0o644))
	s.bound()
	return s
}

// roomy is a directory that is not below one that jobs have of their own.
func roomy() string {
	if err := os.WriteFile("/var/spool/.hostile", nil, 0o600); err == nil {
		_ = os.Remove("/var/spool/.hostile")
		return "/var/spool"
	}
	return os.TempDir()
}

// tool is condor_ep: of the guest, or built now.
func tool(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("condor_ep"); err == nil && os.Getenv("EXECPOINT_GUEST_INSIDE") != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "condor_ep")
	cmd := exec.Command("go", "build", "-o", path, "github.com/execpoint/execpoint/bin/condor_ep")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// most is how many processes and threads there may be of a run.
const most = 1500

// bound makes the group of the test that limits the number of processes, where it
// can be. The groups of the jobs are below it.
func (s *stage) bound() {
	for _, dir := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		guard := filepath.Join(dir, s.word)
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
			continue
		}
		if dir == "/sys/fs/cgroup" {
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+pids +memory +cpu"), 0)
		}
		if os.Mkdir(guard, 0o755) != nil || os.WriteFile(filepath.Join(guard, "pids.max"), []byte(strconv.Itoa(most)), 0) != nil {
			_ = os.Remove(guard)
			continue
		}
		if os.Mkdir(filepath.Join(guard, "tool"), 0o755) == nil {
			s.guard = append(s.guard, guard)
		}
	}
	s.t.Cleanup(func() {
		for _, g := range s.guard {
			_ = os.Remove(filepath.Join(g, "tool"))
		}
		// The Execution Point leaves the base of its groups, as BASE_CGROUP is.
		all, _ := filepath.Glob("/sys/fs/cgroup/*/" + s.word)
		for _, g := range append(all, filepath.Join("/sys/fs/cgroup", s.word)) {
			_ = realpool.Until(context.Background(), 10*time.Second, 50*time.Millisecond, func(context.Context) error {
				_ = os.Remove(filepath.Join(g, "jobs"))
				if err := os.Remove(g); !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				return nil
			})
		}
	})
}

// run runs the jobs and returns what the tool says.
func (s *stage) run(limit time.Duration, conf string, names []string) string {
	s.t.Helper()
	apart := ""
	if s.root {
		apart = " HOSTILE_APART=1"
	}
	var sub strings.Builder
	fmt.Fprintf(&sub, "executable = %s/program\ntransfer_executable = false\nshould_transfer_files = YES\ntransfer_output_files =\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 1024\n"+
		"environment = \"%s=1%s\"\n", s.dir, beProgram, apart)
	for _, name := range names {
		fmt.Fprintf(&sub, "arguments = %s %s\noutput = %s.out\nerror = %s.err\nlog = %s.log\nqueue\n", name, s.word, name, name, name)
	}
	submit := filepath.Join(s.dir, "submit")
	s.must(os.WriteFile(filepath.Join(submit, "job.sub"), []byte(sub.String()), 0o644))
	s.must(os.WriteFile(filepath.Join(submit, "ep.conf"), []byte(fmt.Sprintf("NUM_CPUS = %d\nMEMORY = 8192\nDISK = 10000000\nSTARTD_NAME = hostile\nBASE_CGROUP = %s/jobs\nRunBenchmarks = False\nKILLING_TIMEOUT = 5\n%s", len(names)+1, s.word, conf)), 0o644))
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	// The shell moves itself below the guard before it becomes the tool.
	line := ""
	for _, g := range s.guard {
		line += "echo $$ >" + filepath.Join(g, "tool", "cgroup.procs") + " || exit 90; "
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line+`exec "$@"`, "sh", filepath.Join(s.dir, "condor_ep"), "run", "-config", "ep.conf", "job.sub")
	if !s.root && os.Geteuid() == 0 {
		// As the user, from within the guard of root's.
		cmd = exec.CommandContext(ctx, "/bin/sh", "-c", line+`exec setpriv --reuid=`+s.owner.Uid+` --regid=`+s.owner.Gid+` --clear-groups "$@"`, "sh", filepath.Join(s.dir, "condor_ep"), "run", "-config", "ep.conf", "job.sub")
	}
	cmd.Dir = submit
	tmp := filepath.Join(s.dir, "tmp")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "EXECPOINT_RUNTIME_DIR="+filepath.Join(tmp, "runs"), "SECRET=xyzzy", "HOME="+submit)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if ctx.Err() != nil {
		s.t.Errorf("the run does not end within %v", limit)
	}
	return out.String()
}

// left is what a run left on the machine.
func (s *stage) left(before machine) []string {
	var found []string
	now := s.look()
	found = append(found, now.processes...)
	for _, m := range now.mounts {
		if !slices.Contains(before.mounts, m) {
			found = append(found, "mount "+m)
		}
	}
	for _, o := range now.ipc {
		// These outlive their processes, and may be other's of the same user: the exit
		// record names them, and nothing but their owner takes them away.
		if id, err := strconv.Atoi(strings.TrimPrefix(o, "shm ")); err == nil && !slices.Contains(before.ipc, o) {
			if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
				found = append(found, "System V object "+o+": "+err.Error())
			}
		}
	}
	found = append(found, now.files...)
	found = append(found, now.groups...)
	return found
}

// machine is what can be left on it.
type machine struct{ processes, mounts, ipc, files, groups []string }

func (s *stage) look() machine {
	var m machine
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(s.word)) {
			m.processes = append(m.processes, "process "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 {
			m.mounts = append(m.mounts, f[3]+" on "+f[4])
		}
	}
	for _, kind := range []string{"shm", "sem", "msg"} {
		b, _ := os.ReadFile("/proc/sysvipc/" + kind)
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 7 && slices.Contains(f, s.owner.Uid) {
				m.ipc = append(m.ipc, kind+" "+f[1])
			}
		}
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if !s.root {
			break // without rights to mount, these are everybody's
		}
		all, _ := filepath.Glob(filepath.Join(dir, s.word+"-*"))
		m.files = append(m.files, all...)
	}
	all, _ := filepath.Glob(filepath.Join(s.dir, "tmp", "*"))
	runs, _ := filepath.Glob(filepath.Join(s.dir, "tmp", "runs", "run-*"))
	m.files = append(m.files, runs...)
	for _, path := range all {
		if filepath.Base(path) != "runs" {
			m.files = append(m.files, path)
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*/" + s.word + "/jobs/*", "/sys/fs/cgroup/" + s.word + "/jobs/*"} {
		all, _ := filepath.Glob(pattern)
		for _, path := range all {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				m.groups = append(m.groups, path)
			}
		}
	}
	return m
}

// chosen are the programs that can be run here.
func (s *stage) chosen(grouped bool) []string {
	names := slices.Sorted(maps.Keys(programs))
	return slices.DeleteFunc(names, func(name string) bool {
		p := programs[name]
		return p.multiplies && len(s.guard) == 0 || p.grouped && !grouped
	})
}

// judge looks at what all have of a run.
func (s *stage) judge(names []string, before machine, said string) {
	s.t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(s.dir, "submit", name))
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	for _, name := range names {
		s.t.Run(name, func(t *testing.T) {
			log, out := read(name+".log"), read(name+".out")
			if strings.Contains(out, "BAD ") {
				t.Errorf("it could do what it must not:\n%s", out)
			}
			p := programs[name]
			want := "Normal termination (return value " + strconv.Itoa(p.exit) + ")"
			switch {
			case p.over != 0:
				want = fmt.Sprintf("Code %d Subcode ", p.over)
			case p.signal != 0:
				want = fmt.Sprintf("Abnormal termination (signal %d)", int(p.signal))
			}
			if !strings.Contains(log, want) {
				t.Errorf("its log does not say %q:\n%s%s", want, log, out)
			}
		})
	}
	if out := read("victim.out"); !strings.Contains(out, "the victim is well") || strings.Contains(out, "BAD") {
		s.t.Errorf("the victim says %q\n%s", out, read("victim.log"))
	}
	if b, err := os.ReadFile(filepath.Join(s.dir, "target", "precious")); err != nil || string(b) != "precious" {
		s.t.Errorf("what a link of a job led to is %q, %v", b, err)
	}
	var left []string
	_ = realpool.Until(s.t.Context(), 10*time.Second, 100*time.Millisecond, func(context.Context) error {
		if left = s.left(before); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	if len(left) > 0 {
		s.t.Errorf("left on the machine:\n%s", strings.Join(left, "\n"))
	}
	if s.t.Failed() {
		s.t.Logf("condor_ep run says\n%s", realpool.Last(said, 60))
	}
}

// TestOfRoot has root run the programs for an ordinary user.
func TestOfRoot(t *testing.T) {
	s := newStage(t, true)
	before := s.look()
	// One of them kills all of its user, so that it has no company.
	names := slices.DeleteFunc(s.chosen(len(s.guard) > 0), func(name string) bool { return name == "kills" })
	said := s.run(60*time.Second, "", append([]string{"victim"}, names...))
	said += s.run(20*time.Second, "", []string{"kills"})
	s.judge(append(names, "kills"), before, said)
}

// TestOfAUser has an ordinary user run them without any rights.
func TestOfAUser(t *testing.T) {
	s := newStage(t, false)
	before := s.look()
	names := slices.DeleteFunc(s.chosen(false), func(name string) bool { return name == "kills" }) // it ends all of the same user
	said := s.run(60*time.Second, "", append([]string{"victim"}, names...))
	s.judge(names, before, said)
}
