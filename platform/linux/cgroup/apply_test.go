// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// text reads a file of the group, "" if it is not there.
func text(g *Group, controller, file string) string {
	b, err := os.ReadFile(filepath.Join(g.Dir(controller), file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// needs skips the test if the group is not under controller.
func needs(t *testing.T, g *Group, controller string) {
	t.Helper()
	if !g.Has(controller) {
		t.Skipf("needs the controller %s in version %d", controller, g.Version())
	}
}

// made is a group that is gone when the test is over.
func made(t *testing.T, tree *Tree, limits Limits) *Group {
	t.Helper()
	g, err := tree.CreateFor(strings.ReplaceAll(t.Name(), "/", "_")+"@"+strconv.Itoa(os.Getpid()), limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// Limits of memory are what the kernel then says, and follow a slot that grows and
// shrinks: on version 1 none of the two may pass the other on the way.
//
// row: S0-074, S0-078, S0-080
func TestMemoryLimits(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		g := made(t, tree, Limits{})
		needs(t, g, "memory")
		for _, mib := range []int64{64, 256, 32} {
			hard, first, none := mib<<20, mib<<20*9/10, int64(0)
			l := Limits{GroupLimits: host.GroupLimits{Memory: host.MemoryLimits{Hard: &hard, First: &first, Swap: &none}}}
			if err := g.Apply(l); err != nil {
				t.Fatal(err)
			}
			want, got := fmt.Sprint(hard), ""
			if g.Version() == 2 {
				if text(g, "", "memory.swap.max") != "" {
					want += " 0"
				}
				got = strings.TrimSpace(text(g, "", "memory.max") + " " + text(g, "", "memory.swap.max"))
			} else {
				if text(g, "memory", "memory.memsw.limit_in_bytes") != "" {
					want += " " + fmt.Sprint(hard)
				}
				got = strings.TrimSpace(text(g, "memory", "memory.limit_in_bytes") + " " + text(g, "memory", "memory.memsw.limit_in_bytes"))
				if soft := text(g, "memory", "memory.soft_limit_in_bytes"); soft != fmt.Sprint(first/4096*4096) {
					t.Errorf("%d MiB: the soft limit is %s, want %d", mib, soft, first)
				}
			}
			if got != want {
				t.Errorf("%d MiB: the limits are %s, want %s", mib, got, want)
			}
		}
	})
}

// A process that takes more than the limit is killed, the starter of it is not.
//
// row: S0-077
func TestMemoryIsLimited(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		g := made(t, tree, Limits{})
		needs(t, g, "memory")
		hard, none := int64(32<<20), int64(0)
		if err := g.Apply(Limits{GroupLimits: host.GroupLimits{Memory: host.MemoryLimits{Hard: &hard, Swap: &none}}, OOMTogether: true}); err != nil {
			t.Fatal(err)
		}
		// Three that are below the limit each, and above it together.
		var pids []int
		for range 3 {
			pids = append(pids, born(t, g, "/bin/sh", "-c", "exec dd if=/dev/zero of=/dev/null bs=20M count=100000 2>/dev/null"))
		}
		var ws syscall.WaitStatus
		if pid, err := syscall.Wait4(-1, &ws, 0, nil); err != nil || ws.Signal() != syscall.SIGKILL || !slices.Contains(pids, pid) {
			t.Errorf("process %d has ended first, by %v, %v", pid, ws.Signal(), err)
		}
		if u, err := g.Usage(); err != nil || u.OOMKills == 0 {
			t.Errorf("usage %+v, %v", u, err)
		}
		_, _ = g.Kill()
		for _, pid := range pids {
			_, _ = syscall.Wait4(pid, &ws, 0, nil)
		}
	})
}

// A group with cores of its own has only these, whatever its processes ask for.
func TestCPUs(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		limits := Limits{GroupLimits: host.GroupLimits{CPUs: []int{0}}}
		g := made(t, tree, limits)
		needs(t, g, "cpuset")
		if err := g.Apply(limits); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out")
		if ws := reap(t, born(t, g, "/bin/sh", "-c", "taskset -p ff $$ >/dev/null 2>&1; grep Cpus_allowed_list /proc/self/status > "+out)); ws.ExitStatus() != 0 {
			t.Fatal(ws)
		}
		if b, err := os.ReadFile(out); err != nil || !strings.HasSuffix(string(b), "\t0\n") {
			t.Errorf("it may use %q, %v", b, err)
		}
		// The next job that needs none has the group no more.
		if err := g.Remove(); err != nil {
			t.Fatal(err)
		}
		g = made(t, tree, Limits{})
		if tree.Version() == 1 && g.Has("cpuset") {
			t.Error("a job without cores of its own is under cpuset")
		}
	})
}

