// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// life is how long anything of a program lives at most, if nothing ends it.
const life = 40 * time.Second

// program is one that misbehaves. What it must not succeed in it prints as a line that
// begins with "BAD".
type program struct {
	do func()
	// multiplies: it needs the group of the test.
	multiplies bool
	// grouped: what is wanted of it takes a control group of the job's, and only2 one of
	// version 2.
	grouped, only2 bool
	// spaces: what is wanted of it takes a PID namespace and no network.
	spaces bool
	// rank is less than 0 if it begins before the others, and more if after them.
	rank int
	// alone: it ends all of its user.
	alone bool
	// open: its file is its user's.
	open bool
	// refused: it may also be that its file cannot be executed.
	refused bool
	// lasts is after how many seconds it is to leave.
	lasts int
	// leaves is how many processes it leaves at least, which its record counts.
	leaves int
	// killed: its record says that processes of it were killed for memory, why it says
	// in these words.
	killed string
	// over: it is held, with this code: for what it takes, or as its files cannot be read.
	over int
	// signal or exit is how it ends otherwise.
	signal syscall.Signal
	exit   int
}

// either reports whether the log says that the program never ran, where that may be.
func (p program) either(log string) bool {
	return p.refused && strings.Contains(log, "Code 6 Subcode 13")
}

// slow: in a virtual machine without help of the processor all takes ten times as long.
var slow = os.Getenv("HOSTILE_SLOW") != ""

// some is how often a program does what it does so often that it counts.
func some(n int) int {
	if slow {
		return max(1, n/4)
	}
	return n
}

// apart: the job is of another user than its starter.
var apart = os.Getenv("HOSTILE_APART") != ""

// rest lets a program be there for a while: it is a job, which waits for no event.
func rest(d time.Duration) { <-time.After(d) }

// self starts this program again, as another of its own.
func self(name string, attr *syscall.SysProcAttr, env ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", name, os.Args[2])
	cmd.SysProcAttr, cmd.Env = attr, append(env, beProgram+"=1")
	return cmd
}

// bad prints what ought not to be possible.
func bad(format string, args ...any) { fmt.Printf("BAD "+format+"\n", args...) }

func try(err error, format string, args ...any) {
	if err == nil {
		bad(format, args...)
	}
}

// bomb multiplies for a while and leaves all it started behind.
func bomb(attr *syscall.SysProcAttr, env ...string) {
	for range some(8) {
		_ = self("bomblet", attr, env...).Start()
	}
}

// bomblet has two children and stays, as they do.
func bomblet() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	for range 2 {
		_ = self("leaf", nil).Start()
	}
	rest(life)
}

// touch takes memory and writes to each page of it.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
}

// much is more than any slot of the test has.
var much = 100<<20 + some(4)*50<<20

// own says that the job came to the limit of its slot.
const own = "it came to its own limit of 128 MiB"

func mapped(flags int) []byte {
	b, err := unix.Mmap(-1, 0, much, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_ANON)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return b
}

// fill writes zeros to a file, as much as there may be.
func fill(path string) {
	f, err := os.Create(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := make([]byte, 1<<20)
	for range much >> 20 {
		if _, err := f.Write(b); err != nil {
			fmt.Println(err)
			return
		}
	}
}

// starter is the number of the process that watches over the job.
func starter() int { return os.Getppid() }

// neighbours are the scratch directories of jobs with another account: jobs of one account
// are no secret to one another. Where their parent cannot be read, names can be guessed.
func neighbours() []string {
	here := filepath.Clean(os.Getenv("_CONDOR_SCRATCH_DIR"))
	execute := filepath.Dir(filepath.Dir(here))
	mine, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(here)), "dir_"))
	var all []string
	for n := max(1, mine-500); n < mine+500; n++ {
		dir := filepath.Join(execute, "dir_"+strconv.Itoa(n), "scratch")
		var st unix.Stat_t
		if unix.Lstat(dir, &st) == nil && st.Uid != uint32(os.Getuid()) && st.Uid != 0 { // root's becomes a job's in a moment
			all = append(all, dir)
		}
	}
	return all
}

// programs are all of them, by name.
var programs = func() map[string]program {
	all := maps.Clone(ofJobs)
	maps.Copy(all, ofGroups)
	return all
}()

