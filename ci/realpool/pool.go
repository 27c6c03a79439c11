// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/execpoint/execpoint/ci/source"
)

// jobsInside is where a pool has its copy of examples/pool; commands in the
// pool begin there.
const jobsInside = poolInside + "/jobs"

// upLimit is how long the slots and the first job of a pool may take, each.
const upLimit = 60 * time.Second

// pool is what is written down of a pool that was started.
type pool struct {
	HTCondor string
	Suite    string
	Original bool
	Order    order
}

const poolFile = "pool.json"

// holding is the order for the process that holds a pool after up has ended.
type holding struct {
	Store string
	Stamp stamp
	Name  string // of the stamp
	Order order
}

func (s store) poolDir(o options) string { return filepath.Join(s.dir, "runs", o.name) }

// reach connects to a pool and reads what was written down of it. No pool is
// nil.
func (s store) reach(o options) (*control, pool, error) {
	dir := s.poolDir(o)
	c, err := connect(dir)
	if c == nil || err != nil {
		return nil, pool{}, err
	}
	var p pool
	text, err := os.ReadFile(filepath.Join(dir, poolFile))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		c.close()
		return nil, p, err
	}
	return c, p, nil
}

// up starts a pool, waits for its slots and runs a first job.
func up(s store, o options, io streams) error {
	begin := time.Now()
	c, p, err := s.reach(o)
	if err != nil {
		return err
	}
	if c != nil {
		c.close()
		fmt.Fprintf(io.out, "The pool %s is up already, with HTCondor %s.\n%s", o.name, p.HTCondor, howTo(s, o, p))
		return nil
	}
	if err := require(false); err != nil {
		return err
	}
	st, err := provide(s, o, io.err)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.err, "realpool: starting a pool of HTCondor %s with execpoint's startd\n", st.HTCondor)
	p, err = s.launch(o, st)
	if err != nil {
		return err
	}
	if err := s.greet(o, p, io); err != nil {
		logs := s.logs(o)
		return errors.Join(err, errors.New(logs), down(s, o, streams{out: io.err, err: io.err}))
	}
	fmt.Fprintf(io.out, "\nThe pool is up (%d s).\n%s", int(time.Since(begin).Seconds()), howTo(s, o, p))
	return nil
}

// launch prepares the directory of a pool and starts the process that holds it.
func (s store) launch(o options, st stamp) (pool, error) {
	repo, err := source.Root()
	if err != nil {
		return pool{}, err
	}
	run, lock, err := s.newRun(o.name)
	if err != nil {
		return pool{}, err
	}
	defer func() { _ = lock.Close() }()
	p, err := prepare(repo, run, s.rootDir(st), st, o.original)
	if err != nil {
		return pool{}, errors.Join(err, removeAll(run))
	}
	order, err := json.Marshal(holding{s.dir, st, st.name, p.Order})
	if err != nil {
		return pool{}, err
	}
	log, err := os.Create(filepath.Join(run, "hold.log"))
	if err != nil {
		return pool{}, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(run, "realpool"), "hold", string(order))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the terminal
	if err := cmd.Start(); err != nil {
		return pool{}, errors.Join(err, removeAll(run))
	}
	return p, cmd.Process.Release()
}

