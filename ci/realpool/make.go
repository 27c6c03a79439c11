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
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// tester is the ordinary user of every root directory: uid 1000, with a shell
// and a home.
const tester = "tester"

// packages are those of every root directory. The ssh programs are for
// condor_ssh_to_job; nothing is started when they are installed.
func packages(include string) []string {
	all := []string{"condor", "iproute2", "mount", "openssh-client", "openssh-server", "procps"}
	for name := range strings.SplitSeq(include, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mountPoints are directories that Debian's packages do not have and on which
// directories of this machine are seen.
func mountPoints() []string {
	return []string{checkoutInside, goInside, goCacheInside, goModInside, ownInside}
}

// building is the order for the process that makes a root directory.
type building struct {
	Dir      string
	Suite    string
	Mirror   string
	Packages []string
	Log      string // file for what mmdebstrap prints
}

// provide finds the root directory for the options, or makes it.
func provide(s store, o options, stderr io.Writer) (stamp, error) {
	r, insists, err := choose(o.htcondor)
	if err != nil {
		return stamp{}, err
	}
	want := packages(o.include)
	var st stamp
	err = s.exclusive(func() error {
		found, ok, err := s.find(r.suite, want, insists)
		if err != nil {
			return err
		}
		if ok && time.Since(found.Made) < o.maxAge {
			st = found
			return nil
		}
		made, err := s.make(o, r.suite, want, stderr)
		if err != nil && ok {
			fmt.Fprintf(stderr, "realpool: the root directory of %s cannot be made anew, that of %s goes on serving: %v\n", r.suite, found.Made.Format(time.DateOnly), err)
			st = found
			return nil
		}
		if err != nil {
			return err
		}
		st = made
		return s.forget(made, o.maxAge)
	})
	if err == nil && !isVersion(st.HTCondor, insists) {
		err = fmt.Errorf("realpool: Debian's %s has HTCondor %s now, not %s; say -htcondor %s for that, or name a mirror that still has the other by -mirror", r.suite, st.HTCondor, insists, r.suite)
	}
	return st, err
}

// make makes a root directory. It is called with the store locked.
func (s store) make(o options, suite string, want []string, stderr io.Writer) (stamp, error) {
	if err := require(true); err != nil {
		return stamp{}, err
	}
	begin := time.Now()
	fmt.Fprintf(stderr, "realpool: making a root directory of Debian %s with HTCondor in %s (about half a minute)\n", suite, filepath.Join(s.dir, "roots"))
	b := building{Dir: filepath.Join(s.dir, "roots", "."+suite), Suite: suite, Mirror: o.mirror, Packages: want, Log: filepath.Join(s.dir, "make-"+suite+".log")}
	if err := removeAll(b.Dir); err != nil {
		return stamp{}, err
	}
	order, err := json.Marshal(b)
	if err != nil {
		return stamp{}, err
	}
	program, err := self()
	if err != nil {
		return stamp{}, err
	}
	line := unshare(os.Geteuid(), "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", program, "build", string(order))
	cmd := exec.Command(line[0], line[1:]...)
	// Killed with this process: half a root directory is of no use.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		text, _ := os.ReadFile(b.Log)
		return stamp{}, errors.Join(fmt.Errorf("realpool: no root directory of %s: %w: %s\n%s", suite, err, strings.TrimSpace(string(out)), last(string(text), 15)), removeAll(b.Dir))
	}
	st := stamp{Suite: suite, HTCondor: strings.TrimSpace(string(out)), Packages: want, Made: time.Now().UTC().Truncate(time.Second)}
	st.name = fmt.Sprintf("%s-%s-%s", suite, st.HTCondor, st.Made.Format("20060102-150405"))
	text, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return stamp{}, err
	}
	if err := os.Rename(b.Dir, s.rootDir(st)); err != nil {
		return stamp{}, err
	}
	// The stamp comes last: it says that the directory is complete.
	if err := os.WriteFile(s.rootDir(st)+".json", append(text, '\n'), 0o600); err != nil {
		return stamp{}, err
	}
	fmt.Fprintf(stderr, "realpool: HTCondor %s of Debian %s is there (%d s)\n", st.HTCondor, suite, int(time.Since(begin).Seconds()))
	return st, nil
}

// build is what the process in the namespaces does. It prints HTCondor's
// version.
func build(stdout io.Writer, order string) error {
	var b building
	if err := json.Unmarshal([]byte(order), &b); err != nil {
		return err
	}
	log, err := os.Create(b.Log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	// A suite that has gone on has packages whose lists are out of date by its own
	// word; sid's are so now and then.
	args := []string{"--mode=root", "--variant=apt", "--aptopt=Acquire::Check-Valid-Until \"false\"", "--aptopt=Acquire::Retries \"3\"",
		"--include=" + strings.Join(b.Packages, ","), b.Suite, b.Dir}
	if b.Mirror != "" {
		args = append(args, b.Mirror)
	}
	if err := logged(log, exec.Command("mmdebstrap", args...)); err != nil {
		return err
	}
	for _, dir := range mountPoints() {
		if err := os.MkdirAll(filepath.Join(b.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	for _, file := range []string{"etc/hosts", "etc/hostname", "etc/resolv.conf"} { // files of a run are mounted on them
		if err := touch(filepath.Join(b.Dir, file)); err != nil {
			return err
		}
	}
	for _, line := range [][]string{{"useradd", "--create-home", "--uid", "1000", "--shell", "/bin/bash", tester}, {"apt-get", "clean"}} {
		if err := logged(log, chrooted(b.Dir, line...)); err != nil {
			return err
		}
	}
	out, err := chrooted(b.Dir, "condor_version").Output()
	if err != nil {
		return fmt.Errorf("condor_version: %w", err)
	}
	version, err := parseVersion(string(out))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, version)
	return err
}

func chrooted(dir string, line ...string) *exec.Cmd {
	cmd := exec.Command("/usr/bin/env", append([]string{"-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, line...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir}
	return cmd
}

func logged(log *os.File, cmd *exec.Cmd) error {
	fmt.Fprintln(log, strings.Join(cmd.Args, " "))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	return nil
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