// ofJobs are those that any job can be.
var ofJobs = map[string]program{
	"fork-plain":  {do: func() { bomb(nil, os.Environ()...) }, multiplies: true, leaves: 2},
	"fork-setsid": {do: func() { bomb(&syscall.SysProcAttr{Setsid: true}, os.Environ()...) }, multiplies: true, leaves: 2},
	"fork-double": {do: func() {
		for range some(6) {
			_ = self("fork-again", &syscall.SysProcAttr{Setsid: true}, os.Environ()...).Run()
		}
	}, multiplies: true, leaves: 1},
	"fork-noenv": {do: func() { bomb(&syscall.SysProcAttr{Setsid: true}) }, multiplies: true, leaves: 2},
	"fork-renames": {do: func() {
		for i := range some(30) {
			name := fmt.Sprintf("innocent%d", i)
			b, err := os.ReadFile("/proc/self/exe")
			if err != nil || i > 0 {
				b = []byte("#!/bin/sh\nexec sleep 40\n")
			}
			_ = os.WriteFile(name, b, 0o755)
			cmd := exec.Command("./"+name, "leaf", os.Args[2])
			cmd.Env, cmd.SysProcAttr = []string{beProgram + "=1"}, &syscall.SysProcAttr{Setsid: true}
			_ = cmd.Start()
		}
	}, multiplies: true, leaves: 2},
	"memory-heap":   {do: func() { touch(make([]byte, much)) }, grouped: true, over: 34, killed: own},
	"memory-shared": {do: func() { touch(mapped(unix.MAP_SHARED)) }, grouped: true, over: 34, killed: own},
	"memory-child": {do: func() {
		_ = self("memory-heap", nil, os.Environ()...).Run() // which is killed, and this one ends as if nothing was
	}, grouped: true, over: 34, killed: own},
	"memory-memfd": {do: func() {
		fd, err := unix.MemfdCreate("x", 0)
		if err == nil {
			fill(fmt.Sprintf("/proc/self/fd/%d", fd))
		}
		rest(time.Second)
	}, grouped: true, over: 34, killed: own},
	"memory-devshm": {do: func() { fill("/dev/shm/" + os.Args[2]); rest(time.Second) }, grouped: true, over: 34, killed: own},
	"memory-cache": {do: func() { // which the kernel takes back: no reason to end a job
		fill("cache")
		if f, err := os.Open("cache"); err == nil {
			_, _ = io.Copy(io.Discard, f)
		}
		_ = os.Remove("cache")
	}},
	"disk-inodes": {do: func() {
		_ = os.Mkdir("many", 0o700)
		for i := range some(4000) {
			if os.WriteFile(fmt.Sprintf("many/f%d", i), nil, 0o600) != nil {
				return
			}
		}
	}},
	"tree-deep": {do: func() {
		for range some(400) { // far beyond what a path may have
			if os.Mkdir(strings.Repeat("d", 200), 0o700) != nil || os.Chdir(strings.Repeat("d", 200)) != nil {
				break
			}
		}
	}},
	"names": {do: func() {
		for _, name := range []string{strings.Repeat("x", 255), "\xff\xfe\x80", "new\nline", "-rf", " ", "...", "a*b?[c]", "$(reboot)"} {
			_ = os.WriteFile(name, nil, 0)
			_ = os.MkdirAll("dir/"+name+"/deeper", 0o700)
		}
		_ = os.Chmod("dir/-rf", 0)
		_ = os.Chmod("dir", 0)
	}, over: 12},
	"unremovable": {do: func() {
		_ = os.MkdirAll("locked/deep/er", 0o700)
		_ = os.WriteFile("locked/deep/file", nil, 0o400)
		if f, err := os.Open("locked/deep/file"); err == nil {
			_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0x10) // chattr +i
		}
		for _, dir := range []string{"locked/deep/er", "locked/deep", "locked"} {
			_ = os.Chmod(dir, 0)
		}
	}},
	"race": {do: func() { // a child goes on while the scratch directory is removed
		_ = os.MkdirAll("swap/a/b/c", 0o777)
		_ = self("racer", &syscall.SysProcAttr{Setsid: true}, "HOSTILE_TARGET="+os.Getenv("HOSTILE_TARGET")).Start()
		rest(200 * time.Millisecond)
	}},
	"specials": {do: func() {
		_ = unix.Mkfifo("fifo", 0o666)
		if l, err := net.Listen("unix", "socket"); err == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			_ = l.Close()
		}
		try(unix.Mknod("device", unix.S_IFBLK|0o666, 0), "made a block device")
		_ = os.Symlink("/etc/shadow", "link")
		_ = os.Symlink("loop", "loop")
	}},
	"kills": {do: func() {
		_ = unix.Kill(-1, unix.SIGKILL) // all it may, and it lives itself
		if os.Getenv("HOSTILE_SPACE") != "" {
			all, _ := filepath.Glob("/proc/[0-9]*")
			if len(all) > 2 { // it and the first process
				bad("killed all it may, and sees %q", all)
			}
			_ = unix.Kill(1, unix.SIGKILL) // the kernel drops it, or ends this too
		}
		if apart && starter() != 0 {
			try(unix.Kill(starter(), unix.SIGSTOP), "stopped its starter %d", starter())
			try(unix.Kill(starter(), unix.SIGKILL), "killed its starter %d", starter())
		}
	}, alone: true},
	"pries": {do: func() {
		inherited, _ := os.ReadDir("/proc/self/fd")
		pid := starter()
		if pid == 0 { // it is not seen; the first process of the namespace is
			pid = 1
		}
		for _, name := range []string{"environ", "mem", "maps", "fd", "cwd/.", "root/etc"} {
			f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
			defer func() { _ = f.Close() }()
			if apart && err == nil {
				if _, err = f.Read(make([]byte, 1)); err == nil || name == "cwd/." {
					bad("reads %s of its starter", name)
				}
			}
		}
		if apart {
			try(unix.PtraceAttach(pid), "traces its starter")
		}
		for _, e := range inherited {
			to, _ := os.Readlink("/proc/self/fd/" + e.Name())
			if n, _ := strconv.Atoi(e.Name()); n > 2 && to != "" && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/fs/cgroup/cpu") && !strings.HasPrefix(to, "anon_inode:") {
				bad("has inherited %s", to)
			}
		}
		for _, v := range os.Environ() {
			if strings.Contains(v, "xyzzy") {
				bad("has the starter's environment: %s", v)
			}
		}
	}},
	"neighbour": {do: func() {
		if !apart {
			return // they are the same user's
		}
		for range 20 {
			if len(neighbours()) > 0 {
				break
			}
			rest(100 * time.Millisecond)
		}
		if len(neighbours()) == 0 {
			bad("had no neighbour, so that nothing is proven")
		}
		for _, dir := range neighbours() {
			if b, err := os.ReadFile(filepath.Join(dir, "secret")); err == nil {
				bad("read the secret %q", b)
			}
			try(os.WriteFile(filepath.Join(dir, "spoilt"), nil, 0o666), "wrote into %s", dir)
		}
	}, rank: -1},
	"mounts": {do: func() {
		_ = self("mounter", &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}, os.Environ()...).Start()
		rest(500 * time.Millisecond)
	}},
	"groups": {do: func() {
		text, _ := os.ReadFile("/proc/self/cgroup")
		if apart && !strings.Contains(string(text), "execute") {
			bad("has no group, so that nothing is proven: %s", text)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(f) < 3 || f[2] == "/" || !strings.Contains(f[2], "execute") {
				continue
			}
			for _, root := range []string{"/sys/fs/cgroup/" + f[1], "/sys/fs/cgroup"} {
				dir := root + f[2]
				if f[1] == "" { // of version 2: its processes are in a group below its own
					dir = filepath.Dir(dir)
				}
				for _, knob := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max", "cpu.shares", "cpu.weight", "pids.max"} {
					if f, err := os.OpenFile(dir+"/"+knob, os.O_WRONLY, 0); err == nil {
						bad("may write %s", dir+"/"+knob)
						_ = f.Close()
					}
				}
				try(os.WriteFile(filepath.Dir(dir)+"/cgroup.procs", []byte("0"), 0), "left its group for %s", filepath.Dir(dir))
				if os.Mkdir(dir+"/sub", 0o755) == nil {
					cmd := self("leaf", &syscall.SysProcAttr{Setsid: true})
					if cmd.Start() == nil {
						_ = os.WriteFile(dir+"/sub/cgroup.procs", []byte(strconv.Itoa(cmd.Process.Pid)), 0)
					}
				}
			}
		}
	}},
	"ipc": {do: func() {
		if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 1<<20, 0o600); err == nil {
			_ = os.WriteFile("shmid", []byte(strconv.Itoa(id)), 0o600)
		}
		_ = os.WriteFile("/dev/shm/"+os.Args[2]+"-left", nil, 0o600)
		_ = os.WriteFile("/tmp/"+os.Args[2]+"-left", nil, 0o600)
		_ = os.WriteFile("/var/tmp/"+os.Args[2]+"-left", nil, 0o600)
	}},
	"deaf": {do: func() {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
		_ = self("leaf", nil, os.Environ()...).Start()
	}, leaves: 1},
	"floods": {do: func() {
		b := []byte(strings.Repeat("x", 1<<16))
		for range some(320) {
			_, _ = os.Stderr.Write(b)
		}
	}},
	"closes": {do: func() {
		_, _, _ = os.Stdin.Close(), os.Stdout.Close(), os.Stderr.Close()
		rest(200 * time.Millisecond)
	}},
	"rewrites": {do: func() {
		for _, name := range []string{".job.ad", ".machine.ad", ".update.ad", "../htcondor/.update.ad", "../user/.chirp.config", ".chirp.config"} {
			_ = os.Remove(name)
			_ = os.WriteFile(name, []byte(strings.Repeat("\xff\x00garbage = [[[\n", 10000)), 0o666)
		}
		if apart {
			try(os.WriteFile("../htcondor/starter.record", nil, 0o600), "wrote the starter's record")
		}
	}},
	"greedy": {do: func() {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19)
		try(unix.Setpriority(unix.PRIO_PROCESS, 0, -20), "raised its priority")
		var all unix.CPUSet
		for i := range 64 {
			all.Set(i)
		}
		_ = unix.SchedSetaffinity(0, &all)
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for until := time.Now().Add(time.Second); time.Now().Before(until); {
				}
			})
		}
		wait.Wait()
	}},
	"signalled": {do: func() { _ = unix.Kill(os.Getpid(), unix.SIGKILL); rest(time.Second) }, signal: syscall.SIGKILL},
	"fails":     {do: func() { os.Exit(7) }, exit: 7},
	"escapes": {do: func() { // all that is known to get away from who watches
		_ = self("fork-away", &syscall.SysProcAttr{Setsid: true}).Run()
	}},
	"spies": {do: func() {
		rest(500 * time.Millisecond)
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range all {
			b, err := os.ReadFile(path)
			if err == nil && os.Getenv("HOSTILE_SPACE") != "" && !strings.Contains(string(b), "spies") && len(b) > 0 && !strings.Contains(string(b), "pid_ns_init") {
				bad("sees %q", b)
			}
		}
	}},
}

