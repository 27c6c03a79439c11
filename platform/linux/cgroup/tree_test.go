// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
)

// fakeRoot is a directory that looks like /sys/fs/cgroup: files by path, and
// links where the text begins with "-> ".
func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Which hierarchies are taken, on machines as they are set up.
//
// row: S0-068
func TestOpenFindsHierarchies(t *testing.T) {
	t.Parallel()
	joined := map[string]string{
		"memory/tasks": "", "freezer/tasks": "", "cpu,cpuacct/tasks": "", "cpu": "-> cpu,cpuacct", "cpuacct": "-> cpu,cpuacct",
		"devices/tasks": "", "pids/tasks": "",
	}
	apart := map[string]string{"memory/tasks": "", "freezer/tasks": "", "cpu/tasks": "", "cpuacct/tasks": "", "unified/cgroup.procs": ""}
	pure := map[string]string{"cgroup.controllers": "cpu memory", "cgroup.procs": ""}
	for _, c := range []struct {
		name    string
		files   map[string]string
		opts    Options
		version int
		dirs    []string
		kind    errs.Kind
	}{
		{"joined", joined, Options{Base: "htcondor"}, 1, []string{"memory/htcondor", "cpu,cpuacct/htcondor", "freezer/htcondor"}, 0},
		{"apart", apart, Options{Base: "htcondor"}, 1, []string{"memory/htcondor", "cpu/htcondor", "cpuacct/htcondor", "freezer/htcondor"}, 0},
		{"hybrid, version 2 asked for", apart, Options{Base: "htcondor", Version: 2}, 2, []string{"unified/htcondor"}, 0},
		{"version 2", pure, Options{Base: "htcondor"}, 2, []string{"htcondor"}, 0},
		{"two levels", pure, Options{Base: "deep/htcondor"}, 2, []string{"deep/htcondor"}, 0},
		{"delegated", pure, Options{Base: "jobs", Delegated: true, Self: []byte("0::/user.slice/me\n")}, 2, []string{"user.slice/me/jobs"}, 0},
		{"no freezer", map[string]string{"memory/tasks": "", "cpu/tasks": ""}, Options{Base: "htcondor"}, 0, nil, errs.Unsupported},
		{"nothing", nil, Options{Base: "htcondor"}, 0, nil, errs.Unsupported},
		{"turned off", pure, Options{Base: ""}, 0, nil, errs.Unsupported},
		{"leads out", pure, Options{Base: "../x"}, 0, nil, errs.Invalid},
		{"version 1 on a pure machine", pure, Options{Base: "x", Version: 1}, 0, nil, errs.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.opts.Root = fakeRoot(t, c.files)
			tree, err := Open(c.opts)
			if err != nil {
				if errs.KindOf(err) != c.kind || c.kind == 0 {
					t.Fatalf("%v", err)
				}
				return
			}
			var dirs []string
			for _, h := range tree.parts {
				if h.optional() {
					if exists(h.base, "") {
						t.Errorf("%s is there before a job needs it", h.base)
					}
					continue
				}
				rel, err := filepath.Rel(c.opts.Root, h.base)
				if err != nil {
					t.Fatal(err)
				}
				dirs = append(dirs, rel)
				if info, err := os.Stat(h.base); err != nil || !info.IsDir() {
					t.Errorf("%s was not made: %v", h.base, err)
				}
			}
			if diff := cmp.Diff(c.dirs, dirs); diff != "" || tree.Version() != c.version {
				t.Errorf("version %d, want %d\n%s", tree.Version(), c.version, diff)
			}
		})
	}
}

func TestCreateRefusesNames(t *testing.T) {
	t.Parallel()
	tree, err := Open(Options{Root: fakeRoot(t, map[string]string{"cgroup.controllers": ""}), Base: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "a/b", "a\x00b", strings.Repeat("n", 256)} {
		if _, err := tree.Create(name); !errs.Is(err, errs.Invalid) {
			t.Errorf("Create(%q): %v", name, err)
		}
		if _, ok := tree.Lookup(name); ok {
			t.Errorf("Lookup(%q) found something", name)
		}
	}
}

// The rest is against the kernel of this machine, each with every version it
// has.
func eachVersion(t *testing.T, test func(t *testing.T, tree *Tree)) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("version=%d", version), func(t *testing.T) {
			own, err := os.ReadFile("/proc/self/cgroup")
			if err != nil {
				t.Skipf("needs a Linux procfs: %v", err)
			}
			tree, err := Open(Options{Root: "/sys/fs/cgroup", Base: "execpoint-test-cgroup", Self: own, Version: version})
			if err != nil {
				t.Skipf("needs control groups that can be written: %v", err)
			}
			t.Cleanup(tree.RemoveBase)
			test(t, tree)
		})
	}
}

