// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is the jobs of the recording that are more than a script: its name
// says which one. probe.py prints what a job sees, as JSON; trap.py notes signals,
// hog.py takes memory, left.py leaves processes behind.
package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	switch name := filepath.Base(os.Args[0]); {
	case strings.HasPrefix(name, "probe"):
		probe()
	case strings.HasPrefix(name, "trap"):
		trap()
	case strings.HasPrefix(name, "hog"):
		hog()
	case strings.HasPrefix(name, "left"):
		left()
	case strings.HasPrefix(name, "xl_"):
		stay(name)
	}
}

// release waits until the test has looked at the job.
func release(limit time.Duration) {
	_ = os.WriteFile("ready", nil, 0o644)
	for until := time.Now().Add(limit); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat("release"); err == nil {
			return
		}
	}
}

func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// limits are those that are told, by their numbers on Linux.
var limits = map[string]int{"CPU": 0, "FSIZE": 1, "DATA": 2, "STACK": 3, "CORE": 4, "RSS": 5, "AS": 9}

func probe() {
	seen := map[string]any{"pid": os.Getpid(), "ppid": os.Getppid()}
	groups, _ := os.Getgroups()
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	seen["groups"], seen["umask"] = groups, fmt.Sprintf("%04o", mask)
	told := map[string][2]int64{}
	for name, number := range limits {
		var l syscall.Rlimit
		_ = syscall.Getrlimit(number, &l)
		told[name] = [2]int64{int64(l.Cur), int64(l.Max)}
	}
	seen["limits"] = told
	nice, _ := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	seen["nice"] = 20 - nice
	seen["cwd"], _ = os.Getwd()
	seen["argv"], seen["env"] = os.Args, os.Environ()
	seen["status"], seen["mounts"] = read("/proc/self/status"), read("/proc/self/mountinfo")
	seen["cgroup"], seen["oom_score_adj"] = read("/proc/self/cgroup"), strings.TrimSpace(read("/proc/self/oom_score_adj"))
	sid, _, _ := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
	seen["session"] = map[string]bool{"is_session_leader": int(sid) == os.Getpid(), "is_group_leader": syscall.Getpgrp() == os.Getpid()}
	links := map[string]string{}
	for _, name := range []string{"mnt", "pid", "net", "ipc", "uts", "user", "cgroup"} {
		links[name], _ = os.Readlink("/proc/self/ns/" + name)
	}
	seen["ns"] = links
	fds := map[string]string{}
	list, _ := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		// Go's runtime has descriptors of its own.
		if to != "" && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/") && !strings.HasPrefix(to, "anon_inode:") {
			fds[e.Name()] = to
		}
	}
	seen["fds"] = fds
	var tree []string
	_ = filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			tree = append(tree, said(path))
		}
		return nil
	})
	seen["scratch"] = append(tree, said(".."))
	dirs := map[string]string{}
	for _, path := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		dirs[path] = said(path)
	}
	seen["dirs"] = dirs
	var names []string
	all, _ := net.Interfaces()
	for _, i := range all {
		names = append(names, i.Name)
	}
	seen["if"] = names
	b, _ := json.Marshal(seen)
	fmt.Println(string(b))
	fmt.Fprintln(os.Stderr, "probe stderr")
	wait, status := 8, 0
	for _, arg := range os.Args[1:] {
		if n, ok := strings.CutPrefix(arg, "wait="); ok {
			wait, _ = strconv.Atoi(n)
		}
		if n, ok := strings.CutPrefix(arg, "exit="); ok {
			status, _ = strconv.Atoi(n)
		}
	}
	release(time.Duration(wait) * time.Second)
	os.Exit(status)
}

// said is a file with its mode and owners.
func said(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return path + " " + err.Error()
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%s %o %d %d", path, st.Mode&0o7777, st.Uid, st.Gid)
}

func trap() {
	begin := time.Now()
	files := []*os.File{os.Stdout}
	for _, path := range []string{"trace", os.Getenv("TRACE")} {
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
			files = append(files, f)
		}
	}
	note := func(format string, args ...any) {
		for _, f := range files {
			_, _ = fmt.Fprintf(f, "%.1f %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
		}
	}
	got := make(chan os.Signal, 9)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	note("start")
	_ = os.WriteFile("ready", nil, 0o644)
	tick := time.NewTicker(100 * time.Millisecond)
	for last := time.Now(); time.Since(begin).Seconds() < seconds; last = time.Now() {
		select {
		case <-tick.C:
			if gap := time.Since(last); gap > 2*time.Second && len(got) == 0 {
				note("gap %.0f", gap.Seconds())
			}
		case sig := <-got:
			note("signal %d", sig.(syscall.Signal))
			if len(os.Args) < 3 {
				time.Sleep(time.Second)
				note("bye")
				return
			}
		}
		if _, err := os.Stat("release"); err == nil {
			break
		}
	}
	note("end")
}

func hog() {
	var n [4]float64
	for i := range n {
		n[i], _ = strconv.ParseFloat(os.Args[i+1], 64)
	}
	var kept [][]byte
	for have := 0.0; have < n[0]; have += n[1] {
		b, err := syscall.Mmap(-1, 0, int(n[1])<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			fmt.Fprintln(os.Stderr, "no memory:", err)
			os.Exit(1)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
		time.Sleep(time.Duration(n[2] * float64(time.Second)))
	}
	fmt.Printf("have %.0f\n", n[0])
	if len(os.Args) > 5 {
		_ = os.WriteFile("ready", nil, 0o644)
		for until := time.Now().Add(time.Duration(n[3] * float64(time.Second))); time.Now().Before(until); {
		}
		return
	}
	release(time.Duration(n[3] * float64(time.Second)))
	_ = kept
}

func left() {
	here, _ := os.Getwd()
	lay := func(name string, sid bool) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", here)
		cmd.Args[0] = name
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: sid}
		if os.Args[1] == "clearenv" {
			cmd.Env = []string{}
		}
		_ = cmd.Start()
		return cmd
	}
	lay("xl_plain", false)
	lay("xl_setsid", true)
	lay("xl_ignore", false)
	_ = lay("xl_parent", true).Wait()
	if os.Args[1] == "subcg" {
		lay("xl_subcg", false)
	}
	time.Sleep(300 * time.Millisecond)
	release(8 * time.Second)
	fmt.Println("parent exits")
}

// stay is one of the processes that are left.
func stay(name string) {
	switch name {
	case "xl_parent":
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Args[0], cmd.Env, cmd.SysProcAttr = "xl_double", os.Environ(), &syscall.SysProcAttr{Setsid: true}
		_ = cmd.Start()
		return
	case "xl_subcg":
		for line := range strings.Lines(read("/proc/self/cgroup")) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(f) == 3 && f[2] != "/" {
				dir := filepath.Join("/sys/fs/cgroup", f[1], f[2], "sub")
				if os.Mkdir(dir, 0o755) == nil {
					_ = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
				}
			}
		}
	}
	if name == "xl_ignore" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	}
	time.Sleep(time.Hour)
}
