// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownGroup is the directory of the job's group that has its limits: of the controller on
// version 1, and the one above the group with its processes on version 2.
func ownGroup(controller string) string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && strings.Contains(f[2], "execute") {
			switch {
			case f[1] == "":
				return "/sys/fs/cgroup" + filepath.Dir(f[2])
			case controller != "" && strings.Contains(","+f[1]+",", ","+controller+","):
				return "/sys/fs/cgroup/" + f[1] + f[2]
			}
		}
	}
	bad("has no group, so that nothing is proven: %s", text)
	os.Exit(1)
	return ""
}

// ownScope is the group below it that the job's processes begin in.
func ownScope() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	return "/sys/fs/cgroup" + strings.TrimPrefix(strings.TrimSpace(string(text)), "0::")
}

// order writes to a file of a group that is there.
func order(word string, path ...string) error {
	f, err := os.OpenFile(filepath.Join(path...), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(word)
	return errors.Join(err, f.Close())
}

// sure ends a program that could not do what it is about, for then it proves nothing.
func sure(err error) {
	if err != nil {
		bad("nothing is proven: %v", err)
		os.Exit(1)
	}
}

// moved makes a group below dir and moves this process there.
func moved(dir, name string) string {
	sub := filepath.Join(dir, name)
	sure(os.MkdirAll(sub, 0o755))
	sure(order(strconv.Itoa(os.Getpid()), sub, "cgroup.procs"))
	return sub
}

// started starts another of this program, in sessions of its own and without a trace of
// whose it is, in a group.
func started(name, group string) *os.Process {
	cmd := self(name, &syscall.SysProcAttr{Setsid: true})
	sure(cmd.Start())
	if group != "" {
		sure(order(strconv.Itoa(cmd.Process.Pid), group, "cgroup.procs"))
	}
	return cmd.Process
}

// others are files of groups that are not the job's: above it, beside it, and those of the
// Execution Point itself.
func others(own, file string) []string {
	var all []string
	for dir := filepath.Dir(own); strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = filepath.Dir(dir) {
		for _, pattern := range []string{"", "*", "*/*.scope"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern, file))
			for _, path := range found {
				if !strings.HasPrefix(path, own+"/") {
					all = append(all, path)
				}
			}
		}
	}
	if len(all) == 0 {
		bad("no other group has %s, so that nothing is proven", file)
	}
	return all
}

// rootOwned are those of the paths that are not this user's: what other jobs of the same user
// have is not kept from it, nor are their processes.
func rootOwned(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool {
		var st unix.Stat_t
		return unix.Stat(path, &st) != nil || st.Uid == uint32(os.Getuid())
	})
}