// born starts a process in the group and kills it at the end of the test.
func born(t *testing.T, g *Group, argv ...string) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := &syscall.ProcAttr{Env: []string{"PATH=/bin:/usr/bin"}, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
	if g.Version() == 2 {
		dir, err := g.OpenDir()
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
	} else if err := g.Enter(); err != nil {
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if g.Version() == 1 {
		if err := g.Leave(); err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func reap(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
		t.Fatal(err)
	}
	return ws
}

func TestLifeOfAGroup(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		name := "_execute_slot1@" + strconv.Itoa(os.Getpid())
		g, err := tree.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Apply(of(300, false)); err != nil && tree.Version() == 1 {
			t.Error(err)
		}
		pid := born(t, g, "/bin/sh", "-c", "while :; do :; done")
		if pids, err := g.Procs(); err != nil || !cmp.Equal(pids, []int{pid}) {
			t.Errorf("the group holds %v (%v), want %d alone", pids, err, pid)
		}
		own, err := os.ReadFile("/proc/thread-self/cgroup")
		if err != nil || strings.Contains(string(own), "execpoint-test-cgroup") {
			t.Errorf("this thread is still in the group: %s", own)
		}
		if _, err := tree.Create(name); !errs.Is(err, errs.Conflict) {
			t.Errorf("making a group anew that holds a process: %v", err)
		}
		if still, err := g.Freeze(); !still || err != nil {
			t.Errorf("Freeze: %v, %v", still, err)
		}
		if n, err := g.Kill(); n != 1 || err != nil { // a frozen process dies too
			t.Errorf("Kill: %d, %v", n, err)
		}
		if ws := reap(t, pid); ws.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", ws)
		}
		if u, err := g.Usage(); err != nil || !u.CPU || u.Total <= 0 || u.OOMKills != 0 {
			t.Errorf("usage %+v, %v", u, err)
		}
		if n, err := g.Kill(); n != 0 || err != nil {
			t.Errorf("Kill of nobody: %d, %v", n, err)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
		if _, ok := tree.Lookup(name); ok {
			t.Error("the group is still there")
		}
		if err := g.Remove(); err != nil {
			t.Errorf("removing it again: %v", err)
		}
	})
}

// A job that makes groups below its own and hides in them is found and
// removed with them.
func TestSubgroups(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		name := "sub@" + strconv.Itoa(os.Getpid())
		g, err := tree.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		pid := born(t, g, "/bin/sleep", "600")
		for _, p := range g.parts {
			sub := filepath.Join(p.dir, "deep/er")
			if err := os.MkdirAll(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := writeFile(filepath.Join(sub, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := g.Kill(); n != 1 || err != nil {
			t.Errorf("Kill: %d, %v", n, err)
		}
		reap(t, pid)
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
		if exists(g.parts[0].dir, "") {
			t.Error("the group is still there")
		}
	})
}

// An out-of-memory kill is counted by the group itself.
func TestOOMIsCounted(t *testing.T) {
	eachVersion(t, func(t *testing.T, tree *Tree) {
		g, err := tree.Create("oom@" + strconv.Itoa(os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Remove()
		dir, file := g.Dir("memory"), "memory.limit_in_bytes"
		if tree.Version() == 2 {
			file = "memory.max"
		}
		if dir == "" || !exists(dir, file) {
			t.Skipf("needs a memory controller for version %d", tree.Version())
		}
		if err := writeFile(filepath.Join(dir, file), "33554432"); err != nil {
			t.Fatal(err)
		}
		_ = writeFile(filepath.Join(dir, "memory.memsw.limit_in_bytes"), "33554432") // where swap is counted
		pid := born(t, g, "/bin/sh", "-c", "exec dd if=/dev/zero of=/dev/null bs=100M count=1 2>/dev/null")
		if ws := reap(t, pid); ws.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v, want to be killed", ws)
		}
		u, err := g.Usage()
		if err != nil || !u.Memory || u.OOMKills < 1 || u.Peak < 16<<20 || u.Peak > 40<<20 {
			t.Errorf("usage %+v, %v", u, err)
		}
		if u.Over.Hits < 1 || u.Over.Limit != 32<<20 {
			t.Errorf("it came to its own limit, and is said to have come %d times to %d bytes", u.Over.Hits, u.Over.Limit)
		}
	})
}

func BenchmarkGroup(b *testing.B) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		b.Skipf("needs a Linux procfs: %v", err)
	}
	for version := 1; version <= 2; version++ {
		b.Run(fmt.Sprintf("version=%d", version), func(b *testing.B) {
			tree, err := Open(Options{Root: "/sys/fs/cgroup", Base: "execpoint-bench-cgroup", Self: own, Version: version})
			if err != nil {
				b.Skipf("needs control groups that can be written: %v", err)
			}
			defer tree.RemoveBase()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			b.ReportAllocs()
			for b.Loop() {
				g, err := tree.Create("bench")
				if err != nil {
					b.Fatal(err)
				}
				if version == 1 {
					if err := g.Enter(); err != nil {
						b.Fatal(err)
					}
					if err := g.Leave(); err != nil {
						b.Fatal(err)
					}
				}
				if err := g.Remove(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestApply has limits that can be written, that this machine does not have, and
// that fail.
func TestApply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := &Group{version: 2, parts: []part{{dir: dir}}}
	limits := of(300, true)
	if err := g.Apply(limits); err != nil {
		t.Errorf("without the controllers: %v", err)
	}
	weight := filepath.Join(dir, "cpu.weight")
	if err := os.WriteFile(weight, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(limits); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(weight); err != nil || string(b) != "300" {
		t.Errorf("cpu.weight is %q, %v", b, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "memory.oom.group"), 0o755); err != nil { // which cannot be written
		t.Fatal(err)
	}
	if err := g.Apply(limits); !errs.Is(err, errs.Broken) || !strings.Contains(err.Error(), "memory.oom.group") {
		t.Errorf("a limit that fails: %v", err)
	}
	if err := (&Group{version: 2, parts: []part{{dir: filepath.Join(dir, "gone")}}}).Apply(limits); !errs.Is(err, errs.Broken) {
		t.Errorf("a group that is gone: %v", err)
	}
	if err := (&Group{version: 1, parts: []part{{dir: dir, hierarchy: hierarchy{controllers: []string{"freezer"}}}}}).Apply(limits); err != nil {
		t.Errorf("version 1 without cpu: %v", err)
	}
}