// parts are programs that those start.
var parts = map[string]func(){
	"bomblet":    bomblet,
	"leaf":       func() { rest(life) },
	"taker":      func() { rest(500 * time.Millisecond); touch(make([]byte, 60<<20)) },
	"fork-again": func() { _ = self("bomblet", &syscall.SysProcAttr{Setsid: true}).Start() },
	"fork-away": func() {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
		_ = self("leaf", &syscall.SysProcAttr{Setsid: true}).Start()
	},
	"racer": func() { // swaps a directory and a link to what must stay
		target := os.Getenv("HOSTILE_TARGET")
		if _, err := os.Stat(target + "/precious"); err != nil {
			os.Exit(98)
		}
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
			_ = os.Rename("swap/a", "swap/z")
			_ = os.Symlink(target, "swap/a")
			_ = os.Remove("swap/a")
			_ = os.Rename("swap/z", "swap/a")
			_ = os.MkdirAll("swap/a/b/c", 0o777)
		}
	},
	"mounter": func() {
		here, _ := os.Getwd()
		if unix.Mount("tmpfs", here, "tmpfs", 0, "") == nil {
			_ = unix.Mount("/", filepath.Dir(here), "", unix.MS_BIND|unix.MS_REC, "")
		}
		rest(life)
	},
	"victim": behaves, "victim-last": behaves,
}

// behaves is a job: all it has is there in the end, and it was left alone.
func behaves() {
	group, _ := os.ReadFile("/proc/self/cgroup")
	if err := os.WriteFile("secret", []byte("of the victim"), 0o600); err != nil {
		bad("%v", err)
	}
	for range 60 {
		rest(100 * time.Millisecond)
	}
	if list, err := os.ReadDir("."); err != nil || slices.ContainsFunc(list, func(e os.DirEntry) bool { return e.Name() == "spoilt" }) {
		bad("the victim's directory was written to: %v", err)
	}
	if b, err := os.ReadFile("secret"); err != nil || string(b) != "of the victim" {
		bad("the victim's file is %q, %v", b, err)
	}
	if now, err := os.ReadFile("/proc/self/cgroup"); err != nil || string(now) != string(group) {
		bad("the victim was moved to %s, %v", now, err)
	}
	touch(make([]byte, 32<<20)) // which it has asked for
	fmt.Println("the victim is well")
}