// prepare fills the directory of a pool: our programs, the configuration, the
// jobs to try and what is written down of the pool.
func prepare(repo, run, root string, st stamp, original bool) (pool, error) {
	program, err := self()
	if err != nil {
		return pool{}, err
	}
	// go run removes its program when it ends, so the pool has a copy.
	if out, err := exec.Command("cp", "--", program, filepath.Join(run, "realpool")).CombinedOutput(); err != nil {
		return pool{}, fmt.Errorf("realpool: cp: %w: %s", err, out)
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(run, "sbin")+"/", "./bin/condor_startd", "./bin/condor_starter", "./bin/condor_ep")
	build.Dir = repo
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return pool{}, fmt.Errorf("realpool: go build: %w\n%s", err, out)
	}
	dir := filepath.Join(run, "pool")
	for _, sub := range []string{"log", "spool", "execute", "execute.original", "lock", "run", "passwords.d", "tokens.d", "user-tokens.d"} {
		mode := os.FileMode(0o755)
		if strings.HasSuffix(sub, "s.d") {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Join(dir, sub), mode); err != nil {
			return pool{}, err
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "jobs"), os.DirFS(filepath.Join(repo, "examples", "pool"))); err != nil {
		return pool{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "condor_config"), []byte(poolConfig(st, original)), 0o644); err != nil {
		return pool{}, err
	}
	ord := newOrder(run, root, tester, "condor_master", "-f")
	ord.Env = append(ord.Env, "CONDOR_CONFIG="+poolInside+"/condor_config")
	ord.Binds = []bind{{filepath.Join(run, "sbin"), ownInside}, {dir, poolInside}}
	ord.Own = []string{poolInside}
	ord.Dir = jobsInside
	ord.Control = true
	ord.Stop = syscall.SIGQUIT
	p := pool{st.HTCondor, st.Suite, original, ord}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return pool{}, err
	}
	return p, os.WriteFile(filepath.Join(run, poolFile), text, 0o600)
}

// poolConfig is the root of the pool's configuration: where things are. The
// rest is in files that people can read and change.
func poolConfig(st stamp, original bool) string {
	text := "# Written by realpool up for HTCondor " + st.HTCondor + ".\n" +
		"RELEASE_DIR = /usr\nLIB = /usr/lib/condor\nLIBEXEC = /usr/libexec/condor\nLOCAL_DIR = " + poolInside + "\n" +
		"LOCAL_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\ninclude : " + jobsInside + "/pool.conf\n" +
		"STARTD = " + ownInside + "/condor_startd\nSTARTER = " + ownInside + "/condor_starter\n"
	if before(st.HTCondor, 25, 11) {
		text += "# This version's FS does not bind the proof to the connection yet.\nSEC_FS_ENFORCE_CHANNEL_BINDING = False\n"
	}
	if original {
		text += "include : " + jobsInside + "/original.conf\nORIGINAL = /usr/sbin/condor_startd\nORIGINAL.STARTER = /usr/sbin/condor_starter\n"
	}
	return text
}

// before says whether a version is older than another.
func before(version string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(version, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a < major || a == major && b < minor
}

// hold is the process that a pool hangs on. It has the pool's lock from launch.
func hold(text string) (int, error) {
	var h holding
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return 2, err
	}
	h.Stamp.name = h.Name
	lock := os.NewFile(3, "lock")
	syscall.CloseOnExec(3)
	defer func() { _ = lock.Close() }()
	code, err := store{h.Store}.enter(h.Order, h.Stamp, lock, streams{nil, os.Stdout, os.Stderr})
	if code != 0 { // it ended by itself: whoever waits for it reads why
		return code, err
	}
	return 0, errors.Join(err, removeAll(h.Order.Run))
}