func TestProcesses(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		limits := Limits{GroupLimits: host.GroupLimits{Processes: 5}}
		g := made(t, tree, limits)
		needs(t, g, "pids")
		if text(g, "pids", "pids.max") == "" {
			t.Skip("this kernel has no pids.max")
		}
		if err := g.Apply(limits); err != nil {
			t.Fatal(err)
		}
		if ws := reap(t, born(t, g, "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1 & done 2>/dev/null; wait")); ws.ExitStatus() == 0 {
			t.Error("nine processes fit where five may be")
		}
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
			if n, err := g.Kill(); n == 0 && err == nil {
				break
			}
		}
	})
}

// A device that is closed cannot be opened by root itself, and others can.
func TestClosedDevices(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		limits := Limits{GroupLimits: host.GroupLimits{Closed: []host.Device{{Major: 1, Minor: 5}, {Block: true, Major: 1, Minor: 3}, {Major: 1, Minor: 7}}}}
		g := made(t, tree, limits)
		if g.Version() == 1 {
			needs(t, g, "devices")
		}
		if err := g.Apply(limits); err != nil {
			t.Fatal(err)
		}
		if lacks := g.Lacks(); len(lacks) > 0 {
			t.Skip(lacks)
		}
		out := filepath.Join(t.TempDir(), "out")
		script := "for f in zero null full random; do (: < /dev/$f) && echo $f; done 2>/dev/null >" + out
		reap(t, born(t, g, "/bin/sh", "-c", script))
		b, err := os.ReadFile(out)
		if err != nil || string(b) != "null\nrandom\n" {
			t.Errorf("it can open %q, %v", b, err)
		}
	})
}

func TestDeviceProgram(t *testing.T) {
	t.Parallel()
	program := deviceProgram([]host.Device{{Major: 195, Minor: 3}, {Block: true, Major: 8, Minor: 300}})
	for _, c := range []struct {
		kind, access, major, minor uint32
		want                       int32
	}{
		{unix.BPF_DEVCG_DEV_CHAR, unix.BPF_DEVCG_ACC_READ, 195, 3, 0},
		{unix.BPF_DEVCG_DEV_CHAR, unix.BPF_DEVCG_ACC_MKNOD | unix.BPF_DEVCG_ACC_WRITE, 195, 3, 0},
		{unix.BPF_DEVCG_DEV_BLOCK, unix.BPF_DEVCG_ACC_READ, 195, 3, 1},
		{unix.BPF_DEVCG_DEV_CHAR, unix.BPF_DEVCG_ACC_READ, 195, 4, 1},
		{unix.BPF_DEVCG_DEV_CHAR, unix.BPF_DEVCG_ACC_READ, 194, 3, 1},
		{unix.BPF_DEVCG_DEV_BLOCK, unix.BPF_DEVCG_ACC_READ, 8, 300, 0},
		{unix.BPF_DEVCG_DEV_BLOCK, unix.BPF_DEVCG_ACC_READ, 8, 44, 1},
	} {
		if got := runProgram(t, program, [3]uint32{c.access<<16 | c.kind, c.major, c.minor}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// runProgram does what the kernel does with the few operations that there are.
func runProgram(t *testing.T, p []instruction, context [3]uint32) int32 {
	t.Helper()
	var registers [11]int64
	for at := 0; at < len(p); at++ {
		i := p[at]
		to := i.regs & 15
		switch i.op {
		case opLoadWord:
			if i.regs>>4 != 1 {
				t.Fatalf("%d: what is loaded is not of the context", at)
			}
			registers[to] = int64(context[i.offset/4])
		case opSet:
			registers[to] = int64(i.number)
		case opAnd:
			registers[to] &= int64(i.number)
		case opUnlessEqual:
			if registers[to] != int64(i.number) {
				at += int(i.offset)
			}
		case opExit:
			return int32(registers[0])
		default:
			t.Fatalf("%d: operation %#x", at, i.op)
		}
	}
	t.Fatal("the program has no end")
	return 0
}

// The job's user makes groups below its own, and cannot touch the limits of that.
// Processes that hide there are found, and on version 1 one that is frozen there
// dies too.
func TestGivenToAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	eachVersion(t, func(t *testing.T, tree *Tree) {
		g := made(t, tree, Limits{})
		const nobody = 65534
		if err := g.Give(nobody, nobody); err != nil {
			t.Fatal(err)
		}
		var tries []string
		for _, p := range g.parts {
			tries = append(tries, fmt.Sprintf("mkdir %s/own || echo no group in %s", p.dir, p.dir))
			files, err := os.ReadDir(p.dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if f.IsDir() || f.Name() == "cgroup.procs" || f.Name() == "cgroup.subtree_control" || f.Name() == "cgroup.threads" || f.Name() == "cgroup.event_control" {
					continue
				}
				tries = append(tries, fmt.Sprintf("test -w %[1]s/%[2]s && echo %[1]s/%[2]s can be written; chmod 666 %[1]s/%[2]s && echo %[1]s/%[2]s can be changed", p.dir, f.Name()))
			}
		}
		cmd := exec.Command("/bin/sh", "-c", strings.Join(tries, "\n")+" 2>/dev/null; true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := cmd.Output(); err != nil || len(out) > 0 {
			t.Errorf("%v:\n%s", err, out)
		}
		if g.Version() == 2 && g.Has("memory") {
			// As a glidein: what it has is divided, and the job's processes, a visitor's
			// too, still begin beside that.
			divide := exec.Command("/bin/sh", "-ec", fmt.Sprintf("cd %s; echo +memory > cgroup.subtree_control; echo 9M > own/memory.max; cat own/memory.max", g.parts[0].dir))
			divide.SysProcAttr = cmd.SysProcAttr
			if out, err := divide.CombinedOutput(); err != nil || string(out) != "9437184\n" {
				t.Errorf("%v: %s", err, out)
			}
		}
		pid := born(t, g, "/bin/sleep", "600")
		for _, p := range g.parts {
			if err := writeFile(filepath.Join(p.dir, "own", "cgroup.procs"), strconv.Itoa(pid)); err != nil {
				t.Fatal(err)
			}
		}
		if g.Version() == 1 {
			if err := writeFile(filepath.Join(g.Dir("freezer"), "own", "freezer.state"), "FROZEN"); err != nil {
				t.Fatal(err)
			}
		}
		if pids, err := g.Procs(); err != nil || !cmp.Equal(pids, []int{pid}) {
			t.Errorf("the group holds %v, %v", pids, err)
		}
		if n, err := g.Kill(); n != 1 || err != nil {
			t.Errorf("Kill: %d, %v", n, err)
		}
		if ws := reap(t, pid); ws.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", ws)
		}
	})
}

// While processors are short each job gets its share of them: what a job with three
// cores does takes it a third of the time that another with one has meanwhile. There
// is no quota, so that alone it may use all.
//
// row: S0-081, S0-082
func TestShares(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		one := Limits{GroupLimits: host.GroupLimits{CPUWeight: 100, CPUs: []int{0}}}
		three := Limits{GroupLimits: host.GroupLimits{CPUWeight: 300, CPUs: []int{0}}}
		a, err := tree.CreateFor("a@"+strconv.Itoa(os.Getpid()), one)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Remove()
		b, err := tree.CreateFor("b@"+strconv.Itoa(os.Getpid()), three)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Remove()
		needs(t, a, "cpu")
		needs(t, a, "cpuset")
		if a.Version() == 1 && a.Dir("cpuacct") == "" {
			t.Skip("needs cpuacct, which counts")
		}
		for g, l := range map[*Group]Limits{a: one, b: three} {
			if err := g.Apply(l); err != nil {
				t.Fatal(err)
			}
			if quota := text(g, "cpu", map[int]string{1: "cpu.cfs_quota_us", 2: "cpu.max"}[g.Version()]); quota != "" && quota != "-1" && !strings.HasPrefix(quota, "max ") {
				t.Errorf("there is a quota: %s", quota)
			}
		}
		endless := born(t, a, "/bin/sh", "-c", "while :; do :; done")
		before, err := a.Usage()
		if err != nil {
			t.Fatal(err)
		}
		reap(t, born(t, b, "/bin/sh", "-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done"))
		after, err := a.Usage()
		if err != nil {
			t.Fatal(err)
		}
		other, err := b.Usage()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = a.Kill()
		reap(t, endless)
		if ratio := float64(other.Total) / float64(after.Total-before.Total); ratio < 2 || ratio > 4.5 {
			t.Errorf("the one with three cores had %.1f times as much: %v, the other %v", ratio, other.Total, after.Total-before.Total)
		}
	})
}

