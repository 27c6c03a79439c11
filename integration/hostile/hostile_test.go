// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"bytes"
	"cmp"
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
	shape shape
}

// shape is how the Execution Point contains its jobs, where it is not as it is by
// itself.
type shape struct {
	conf   string // of the Execution Point
	job    string // of each job
	shared bool   // /tmp, /var/tmp and /dev/shm are everybody's
}

// owners are accounts of whom one is there, and who own nothing that others need. another is
// that of the first job, which the others are to leave alone.
var owners = []string{"tester", "games"}

const another = "nobody"

func newStage(t *testing.T, root bool, as shape) *stage {
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
		return (&stage{t: t, owner: u, shape: as}).lay()
	}
	for _, name := range owners {
		if u, err := user.Lookup(name); err == nil {
			return (&stage{t: t, owner: u, root: root, shape: as}).lay()
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
	// What links of the jobs lead to is root's where root cleans up: jobs cannot harm it.
	for _, sub := range []string{"submit", "tmp", "target", "open"} {
		path := filepath.Join(s.dir, sub)
		s.must(os.Mkdir(path, 0o755))
		if !s.root || sub == "submit" || sub == "open" {
			s.must(os.Lchown(path, uid, gid))
		}
	}
	for name, from := range map[string]string{"program": "/proc/self/exe", "open/program": "/proc/self/exe", "condor_ep": tool(s.t)} {
		b, err := os.ReadFile(from)
		s.must(err)
		s.must(os.WriteFile(filepath.Join(s.dir, name), b, 0o755))
	}
	s.must(os.WriteFile(filepath.Join(s.dir, "target", "precious"), []byte("precious"), 0o644))
	s.must(os.Lchown(filepath.Join(s.dir, "open", "program"), uid, gid))
	s.bound()
	return s
}

// inside is set in a virtual machine of integration/guest, to its control groups.
var inside = os.Getenv("EXECPOINT_GUEST_INSIDE")

// roomy is a directory that is not below one that jobs have of their own, on a file
// system whose pages the kernel can write to a disk.
func roomy() string {
	if inside != "" {
		if err := exec.Command("sh", "-c", "mkfs.ext4 -q /dev/vda && mkdir -p /srv && mount /dev/vda /srv").Run(); err == nil {
			return "/srv"
		}
		if _, err := os.Stat("/srv/lost+found"); err == nil { // an earlier test mounted it
			return "/srv"
		}
	}
	if err := os.WriteFile("/var/spool/.hostile", nil, 0o600); err == nil {
		_ = os.Remove("/var/spool/.hostile")
		return "/var/spool"
	}
	return os.TempDir()
}

// tool is condor_ep: of the guest, or built now.
func tool(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("condor_ep"); err == nil && inside != "" {
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

// run runs the jobs on so many slots and returns what the tool says.
func (s *stage) run(limit time.Duration, slots int, names []string) string {
	s.t.Helper()
	env := beProgram + "=1 HOSTILE_TARGET=" + filepath.Join(s.dir, "target") + " HOSTILE_OPEN=" + filepath.Join(s.dir, "open")
	if s.root {
		env += " HOSTILE_APART=1"
	}
	if inside != "" {
		env += " HOSTILE_SLOW=1"
	}
	var sub strings.Builder
	fmt.Fprintf(&sub, "transfer_executable = false\nshould_transfer_files = YES\ntransfer_output_files =\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 1024\n"+
		"environment = \"%s\"\n%s", env, s.shape.job)
	for _, name := range names {
		where := s.dir
		if programs[name].open {
			where = filepath.Join(s.dir, "open")
		}
		fmt.Fprintf(&sub, "executable = %s/program\narguments = %s %s\noutput = %s.out\nerror = %s.err\nlog = %s.log\n", where, name, s.word, name, name, name)
		fmt.Fprintf(&sub, "run_as_owner = %t\n", name != victims[0])
		if programs[name].lasts != 0 {
			fmt.Fprintf(&sub, "allowed_execute_duration = %d\n", programs[name].lasts)
		} else {
			sub.WriteString("allowed_execute_duration =\n")
		}
		sub.WriteString("queue\n")
	}
	conf := s.shape.conf
	if s.root {
		conf += "NOBODY_SLOT_USER = " + another + "\n"
	}
	submit := filepath.Join(s.dir, "submit")
	s.must(os.WriteFile(filepath.Join(submit, "job.sub"), []byte(sub.String()), 0o644))
	s.must(os.WriteFile(filepath.Join(submit, "ep.conf"), []byte(fmt.Sprintf("NUM_CPUS = %d\nMEMORY = 8192\nDISK = 10000000\nSTARTD_NAME = hostile\nBASE_CGROUP = %s/jobs\nRunBenchmarks = False\nKILLING_TIMEOUT = 5\nMachineMaxVacateTime = 5\nSTARTD_HISTORY = %s\n%s",
		slots, s.word, filepath.Join(submit, "history"), conf)), 0o644))
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
		if !s.root || s.shape.shared {
			break // these are everybody's
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

// pure: the control groups are those of version 2.
var pure = func() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err == nil
}()

// chosen are the programs that can be run here.
func (s *stage) chosen(grouped bool) []string {
	names := slices.Sorted(maps.Keys(programs))
	return slices.DeleteFunc(names, func(name string) bool {
		p := programs[name]
		return p.spaces && !s.spaces() || p.multiplies && len(s.guard) == 0 || p.grouped && !grouped || p.only2 && !(grouped && pure)
	})
}

// spaces reports whether jobs see and end no processes but their own.
func (s *stage) spaces() bool {
	return strings.Contains(s.shape.conf, "USE_PID_NAMESPACES = True")
}

// judge looks at what all have of a run: the record of each program, the others, and
// the machine.
func (s *stage) judge(names []string, before machine, said string) {
	s.t.Helper()
	records := s.records()
	for _, name := range names {
		s.t.Run(name, func(t *testing.T) {
			log, out := s.read(name+".log"), s.read(name+".out")
			if strings.Contains(out, "BAD ") {
				t.Errorf("it could do what it must not:\n%.2000s", out)
			}
			p := programs[name]
			want := "Normal termination (return value " + strconv.Itoa(p.exit) + ")"
			switch {
			case p.over != 0:
				want = fmt.Sprintf("Code %d Subcode ", p.over)
			case p.signal != 0:
				want = fmt.Sprintf("Abnormal termination (signal %d)", int(p.signal))
			}
			if !strings.Contains(log, want) && !p.either(log) {
				t.Errorf("its log does not say %q:\n%s%s", want, log, out)
			}
			s.record(t, name, p, records[name])
		})
	}
	for _, name := range victims {
		if out := s.read(name + ".out"); !strings.Contains(out, "the victim is well") || strings.Contains(out, "BAD") {
			s.t.Errorf("the %s says %q\n%s", name, out, s.read(name+".log"))
		}
		s.record(s.t, name, program{}, records[name])
		if n := strings.Count(s.read(name+".log"), "Job executing on host"); n != 1 {
			s.t.Errorf("the %s began %d times", name, n)
		}
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

func (s *stage) read(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, "submit", name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// victims behave. The first is there from the beginning, and the last gets a slot that
// another job had before.
var victims = []string{"victim", "victim-last"}

// all runs the programs beside the victims, and those that allow no company alone. There
// are fewer slots than jobs, so that most slots are offered a second time.
func (s *stage) all(limit time.Duration, names []string) {
	s.t.Helper()
	before := s.look()
	apart := func(name string) bool { return programs[name].alone && !s.spaces() }
	alone := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !apart(name) })
	names = slices.DeleteFunc(names, apart)
	if len(names) < 4 {
		s.t.Fatalf("%d programs are no test", len(names))
	}
	// As long as the first one is there.
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(programs[a].rank, programs[b].rank) })
	jobs := append(append(victims[:1:1], names...), victims[1:]...)
	slots := len(jobs) * 2 / 3
	if inside != "" {
		slots = 10 // of one processor
	}
	said := s.run(limit, slots, jobs)
	for _, name := range alone {
		if s.root { // an ordinary user's Execution Point ends with the rest
			said += s.run(20*time.Second, 1, []string{name})
			names = append(names, name)
		}
	}
	s.judge(names, before, said)
}

const (
	usualLimit = 60 * time.Second
	slowLimit  = 3 * time.Minute
)

// patience is how long a run may take.
func patience() time.Duration {
	if inside != "" {
		return slowLimit
	}
	return usualLimit
}

// TestOfRoot has root run all programs for an ordinary user.
func TestOfRoot(t *testing.T) {
	s := newStage(t, true, shape{})
	s.all(patience(), s.chosen(len(s.guard) > 0))
}

// among are those of the names that can be run here.
func (s *stage) among(names ...string) []string {
	can := s.chosen(len(s.guard) > 0)
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(can, name) })
}

// TestGroupsAlone has control groups and nothing else: all directories are the
// machine's, and so are the numbers of processes.
func TestGroupsAlone(t *testing.T) {
	s := newStage(t, true, shape{conf: "USE_PID_NAMESPACES = False\nMOUNT_UNDER_SCRATCH =\nMOUNT_PRIVATE_DEV_SHM = False\n", shared: true})
	s.all(patience(), s.among("fork-setsid", "fork-double", "fork-noenv", "memory-heap", "memory-child", "memory-below", "kills", "pries", "mounts", "groups", "tree-deep", "race", "deaf", "unremovable",
		"group-leaves", "group-threaded", "group-freezes"))
}

// TestInSpaces has jobs with numbers of processes of their own and without a network.
func TestInSpaces(t *testing.T) {
	s := newStage(t, true, shape{conf: "USE_PID_NAMESPACES = True\nNO_JOB_NETWORKING = True\n", job: "want_job_networking = False\n"})
	s.all(patience(), s.among("fork-setsid", "fork-double", "fork-noenv", "memory-heap", "memory-below", "kills", "pries", "mounts", "groups", "race", "deaf", "ipc", "network", "numbers",
		"group-leaves", "group-threaded", "group-freezes"))
}

// TestOfAUser has an ordinary user run them without any rights.
func TestOfAUser(t *testing.T) {
	s := newStage(t, false, shape{})
	s.all(patience(), s.chosen(false))
}