// greet waits until the startds of a new pool show their slots and, if that is
// wanted, until a first job has run.
func (s store) greet(o options, p pool, io streams) error {
	want := 1
	if p.Original {
		want = 2
	}
	err := until(upLimit, func() error {
		if err := s.fellOver(o); err != nil {
			return err
		}
		out, err := s.ask(o, "condor_status", "-constraint", "PartitionableSlot", "-af", "Name")
		if err == nil && len(strings.Fields(out)) < want {
			err = fmt.Errorf("realpool: condor_status shows %q, want %d partitionable slots", strings.Fields(out), want)
		}
		return err
	})
	if err != nil || o.noJob {
		return err
	}
	fmt.Fprintln(io.err, "realpool: the slots are there; a first job is submitted: condor_submit hello.sub")
	// With two Execution Points in the pool the first job is for ours.
	if out, err := s.ask(o, "condor_submit", "-append", `requirements = EP == "execpoint"`, "hello.sub"); err != nil {
		return fmt.Errorf("realpool: condor_submit hello.sub: %w\n%s", err, out)
	}
	if out, err := s.ask(o, "condor_wait", "-wait", fmt.Sprint(int(upLimit.Seconds())), "hello.log"); err != nil {
		return fmt.Errorf("realpool: the first job has not ended within %v: %w\n%s", upLimit, err, out)
	}
	out, err := s.ask(o, "cat", "hello.out")
	if err == nil && !strings.Contains(out, "Hello") {
		err = fmt.Errorf("realpool: the first job wrote %q", out)
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprint(io.out, out)
	return nil
}

// errOver is that of a pool which ended by itself.
var errOver = errors.New("realpool: the pool ended by itself")

// fellOver returns an error once nothing holds the pool any more.
func (s store) fellOver(o options) error {
	err := released(s.poolDir(o), 0)
	if err == nil {
		return errOver
	}
	return nil
}

// until asks again until there is no error, the limit has passed, or the pool
// is over.
func until(limit time.Duration, ask func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil || errors.Is(err, errOver) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ask runs a command in the pool and returns what it printed.
func (s store) ask(o options, command ...string) (string, error) {
	c, p, err := s.reach(o)
	if err != nil {
		return "", err
	}
	if c == nil {
		return "", errors.New("realpool: the pool does not answer yet")
	}
	defer c.close()
	out, err := c.command(p.Order, command...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", command[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// logs are the ends of those logs that say why a pool does not come up.
func (s store) logs(o options) string {
	var b strings.Builder
	for _, name := range []string{"hold.log", "pool/log/MasterLog", "pool/log/StartLog", "pool/log/NegotiatorLog"} {
		if text, err := os.ReadFile(filepath.Join(s.poolDir(o), name)); err == nil && len(text) > 0 {
			fmt.Fprintf(&b, "the end of %s:\n%s\n", name, last(string(text), 15))
		}
	}
	return b.String()
}

// in runs a command in the pool, or a shell.
func in(s store, o options, io streams) (int, error) {
	c, p, err := s.reach(o)
	if err != nil {
		return 1, err
	}
	if c == nil {
		return 1, fmt.Errorf("realpool: no pool %s is up; start it with: sh examples/pool/up.sh", o.name)
	}
	defer c.close()
	command := o.command
	if len(command) == 0 {
		command = []string{"bash"}
	}
	cmd := c.command(p.Order, command...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.in, io.out, io.err
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// down ends the pool and waits until it is gone.
func down(s store, o options, io streams) error {
	c, _, err := s.reach(o)
	if err != nil {
		return err
	}
	if c == nil {
		if released(s.poolDir(o), 0) == nil { // what is left of one that ended by itself
			_, err = s.sweep()
		}
		fmt.Fprintf(io.out, "No pool %s is up.\n", o.name)
		return err
	}
	err = c.stop()
	c.close()
	if err != nil {
		return err
	}
	if err := released(s.poolDir(o), stopLimit+10*time.Second); err != nil {
		return err
	}
	if _, err := s.sweep(); err != nil {
		return err
	}
	fmt.Fprintf(io.out, "The pool %s is down.\n", o.name)
	return nil
}

// howTo says what can be done with a pool that is up.
func howTo(s store, o options, p pool) string {
	in, more := "sh examples/pool/in.sh", ""
	if o.name != "personal" {
		more = " -name " + o.name
	}
	example := "many.sub"
	if p.Original {
		example = "compare.sub"
	}
	return fmt.Sprintf(`
  submit   %[1]s%[2]s condor_submit %[3]s
  watch    %[1]s%[2]s condor_status
           %[1]s%[2]s condor_q
           %[1]s%[2]s condor_history
  a shell  %[1]s%[2]s
  logs     %[4]s
  stop     sh examples/pool/down.sh%[2]s

Commands begin in the pool's own copy of examples/pool: %[5]s
`, in, more, example, filepath.Join(s.poolDir(o), "pool", "log"), filepath.Join(s.poolDir(o), "pool", "jobs"))
}