// ofGroups are programs about control groups, most of them about what version 2 lets the
// user of a group do, and others that need namespaces.
var ofGroups = map[string]program{
	// It is counted in the groups that the job makes, and limited all the same.
	"memory-below": {do: func() {
		own := ownGroup("memory")
		moved(own, "sub")
		if order("+memory", own, "cgroup.subtree_control") == nil {
			_ = order("max", own, "sub", "memory.max")
		}
		touch(make([]byte, much))
	}, grouped: true, over: 34, killed: own},
	// Its file can be executed at one moment and not at the next.
	"flips": {do: func() {
		for until := time.Now().Add(8 * time.Second); time.Now().Before(until); {
			for _, mode := range []os.FileMode{0, 0o755} {
				_ = os.Chmod(filepath.Join(os.Getenv("HOSTILE_OPEN"), "program"), mode)
			}
		}
	}, grouped: true, rank: -2},
	"flipped-1": flipped, "flipped-2": flipped, "flipped-3": flipped, "flipped-4": flipped, "flipped-5": flipped, "flipped-6": flipped,
	"group-raises": {do: func() {
		own := ownGroup("")
		for _, dir := range []string{own, ownScope()} {
			for _, file := range strings.Fields("memory.max memory.high memory.low memory.min memory.swap.max memory.oom.group cpu.weight cpu.max cpuset.cpus pids.max io.max " +
				"cgroup.type cgroup.max.depth cgroup.max.descendants cgroup.freeze cgroup.kill") {
				if f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0); err == nil {
					bad("may write %s/%s", dir, file)
					_ = f.Close()
				}
				try(os.Chmod(filepath.Join(dir, file), 0o666), "changed the mode of %s/%s", dir, file)
			}
		}
	}, grouped: true, only2: true},
	// It leaves for groups of others, and takes its own group apart.
	"group-leaves": {do: func() {
		own := ownGroup("")
		for _, file := range []string{"cgroup.procs", "cgroup.threads"} {
			for _, path := range others(own, file) {
				try(order(strconv.Itoa(os.Getpid()), path), "moved itself to %s", path)
			}
		}
		for _, path := range rootOwned(others(own, "cgroup.subtree_control")) {
			try(order("-memory", path), "took memory from %s", path)
		}
		scope := ownScope()
		sure(order(strconv.Itoa(os.Getpid()), own, "cgroup.procs"))
		sure(os.Remove(scope))
		started("leaf", own)
		sure(os.Mkdir(scope, 0o755))
		started("leaf", scope)
	}, grouped: true, only2: true, leaves: 2},
	"group-kills": {do: func() {
		own := ownGroup("")
		for _, file := range []string{"cgroup.kill", "cgroup.freeze", "memory.reclaim", "memory.max"} {
			for _, path := range rootOwned(others(own, file)) {
				try(order("1", path), "wrote %s", path)
			}
		}
	}, grouped: true, only2: true},
	// It stands still when it is to leave, and so does what it has started.
	"group-freezes": {do: func() {
		own := ownGroup("")
		sub := filepath.Join(own, "sub")
		sure(os.Mkdir(sub, 0o755))
		sure(os.Mkdir(sub+"/deeper", 0o755))
		started("leaf", sub+"/deeper")
		sure(order("1", sub, "cgroup.freeze"))
		moved(own, "sub") // and not a step further
		rest(life)
	}, grouped: true, only2: true, lasts: 3, over: 47},
	// What it gives to a part of it, that part comes to.
	"group-divides": {do: func() {
		own := ownGroup("")
		have, _ := os.ReadFile(filepath.Join(own, "cgroup.controllers"))
		for controller := range strings.FieldsSeq(string(have)) {
			sure(order("+"+controller, own, "cgroup.subtree_control"))
		}
		for n := range 3 {
			sub := filepath.Join(own, "sub"+strconv.Itoa(n))
			sure(os.Mkdir(sub, 0o755))
			sure(order("20M", sub, "memory.max"))
			_ = order("0", sub, "memory.swap.max")
			p := started("taker", sub)
			state, err := p.Wait()
			if sure(err); state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				bad("nothing is proven: it took more than its share, and %v", state)
			}
		}
	}, grouped: true, only2: true, killed: "a part of it came to a limit that the job itself had set"},
	"group-nested": {do: func() {
		own := ownGroup("")
		dir, depth := own, 0
		for ; os.Mkdir(filepath.Join(dir, "g"), 0o755) == nil; depth++ {
			dir = filepath.Join(dir, "g")
		}
		started("leaf", dir)
		n := 0
		for ; n < some(1200) && os.Mkdir(filepath.Join(own, "n"+strconv.Itoa(n)), 0o755) == nil; n++ {
			if n%100 == 50 {
				started("leaf", filepath.Join(own, "n"+strconv.Itoa(n)))
			}
		}
		if depth > 16 || n > 1000 {
			bad("made %d groups, and %d in one another", n, depth)
		}
		fmt.Println(depth, n)
	}, grouped: true, only2: true, multiplies: true, leaves: 4},
	// The processes of a threaded group are not listed there.
	"group-threaded": {do: func() {
		own := ownGroup("")
		for _, name := range []string{"a", "b", "c", "d"} {
			threaded := filepath.Join(own, name, "threaded")
			sure(os.MkdirAll(threaded, 0o755))
			sure(order("threaded", threaded, "cgroup.type"))
		}
		p := started("leaf", filepath.Join(own, "a"))
		sure(order(strconv.Itoa(p.Pid), own, "a", "threaded", "cgroup.threads"))
		started("leaf", "")
	}, grouped: true, only2: true, leaves: 2},
	// It has no network but its own.
	"network": {do: func() {
		all, _ := net.Interfaces()
		for _, i := range all {
			if i.Name != "lo" {
				bad("has the interface %s", i.Name)
			}
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		sure(err) // lo is up
		defer func() { _ = l.Close() }()
		c, err := net.Dial("tcp", l.Addr().String())
		sure(err)
		_ = c.Close()
		_, err = net.DialTimeout("udp", "192.0.2.1:53", time.Second)
		try(err, "has a way out")
		_, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
		try(err, "has a raw socket")
		try(unix.Sethostname([]byte("mine")), "named the machine")
	}, spaces: true},
	// It sees no process but its own.
	"numbers": {do: func() {
		all, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range all {
			if n, _ := strconv.Atoi(filepath.Base(dir)); n != 1 && n != os.Getpid() {
				bad("sees the process %d", n)
			}
		}
		if len(all) == 0 || starter() != 0 {
			bad("%d processes, the parent is %d", len(all), starter())
		}
		_ = unix.Kill(1, unix.SIGKILL) // the first of the namespace heeds nothing from within
		if _, err := os.Stat("/proc/1"); errors.Is(err, fs.ErrNotExist) {
			bad("ended the first process")
		}
	}, spaces: true},
}

// flipped is executed while another changes the mode of its file: it is limited, or does
// not run. TestProgramThatChanges of platform/linux/proc tries that more often.
var flipped = program{do: func() { ownGroup("memory") }, grouped: true, open: true, refused: true, rank: 1}
