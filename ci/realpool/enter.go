// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/execpoint/execpoint/ci/source"
)

// Where directories of this machine are seen inside.
const (
	checkoutInside = "/src"
	goInside       = "/usr/local/go"
	goCacheInside  = "/go/cache"
	goModInside    = "/go/mod"
	ownInside      = "/usr/local/sbin" // the programs of ours
	poolInside     = "/srv/pool"       // a personal pool's files
)

// hostInside is the name of the machine inside. It has an address that is not
// loopback, as HTCondor's tools expect of a name.
const hostInside = "node.execpoint.test"

// order is what the first process of the namespaces is told.
type order struct {
	Run      string   // directory of the run, on this machine
	Root     string   // the root directory
	Writable []string // directories inside that this run gets copies of
	Binds    []bind
	Own      []string          // directories inside that are given to tester
	Files    map[string]string // content of files inside, for this run
	Host     string            // empty: the network and the name of this machine
	Control  bool              // listen at Run/control
	User     string
	Dir      string
	Env      []string
	Command  []string
	Stop     syscall.Signal // what asks the command to end
}

// writable are the directories that programs may write, and nothing of it
// stays. The others are read-only.
func writable() []string {
	return []string{"/etc/condor", "/home", "/mnt", "/root", "/run", "/srv", "/tmp", "/var/lib/condor", "/var/log", "/var/spool", "/var/tmp"}
}

// newOrder is an order with what every run has.
func newOrder(run, root, user, command0 string, more ...string) order {
	home := "/home/" + user
	if user == "root" {
		home = "/root"
	}
	env := []string{
		"HOME=" + home, "USER=" + user, "LOGNAME=" + user, "LANG=C.UTF-8",
		"PATH=" + goInside + "/bin:" + ownInside + ":/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	if term := os.Getenv("TERM"); term != "" {
		env = append(env, "TERM="+term)
	}
	return order{
		Run: run, Root: root, Writable: writable(), Host: hostInside, User: user, Dir: home, Env: env,
		Command: append([]string{command0}, more...), Stop: syscall.SIGTERM,
		Files: map[string]string{
			"/etc/hosts":    "127.0.0.1 localhost\n" + addressInside + " " + hostInside + " " + shortName(hostInside) + "\n",
			"/etc/hostname": shortName(hostInside) + "\n",
		},
	}
}

func shortName(host string) string { name, _, _ := strings.Cut(host, "."); return name }

// goOrder adds the checkout, and Go with its caches, if this machine has it.
func goOrder(o *order) error {
	root, err := source.Root()
	if err != nil {
		return err
	}
	o.Binds = append(o.Binds, bind{root, checkoutInside})
	o.Dir = checkoutInside
	if here, err := os.Getwd(); err == nil && within(root, here) {
		rel, _ := filepath.Rel(root, here)
		o.Dir = filepath.Join(checkoutInside, rel)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return nil
	}
	// Inside there may be no network, so the modules must be there.
	if out, err := exec.Command("go", "mod", "download").CombinedOutput(); err != nil {
		return fmt.Errorf("realpool: go mod download: %w\n%s", err, out)
	}
	out, err := exec.Command("go", "env", "-json", "GOROOT", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("realpool: go env: %w", err)
	}
	var env struct{ GOROOT, GOCACHE, GOMODCACHE string }
	if err := json.Unmarshal(out, &env); err != nil {
		return fmt.Errorf("realpool: go env: %w", err)
	}
	for _, b := range []bind{{env.GOROOT, goInside}, {env.GOCACHE, goCacheInside}, {env.GOMODCACHE, goModInside}} {
		if err := os.MkdirAll(b.Source, 0o755); err != nil {
			return err
		}
		o.Binds = append(o.Binds, b)
	}
	cache := goCacheInside
	if o.User != "root" { // cannot write the cache of root
		cache = "/tmp/go-cache"
	}
	o.Env = append(o.Env, "GOCACHE="+cache, "GOMODCACHE="+goModInside, "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "EXECPOINT_") || strings.HasPrefix(v, "CI=") {
			o.Env = append(o.Env, v)
		}
	}
	return nil
}

// execute runs one command inside and returns its exit status.
func execute(s store, o options, io streams) (int, error) {
	if err := require(false); err != nil {
		return 1, err
	}
	st, err := provide(s, o, io.err)
	if err != nil {
		return 1, err
	}
	run, lock, err := s.newRun("")
	if err != nil {
		return 1, err
	}
	defer func() { _ = lock.Close() }()
	ord := newOrder(run, s.rootDir(st), o.user, o.command[0], o.command[1:]...)
	if o.hostNet {
		ord.Host = ""
		if text, err := os.ReadFile("/etc/resolv.conf"); err == nil {
			ord.Files["/etc/resolv.conf"] = string(text)
		}
		if text, err := os.ReadFile("/etc/hosts"); err == nil {
			ord.Files["/etc/hosts"] = string(text)
		}
	}
	if err := goOrder(&ord); err != nil {
		return 1, errors.Join(err, removeAll(run))
	}
	ord.Binds = append(ord.Binds, o.bind...)
	code, err := s.enter(ord, st, lock, io)
	return code, errors.Join(err, removeAll(run))
}

// enter starts the namespaces with an order, waits for their end and returns
// the exit status of the command. Both locks live as long as the first process
// of the namespaces, be this one killed or not.
func (s store) enter(o order, st stamp, lock *os.File, files streams) (int, error) {
	inUse, err := flock(s.rootDir(st)+".lock", syscall.LOCK_SH, true)
	if err != nil {
		return 1, err
	}
	defer func() { _ = inUse.Close() }()
	text, err := json.Marshal(o)
	if err != nil {
		return 1, err
	}
	name := filepath.Join(o.Run, "order.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return 1, err
	}
	program, err := self()
	if err != nil {
		return 1, err
	}
	flags := []string{"--mount", "--pid", "--fork", "--kill-child"}
	if o.Host != "" {
		flags = append(flags, "--net", "--uts")
	}
	line := unshare(os.Geteuid(), append(flags, "--", program, "inside", name)...)
	hear, tell, err := os.Pipe()
	if err != nil {
		return 1, err
	}
	defer func() { _ = tell.Close() }()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files.in, files.out, files.err
	cmd.ExtraFiles = []*os.File{hear, lock, inUse} // inside calls them 3, 4 and 5
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("realpool: %w", err)
	}
	_ = hear.Close()
	done := make(chan struct{})
	defer close(done)
	go passOn(signals, tell, done)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	default:
		return 1, fmt.Errorf("realpool: %w", err)
	}
}

// passOn writes the numbers of signals to the first process inside.
func passOn(signals <-chan os.Signal, tell io.Writer, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case sig := <-signals:
			_, _ = tell.Write([]byte{byte(sig.(syscall.Signal))})
		}
	}
}