// A job makes groups deeper than a path may be long, on version 1, and freezes itself
// at the bottom: it is found, dies and leaves nothing.
func TestDeepGroups(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		if tree.Version() == 2 {
			t.Skip("version 2 is told how deep they may be")
		}
		g := made(t, tree, Limits{})
		pid := born(t, g, "/bin/sleep", "600")
		name := strings.Repeat("d", 200)
		for _, p := range g.parts {
			fd, err := unix.Open(p.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				t.Fatal(err)
			}
			for range 40 {
				if err := unix.Mkdirat(fd, name, 0o755); err != nil {
					t.Fatal(err)
				}
				next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
				unix.Close(fd)
				if err != nil {
					t.Fatal(err)
				}
				fd = next
			}
			for file, text := range map[string]string{"cgroup.procs": strconv.Itoa(pid), "freezer.state": "FROZEN"} {
				f, err := unix.Openat(fd, file, unix.O_WRONLY, 0)
				if err != nil {
					continue // of another controller
				}
				if _, err := unix.Write(f, []byte(text)); err != nil {
					t.Error(err)
				}
				unix.Close(f)
			}
			unix.Close(fd)
		}
		if pids, err := g.Procs(); err != nil || !cmp.Equal(pids, []int{pid}) {
			t.Errorf("the group holds %v, %v", pids, err)
		}
		if n, err := g.Kill(); n != 1 || err != nil {
			t.Errorf("Kill: %d, %v", n, err)
		}
		if ws := reap(t, pid); ws.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", ws)
		}
	})
}
